"""What an earlier runner left running when it died: found by mark or by record, and ended before anything else."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

import attrs
import psutil

from runq.processes import boot
from runq.processes.ending import Ended, end_found, own_line, with_descendants
from runq.processes.table import Ident, ProcessTable, Row, system_table
from runq.processes.tree import GRACE_S

CREATED_TOLERANCE_S = 2.0
"""How far a recorded creation time may be off. Linux tells it as boot time, whole seconds that move when the
clock is set, plus ticks of 10 ms: a second either way is nothing, and within two no pid comes round again
(32,768 forks at least). After a larger change of the clock the record is not believed; the mark still finds
the process."""


@attrs.frozen(kw_only=True)
class Recorded:
    """A process as the journal recorded it.

    Args:
        pid: its id.
        created_at: its creation in seconds since the epoch.
        boot_id: the boot in which both mean something.
    """

    pid: int
    created_at: float
    boot_id: str


@attrs.define
class _Orphans:
    prefixes: tuple[str, ...]
    helpers: frozenset[str]
    recorded: frozenset[Ident]
    table: ProcessTable
    known: set[Ident] = attrs.field(factory=set)

    def find(self, rows: Mapping[int, Row]) -> dict[int, Row]:
        """The orphans of one walk; remembered, because a parent's death takes the proof from its children."""
        barred = own_line(rows)
        seeds = [row.pid for row in rows.values() if row.pid not in barred and self._is_orphan(row)]
        members = {pid: rows[pid] for pid in with_descendants(rows, seeds, barred)}
        self.known = {row.ident for row in members.values()}
        return members

    def _is_orphan(self, row: Row) -> bool:
        if row.ident in self.known or row.ident in self.recorded:
            return True
        mark = "" if row.zombie else self.table.mark(row.pid) or ""
        return mark.startswith(self.prefixes) or mark in self.helpers


def sweep(
    journal_uuid: str,
    recorded: Sequence[Recorded],
    *,
    nights: Collection[str] | None = None,
    helpers: Collection[str] = (),
    grace_s: float = GRACE_S,
    kill_now: Callable[[], bool] = lambda: False,
    boot_id: str | None = None,
    table: ProcessTable | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Ended:
    """End every process that a dead runner of this journal left, with all its descendants.

    Those are the processes of this user whose mark begins with the journal's uuid and one of the nights, and the
    recorded ones if
    the machine has not booted since and their creation time is the recorded one. Call it only while holding
    the journal's lock: the steps of a runner that lives look just the same. Ourselves and our ancestors are
    never touched. Takes at most ``grace_s`` + `~runq.processes.ending.REAP_S` seconds.

    Args:
        journal_uuid: the journal's uuid; not empty.
        recorded: the steps and servers that were running as far as the journal knows.
        nights: nights without an end, whose runner is dead; ``None``: all. A copied journal has the uuid of its
            original, where a night may be running now.
        helpers: marks of resets and restarts that were under way (`~runq.processes.spawn.helper_mark`).
        grace_s: seconds between SIGTERM and SIGKILL.
        kill_now: asked meanwhile; once true there is no more grace.
        boot_id: this boot; the system's own by default.
        table: the process table; the system's own by default.
        clock: monotonic seconds.
        sleep: waits so many seconds.

    Raises:
        ValueError: the uuid is empty or holds a ``/``, and so would fit other journals' processes.
    """
    if not journal_uuid or "/" in journal_uuid:
        raise ValueError(f"{journal_uuid!r} is not a journal's uuid")
    processes = table or system_table()
    this_boot = boot_id or boot.boot_id()
    found = (_still_there(record, processes) for record in recorded if record.boot_id == this_boot)
    idents = frozenset(ident for ident in found if ident is not None)
    prefixes = (f"{journal_uuid}/",) if nights is None else tuple(f"{journal_uuid}/{night}/" for night in nights)
    orphans = _Orphans(prefixes, frozenset(helpers), idents, processes)
    return end_found(orphans.find, table=processes, grace_s=grace_s, kill_now=kill_now, clock=clock, sleep=sleep)


def _still_there(record: Recorded, table: ProcessTable) -> Ident | None:
    """The recorded process, if its pid is still its own."""
    row = table.row(record.pid)
    try:
        created_at = psutil.Process(record.pid).create_time()
    except psutil.Error:
        return None
    if row is None or abs(created_at - record.created_at) > CREATED_TOLERANCE_S:
        return None
    again = table.row(record.pid)  # the pid may have changed hands between the two readings
    return row.ident if again is not None and again.ident == row.ident else None
