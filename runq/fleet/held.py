"""What the head knows of its machines and of the leases that are open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import attrs

from runq.fleet.lease import Lease, Word
from runq.fleet.wire import Terms
from runq_journal.stored import timestamp

if TYPE_CHECKING:
    from runq.planning import Work

FRESH_S = 30.0
"""A machine that was not heard from for so long gets no entry."""


@attrs.define
class Holding:
    """An open lease, and what its machine has told of it so far. ``work`` is ``None`` where the file lost the entry."""

    number: int
    entry: int
    work: Work | None
    machine: str
    slot: int
    lease: Lease
    stop: str = ""
    started: bool = False
    open_steps: dict[str, int] = attrs.field(factory=dict)
    open_servers: set[int] = attrs.field(factory=set)
    last_ended: str | None = None
    finished: str | None = None
    """The status of its `entry.finished`; ``None`` before."""
    reason: str = ""
    deferred: bool = False

    def terms(self, word: Word) -> Terms:
        """What its machine is told."""
        return Terms(boot_id=word.boot_id, until_s=self.lease.machine_until_s, heard_s=word.said_s, stop=self.stop)


@attrs.define
class Machine:
    """A machine of the night; ``address`` is ``None`` while it cannot be reached."""

    name: str
    slots: int
    word: Word
    resources: Mapping[str, float]
    address: str | None = None
    asked: bool = False
    not_before_s: float = 0.0

    def free_slot(self, held: Iterable[Holding]) -> int | None:
        """The lowest place where nothing runs."""
        taken = {one.slot for one in held if one.machine == self.name}
        return next((slot for slot in range(self.slots) if slot not in taken), None)

    def ready(self, now_s: float) -> bool:
        """Whether it may get an entry."""
        return self.address is not None and now_s - self.word.heard_s < FRESH_S and now_s >= self.not_before_s


def until_text(seconds: float, now: datetime | None = None) -> str:
    """The moment so many seconds from now: UTC, ISO 8601."""
    return timestamp((now or datetime.now(UTC)) + timedelta(seconds=seconds))


def left_s(until: str, lease_s: float, now: datetime | None = None) -> float:
    """How long a lease of an earlier runner may still run: never longer than a whole lease, whatever the clock says."""
    left = (datetime.fromisoformat(until) - (now or datetime.now(UTC))).total_seconds()
    return min(max(left, 0.0), lease_s)
