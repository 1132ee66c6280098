"""A process that hands on to its child faster than the table is read: every walk sees only its dead."""

from __future__ import annotations

import os
import signal

import pytest

from runq.processes.ending import end_found
from runq.processes.table import Row

GROUP = 4242


class Corpses:
    """A table in which the group's only visible process is dead, until SIGKILL came to the group."""

    def __init__(self) -> None:
        self.killed: list[tuple[int, int]] = []
        self.pid = 5000

    def rows(self) -> dict[int, Row]:
        me = Row(os.getpid(), 1, 7, 7, 1.0, False, False)
        if self.killed:
            return {me.pid: me}
        self.pid += 1
        dead = Row(self.pid, os.getpid(), GROUP, GROUP, 2.0, True, False)
        return {me.pid: me, dead.pid: dead}


def test_the_group_of_its_dead_is_killed_once_the_grace_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Corpses()
    now = [0.0]
    monkeypatch.setattr(os, "killpg", lambda group, number: table.killed.append((group, number)))
    ended = end_found(
        lambda rows: {pid: row for pid, row in rows.items() if pid != os.getpid()},
        table=table,  # type: ignore[arg-type]
        reap=lambda zombies: bool(list(zombies)),
        grace_s=5,
        kill_now=lambda: False,
        clock=lambda: now[0],
        sleep=lambda seconds: now.__setitem__(0, now[0] + seconds),
    )
    assert table.killed == [(GROUP, signal.SIGKILL)]
    assert 5 <= now[0] < 5.1
    assert ended.survivors == ()
