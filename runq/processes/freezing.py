"""Stopping everything that runq started, and letting it go on: what Ctrl-Z does to a job, done to many."""

from __future__ import annotations

import signal
from contextlib import suppress

from runq.processes.ending import own_line, with_descendants
from runq.processes.table import SIGCONT, ProcessTable, Row, system_table
from runq.processes.tree import living_trees

SIGSTOP = getattr(signal, "SIGSTOP", None)

_WALKS = 20
"""Walks through the process table at most: one that forks while it is stopped is caught by the next walk."""


def freeze(table: ProcessTable | None = None, *, marked: str = "") -> tuple[Row, ...]:
    """Stop every process of every tree of ours, until a walk finds none that runs.

    Args:
        table: the process table; the system's own by default.
        marked: what the marks of further processes begin with, such as a reset's; none without it.

    Returns:
        Those that were stopped here, which `thaw` lets go on; what was stopped before stays out of it.
    """
    if SIGSTOP is None:
        return ()
    table = table or system_table()
    frozen: dict[tuple[int, float], Row] = {}
    for _ in range(_WALKS):
        rows = table.rows()
        members = {pid: row for tree in living_trees() for pid, row in tree.members(rows).items()}
        if marked:
            barred = own_line(rows)
            seeds = [pid for pid in rows if pid not in barred and (table.mark(pid) or "").startswith(marked)]
            members |= {pid: rows[pid] for pid in with_descendants(rows, seeds, barred)}
        running = [row for row in members.values() if not row.zombie and not row.stopped and row.ident not in frozen]
        if not running:
            break
        for row in running:
            with suppress(PermissionError):
                if table.send(row, SIGSTOP):
                    frozen[row.ident] = row
    return tuple(frozen.values())


def thaw(frozen: tuple[Row, ...], table: ProcessTable | None = None) -> None:
    """Let the processes go on that `freeze` stopped."""
    if SIGCONT is None:
        return
    table = table or system_table()
    for row in frozen:
        with suppress(PermissionError):
            table.send(row, SIGCONT)
