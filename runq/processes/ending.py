"""Ending a set of processes: SIGTERM, grace, SIGKILL, a bounded wait, and a word on what is left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import attrs

from runq.processes.table import SIGCONT, SIGKILL, Ident, ProcessTable, Row

REAP_S = 2.0
"""Seconds that processes get to vanish once SIGKILL was sent. One in uninterruptible sleep may take for
ever, so it is left; 20 processes need 7 ms when we adopt orphans, and up to 1.9 s where process 1 reaps
lazily."""

_QUIET_WALKS = 2
"""A process that forks while the table is read can be missed by one walk; its child is seen by the next."""

_PAUSE_FIRST_S, _PAUSE_LONGEST_S = 0.001, 0.05
"""Between walks: short at first because most processes end at once, and never so long that a second Ctrl-C waits."""

Find = Callable[[Mapping[int, Row]], Mapping[int, Row]]
"""Picks from the rows of one walk those that are to end, zombies included."""

Reap = Callable[[Iterable[Row]], bool]
"""Reaps those of the zombies that are ours to reap. Returns whether there was one."""


@attrs.frozen
class Ended:
    """What ending a tree came to.

    Args:
        ended_pids: those that were signalled and are gone; ascending.
        survivors: those still there: in uninterruptible sleep, or not ours to signal; ascending.
    """

    ended_pids: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()


def own_line(rows: Mapping[int, Row]) -> set[int]:
    """Ourselves and our ancestors, who are never touched."""
    line: set[int] = set()
    pid = os.getpid()
    while pid not in line and pid > 0:
        line.add(pid)
        pid = rows[pid].ppid if pid in rows else 0
    return line


def with_descendants(rows: Mapping[int, Row], seeds: Iterable[int], barred: set[int]) -> set[int]:
    """The seeds and their descendants, without the barred ones and what is reached only through them."""
    children: dict[int, list[Row]] = {}
    for row in rows.values():
        children.setdefault(row.ppid, []).append(row)
    found: set[int] = set()
    waiting = [pid for pid in seeds if pid not in barred]
    while waiting:
        pid = waiting.pop()
        if pid in found:
            continue
        found.add(pid)
        waiting.extend(
            child.pid
            for child in children.get(pid, ())
            # A child older than its parent: the parent's pid was given to another while the table was read.
            if child.pid not in barred and child.started >= rows[pid].started
        )
    return found


def no_reaping(_zombies: Iterable[Row]) -> bool:
    """For processes that are nobody's children of ours."""
    return False


def end_found(
    find: Find,
    *,
    table: ProcessTable,
    reap: Reap = no_reaping,
    grace_s: float,
    kill_now: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Ended:
    """End whatever ``find`` finds, until two walks in a row find nothing alive.

    Returns after ``grace_s`` + `REAP_S` at the latest, give or take one walk through the table.

    Args:
        find: picks the processes from each walk.
        table: the process table.
        reap: collects zombies.
        grace_s: seconds between SIGTERM and SIGKILL.
        kill_now: asked between walks; once true there is no more grace.
        clock: monotonic seconds.
        sleep: waits so many seconds.
    """
    signalled: set[Ident] = set()
    denied: set[Ident] = set()
    grace_end = clock() + grace_s
    give_up: float | None = None
    quiet = 0
    pause_s = _PAUSE_FIRST_S
    while True:
        rows = table.rows()
        members = find(rows)
        alive = [row for row in members.values() if not row.zombie]
        if give_up is not None:
            _kill_groups(rows, members)
        reaped = reap([row for row in members.values() if row.zombie])
        pending = [row for row in alive if row.ident not in denied]
        if not pending and not reaped:
            quiet += 1
            if quiet == _QUIET_WALKS:
                break
            continue
        quiet = 0
        now = clock()
        if give_up is None and (now >= grace_end or kill_now()):
            give_up, pause_s = now + REAP_S, _PAUSE_FIRST_S
        if give_up is None:
            for row in pending:
                if row.ident not in signalled:
                    _signal(table, row, signal.SIGTERM, signalled, denied)
        elif now >= give_up:
            break
        else:
            for row in pending:
                _signal(table, row, SIGKILL, signalled, denied)
        until = grace_end if give_up is None else give_up
        sleep(max(0.0, min(pause_s, until - clock())))
        pause_s = min(pause_s * 2, _PAUSE_LONGEST_S)
    survivors = {row.ident for row in alive}
    return Ended(
        ended_pids=tuple(sorted({pid for pid, _ in signalled - survivors})),
        survivors=tuple(sorted(pid for pid, _ in survivors)),
    )


def _signal(table: ProcessTable, row: Row, number: int, signalled: set[Ident], denied: set[Ident]) -> None:
    """Send, and remember whether that worked. Who may not be signalled is never waited for."""
    try:
        if table.send(row, number):
            signalled.add(row.ident)
            if row.stopped and number != SIGKILL and SIGCONT is not None:
                table.send(row, SIGCONT)  # else its SIGTERM stays pending, and it would never end by itself
    except PermissionError:
        denied.add(row.ident)


def _kill_groups(rows: Mapping[int, Row], members: Mapping[int, Row]) -> None:
    """SIGKILL to whole process groups, which no fork can outrun: the kernel visits a group at once (kill(2)).

    One that hands on to a new process faster than the table is read shows nothing but its dead: so the groups of
    zombies count too, as long as nobody else can reap them. Call it before they are reaped, for only to groups all of
    whose processes are to end may it be sent, and a group cannot become another's while one of it is there.
    """
    if not hasattr(os, "killpg"):
        return
    kept = {row.group for pid, row in rows.items() if pid not in members} | {0, 1}
    for group in {row.group for row in members.values() if not row.zombie or row.ppid == os.getpid()} - kept:
        with suppress(OSError):
            os.killpg(group, SIGKILL)
