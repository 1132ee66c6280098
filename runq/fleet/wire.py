"""What travels between the head and a machine: an entry to run, the terms of its lease, and what the machine wrote.

Plain JSON data in both directions, so that what arrives can be kept in a file and read by a process that knows nothing
of Dask.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import attrs
import cattrs

from runq.resume import PastStep, StepDecision


@attrs.frozen(kw_only=True)
class Terms:
    """Until when a machine may go on with an entry, in seconds of its own clock (`runq.fleet.lease.elapsed`).

    Args:
        boot_id: the boot in which ``until_s`` means something.
        until_s: by then nothing of the entry runs there any more.
        heard_s: when the head was last heard from.
        stop: why the entry is to be ended at once; empty when it is not.
    """

    boot_id: str
    until_s: float
    heard_s: float
    stop: str = ""


@attrs.frozen(kw_only=True)
class Job:
    """An entry, as a machine gets it.

    Args:
        journal: the uuid of the head's journal.
        lease: the number of the lease.
        host: the machine's name in this night.
        slot: which of its places the entry takes, from 0.
        entry: the entry's id; ``index`` its position in the queue file.
        queue: the queue file's text; ``queue_path`` where it lies on the head.
        runs: the runs folder, which head and machine share.
        identities: of each step, as the head computed them from its files.
        until: the deadline of the night (ISO 8601); ``hard`` ends a step that runs then.
        usual: for each step that has a history on this machine, its median seconds and how often it ran.
        mark: stands behind the names of logs and new bundles, where a machine that was lost may have used the same.
        silence_s: with no word from the head for so long, no further step starts.
        grace_s: seconds between SIGTERM and SIGKILL.
    """

    journal: str
    night: str
    lease: int
    host: str
    slot: int
    entry: int
    index: int
    queue: str
    queue_path: str
    base_dir: str
    runs: str
    decisions: tuple[StepDecision, ...]
    past: Mapping[str, PastStep]
    identities: Mapping[str, str | None]
    until: str | None
    hard: bool
    usual: Mapping[str, tuple[float, int]]
    silence_s: float
    grace_s: float
    mark: str = ""

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps(cattrs.unstructure(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Of JSON text."""
        data = json.loads(text)
        for past in data["past"].values():
            past["artifacts"], past["outputs"] = tuple(past["artifacts"]), tuple(past["outputs"])
        return cls(
            **{
                **data,
                "decisions": tuple(StepDecision(**one) for one in data["decisions"]),
                "past": {step: PastStep(**one) for step, one in data["past"].items()},
                "usual": {step: (float(one[0]), int(one[1])) for step, one in data["usual"].items()},
            }
        )


@attrs.frozen(kw_only=True)
class Written:
    """An event as a machine wrote it: event ``seq`` of its own journal, under a lease."""

    seq: int
    lease: int
    at: str
    kind: str
    entry: int | None
    step: str | None
    attempt: int | None
    data: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Ask:
    """What the head wants to know of a machine, and tells it.

    Args:
        journal: the uuid of the head's journal.
        night: the night.
        have: by outbox, the number of the last event that is in the head's journal, and of the last reading.
        terms: by lease, until when the machine may go on; ``None`` leaves that as it is.
        hold_s: how long the machine may wait for something to tell.
        most: events to tell at most.
    """

    journal: str
    night: str
    have: Mapping[str, tuple[int, int]]
    terms: Mapping[int, Terms | None]
    hold_s: float
    most: int = 500


Reading = tuple[int, str, int, str, str, float]
"""Number, UTC time (ISO 8601), entry, step, probe, MB."""


@attrs.frozen(kw_only=True)
class Told:
    """What a machine tells.

    Args:
        boot_id: its boot; ``now_s`` its clock when it said so.
        events: by outbox, in the order they were written, none twice.
        readings: by outbox, the memory readings that lie before these events.
        ended: by lease, how the entry's process ended: an exit code, or ``None`` where it was killed.
    """

    boot_id: str
    now_s: float
    events: Mapping[str, Sequence[Written]]
    readings: Mapping[str, Sequence[Reading]]
    ended: Mapping[int, int | None]


def job_folder(outbox: Path, lease: int) -> Path:
    """Where a machine keeps what belongs to a lease."""
    return outbox / f"lease{lease}"


def outbox_folder(state: Path, journal: str, night: str) -> Path:
    """Where a machine keeps what it writes of a night until long after the head has it."""
    return state / "fleet" / journal / night
