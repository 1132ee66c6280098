"""The tree of one step or server, and how it is ended with all that it ever started.

A process belongs to a tree when its descent proves it: it is the process we spawned; it descends from a
member; it was once seen as a descendant; it lives in the session we made; it bears the tree's mark in its
environment; or, on Linux, it became our child by adoption. That last one holds because whatever runq itself
starts stays in runq's own session, is a `Child`, or is named by the caller: a helper outside runq's session
must be given in ``spare``.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping

from runq.processes.ending import Ended, end_found, own_line, with_descendants
from runq.processes.spawn import Child, is_own_child
from runq.processes.subreaper import is_childless
from runq.processes.table import Ident, ProcessTable, Row, system_table

GRACE_S = 10.0
"""Seconds between SIGTERM and SIGKILL: enough for a harness to write what it has."""


class Tree:
    """A spawned process and all that descends from it.

    Args:
        child: the process.
        table: the process table; the system's own by default.
    """

    def __init__(self, child: Child, *, table: ProcessTable | None = None) -> None:
        self.child = child
        self.table = table or system_table()
        self._known: set[Ident] = {child.ident}
        _trees.add(self)

    @property
    def mark(self) -> str:
        """The mark in the environment of its processes."""
        return self.child.mark

    def observe(self) -> None:
        """Remember who descends from the process now, and reap adopted zombies. Call it at every tick.

        A grandchild that cleared its environment and was then given to another parent is known only by this;
        and a step that leaves an orphan every second must not fill the process table over four hours.
        """
        rows = self.table.rows()
        members = self.seen(rows)
        self._known = {self.child.ident} | {row.ident for row in members.values()}
        zombies = [row for row in rows.values() if row.zombie]
        self.reap(row for row in zombies if row.pid in members or self._adopted(row, rows))

    def seen(self, rows: Mapping[int, Row]) -> dict[int, Row]:
        """Those of the rows that belong to it by descent, session or memory."""
        seeds = [row.pid for row in rows.values() if row.ident in self._known or self._in_session(row)]
        found = with_descendants(rows, seeds, own_line(rows))
        return {pid: rows[pid] for pid in found}

    def members(self, rows: Mapping[int, Row], spare: frozenset[str | int] = frozenset()) -> dict[int, Row]:
        """Those of the rows that belong to it, by any proof, without the spared; all of them are remembered.

        Args:
            rows: a walk through the process table.
            spare: marks of trees and pids that are not to be touched, with all that descends from them.
        """
        barred = own_line(rows) | self._spared(rows, spare)
        seeds = [row.pid for row in rows.values() if row.pid not in barred and self._owns(row, rows)]
        found = with_descendants(rows, seeds, barred)
        members = {pid: rows[pid] for pid in found}
        self._known = {self.child.ident} | {row.ident for row in members.values()}
        return members

    def reap(self, zombies: Iterable[Row]) -> bool:
        """Collect zombies that are our children. Returns whether there was one.

        The process we spawned is left to its `Child`, and so is every other `Child`: whoever reaps it behind
        its back makes it report exit code 0.
        """
        reaped = False
        for row in zombies:
            if row.ppid != os.getpid():
                continue
            if row.pid == self.child.pid:
                reaped |= not self.child.reaped and self.child.poll() is not None
            elif not is_own_child(row.pid):
                try:
                    reaped |= os.waitpid(row.pid, os.WNOHANG)[0] == row.pid
                except ChildProcessError:
                    continue  # another thread was faster
        return reaped

    def _owns(self, row: Row, rows: Mapping[int, Row]) -> bool:
        if row.ident in self._known or self._in_session(row):
            return True
        if not row.zombie and (mark := self.table.mark(row.pid)) is not None:
            return mark == self.mark != ""
        return self._adopted(row, rows)

    def _in_session(self, row: Row) -> bool:
        """Whether it lives in the session we made: a session is inherited, never joined (setsid(2))."""
        return row.session == self.child.pid and row.started >= self.child.ident[1]

    def _adopted(self, row: Row, rows: Mapping[int, Row]) -> bool:
        """Whether it is an orphan that came to us since the process started."""
        me = os.getpid()
        return (
            self.child.adopting
            and row.ppid == me
            and row.started >= self.child.ident[1]
            and row.session != rows[me].session
            and not is_own_child(row.pid)
        )

    def _spared(self, rows: Mapping[int, Row], spare: frozenset[str | int]) -> set[int]:
        """The spared trees and pids, every other `Child`, and all their descendants."""
        seeds = {pid for pid in spare if isinstance(pid, int) and pid in rows}
        seeds |= {pid for pid in rows if pid != self.child.pid and is_own_child(pid)}
        for tree in tuple(_trees):
            if tree is not self and tree.mark in spare:
                seeds |= tree.seen(rows).keys()
        return with_descendants(rows, seeds, set())


# Every tree of this process, so that a mark is enough to spare one with all that was seen of it.
_trees: weakref.WeakSet[Tree] = weakref.WeakSet()


def living_trees() -> tuple[Tree, ...]:
    """The trees of this process whose first process has not ended."""
    return tuple(tree for tree in tuple(_trees) if tree.child.poll() is None)


def end_tree(
    tree: Tree,
    *,
    grace_s: float = GRACE_S,
    kill_now: Callable[[], bool] = lambda: False,
    spare: Iterable[str | int] = (),
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Ended:
    """End the process and everything it left behind: SIGTERM, grace, SIGKILL, a bounded wait.

    Also right after a step that ended by itself: what it left in the background is ended, and ``ended_pids``
    tells. Ourselves, our ancestors, other children spawned by runq and whatever is spared are never touched.
    Takes at most ``grace_s`` + `~runq.processes.ending.REAP_S` seconds; what cannot be ended by then is
    reported and left.

    Args:
        tree: the tree.
        grace_s: seconds between SIGTERM and SIGKILL.
        kill_now: asked meanwhile; once true there is no more grace.
        spare: marks of trees and pids that are not to be touched, with all that descends from them.
        clock: monotonic seconds.
        sleep: waits so many seconds.
    """
    if tree.child.poll() is not None and tree.child.adopting and is_childless():
        return Ended()
    spared = frozenset(spare)
    return end_found(
        lambda rows: tree.members(rows, spared),
        table=tree.table,
        reap=tree.reap,
        grace_s=grace_s,
        kill_now=kill_now,
        clock=clock,
        sleep=sleep,
    )
