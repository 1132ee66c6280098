"""All that the page of a night says, read from the journal in one go; no figure is worked out a second time here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runq.replay import chosen_night
from runq.report import bands
from runq.report.bands import Band, Stretch
from runq.report.since import since
from runq.status import status_of
from runq_journal.reader import JournalReader

if TYPE_CHECKING:
    from runq.comparing.comparison import Comparison
    from runq_journal.stored import Sample
    from runq_journal.view_rows import Row

POINTS = 1200
"""Into so many pieces the night's work is cut for its curve of memory; each gives its lowest and highest reading.
More than a screen has pixels for."""

SHORTEST_PIECE_S = 0.5
"""Readings come every second (`runq.sampling`): shorter pieces would hold no more."""


@attrs.frozen(kw_only=True)
class Gathered:
    """A night as the page needs it.

    Args:
        data: what `runq status --json` says: the summary, and the state, the runner and the command that goes on.
        plan: what the newest plan says, with every entry's settings.
        failures: every attempt that ended otherwise than ok, the oldest first (view `failure`).
        attempts: every attempt (view `attempt`).
        deltas: baseline, peak and delta of each attempt and probe (view `model_delta`).
        bands: resets, settlings, steps and waits as spans of time.
        stretches: from each start or resume to its end.
        curve: memory readings, thinned; in the order of time.
        piece_s: of how many seconds each the curve shows the lowest and the highest reading.
        earlier: how it compares with the night before of the same queue file; ``None`` where there is none.
        offset: how far the night's own clock was ahead of UTC when it began.
        made_at: when this was read, UTC.
    """

    data: dict[str, Any]
    plan: dict[str, Any]
    failures: list[Row]
    attempts: list[Row]
    deltas: list[Row]
    bands: list[Band]
    stretches: list[Stretch]
    curve: list[Sample]
    piece_s: float
    earlier: Comparison | None
    offset: timedelta
    made_at: datetime

    @property
    def entries(self) -> Sequence[dict[str, Any]]:
        """The summary's entries, in the order of the queue file."""
        entries: Sequence[dict[str, Any]] = self.data["entries"]
        return entries


def gather(journal: Path, night: str | None) -> Gathered:
    """Read a night, also while it runs.

    Args:
        journal: the file.
        night: its id or folder; ``None`` for the latest.

    Raises:
        UsageError: there is no such night.
        JournalError: the journal cannot be read.
    """
    with JournalReader.open(journal) as reader, reader.snapshot():
        wanted = chosen_night(reader, night)
        found, stretches = bands.spans(
            reader.events(wanted, kinds=bands.KINDS),
            lambda entry, step, before: reader.last_sample_at(wanted, entry, step, before),
        )
        piece_s = max(sum(stretch.seconds for stretch in stretches) / POINTS, SHORTEST_PIECE_S)
        return Gathered(
            data=status_of(reader, journal, wanted),
            plan=reader.latest_plan(wanted),
            failures=reader.failures(wanted),
            attempts=reader.attempts(wanted),
            deltas=reader.model_deltas(wanted),
            bands=found,
            stretches=stretches,
            curve=reader.thinned_samples(wanted, piece_s),
            piece_s=piece_s,
            earlier=since(reader, wanted),
            offset=_offset(reader, wanted),
            made_at=datetime.now(UTC),
        )


def _offset(reader: JournalReader, night: str) -> timedelta:
    """How far the clock of the machine was ahead of UTC, in whole quarters of an hour as time zones have it."""
    row = reader.view("night", night)[0]
    local, utc = datetime.fromisoformat(row["started"]), datetime.fromisoformat(row["started_at"])
    if local.tzinfo is not None:
        return local.utcoffset() or timedelta()
    quarters = round((local - utc.replace(tzinfo=None)) / timedelta(minutes=15))
    return quarters * timedelta(minutes=15)
