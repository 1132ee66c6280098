"""Ending whole trees, with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from runq.processes import Ended, end_tree
from runq.processes.ending import REAP_S, end_found
from runq.processes.table import ProcfsTable, PsutilTable, Row

GRACE_S = 0.3
SLACK_S = 3.0
"""What a loaded machine may take on top of the bound."""

ESCAPE = """
def escape(name, env=None, then="linger()", parent_waits_for=None):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            code = f"exec(open({sys.argv[0]!r}).read().split('# ' + 'MAIN')[0]); say({name!r}); {then}"
            argv = [sys.executable, "-I", "-S", "-c", code]
            os.execve(sys.executable, argv, dict(os.environ) if env is None else env)
        if parent_waits_for:
            wait_for(parent_waits_for)
        os._exit(0)
    os.wait()
"""

tables = pytest.mark.parametrize("table", [ProcfsTable(), PsutilTable()], ids=["procfs", "psutil"])


def test_a_process_that_obeys_ends_by_sigterm(stage, alive):
    tree = stage.tree("step", "say('ready')\nlinger()")
    pid = stage.heard("ready")
    assert end_tree(tree) == Ended(ended_pids=(pid,))
    assert tree.child.status() == (None, "SIGTERM")
    assert not alive(pid)


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(stage, alive):
    tree = stage.tree("step", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay('ready')\nlinger()")
    pid = stage.heard("ready")
    started = time.monotonic()
    assert end_tree(tree, grace_s=GRACE_S) == Ended(ended_pids=(pid,))
    assert GRACE_S <= time.monotonic() - started <= GRACE_S + REAP_S + SLACK_S
    assert tree.child.status() == (None, "SIGKILL")


def test_no_grace_when_asked_to_kill_now(stage):
    tree = stage.tree("step", "signal.signal(signal.SIGTERM, lambda *_: say('asked'))\nsay('ready')\nlinger()")
    stage.heard("ready")
    end_tree(tree, grace_s=60, kill_now=lambda: True)
    assert tree.child.status() == (None, "SIGKILL")
    assert not (stage.folder / "asked").exists()


def test_a_stopped_process_gets_to_clean_up(stage, until):
    body = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\nsay('ready')\nlinger()"
    tree = stage.tree("step", body)
    pid = stage.heard("ready")
    os.kill(pid, signal.SIGSTOP)
    until(lambda: ProcfsTable().row(pid).stopped)
    end_tree(tree, grace_s=60)
    assert tree.child.status() == (5, None)


@tables
def test_a_daemon_with_its_own_session_that_holds_the_output_is_ended(stage, either, alive, table):
    tree = stage.tree("step", ESCAPE + "# MAIN\nescape('daemon')\nsay('ready')\nlinger()", table=table)
    stage.heard("ready")
    daemon = stage.heard("daemon")
    assert set(end_tree(tree).ended_pids) == {tree.child.pid, daemon}
    assert not alive(daemon)


@tables
def test_what_a_step_left_running_when_it_exited_is_ended(stage, either, until, alive, table):
    tree = stage.tree("step", "if os.fork():\n    os._exit(0)\nsay('background')\nlinger()", table=table)
    background = stage.heard("background")
    until(tree.child.poll)
    assert end_tree(tree) == Ended(ended_pids=(background,))
    assert tree.child.status() == (0, None)
    assert not alive(background)


def test_an_orphan_without_mark_is_known_by_its_adoption(stage, subreaper, until, alive):
    tree = stage.tree("step", ESCAPE + "# MAIN\nescape('daemon', env={})")
    daemon = stage.heard("daemon")
    until(tree.child.poll)
    assert end_tree(tree) == Ended(ended_pids=(daemon,))
    assert not alive(daemon)


def test_an_orphan_without_mark_is_known_from_an_earlier_look(stage, until, alive):
    tree = stage.tree("step", ESCAPE + "# MAIN\nescape('daemon', env={}, parent_waits_for='go')")
    daemon = stage.heard("daemon")
    tree.observe()
    stage.say("go")
    until(tree.child.poll)
    assert end_tree(tree) == Ended(ended_pids=(daemon,))
    assert not alive(daemon)


def test_an_unmarked_orphan_in_the_steps_session_is_known_by_the_session(stage, either, until, alive):
    tree = stage.tree("step", "if os.fork():\n    os._exit(3)\nsay('background')\nlinger()", marked=False)
    background = stage.heard("background")
    until(tree.child.poll)
    assert end_tree(tree) == Ended(ended_pids=(background,))
    assert tree.child.status() == (3, None)
    assert not alive(background)


def test_a_storm_of_200_processes(stage, either, until, alive):
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for number in range(200):
    if os.fork() == 0:
        say(f"storm{number}")
        linger()
say('ready')
linger()
"""
    tree = stage.tree("step", body)
    stage.heard("ready")
    until(lambda: len(list(stage.folder.glob("storm*[0-9]"))) >= 200)
    pids = {int(path.read_text()) for path in stage.folder.glob("storm*") if path.suffix != ".new"}
    started = time.monotonic()
    ended = end_tree(tree, grace_s=GRACE_S)
    assert time.monotonic() - started <= GRACE_S + REAP_S + SLACK_S
    assert set(ended.ended_pids) == pids | {tree.child.pid}
    assert ended.survivors == ()
    assert not any(alive(pid) for pid in pids)


def test_a_process_that_forks_at_each_sigterm(stage, either, alive):
    body = """
count = 0
def fork(*_):
    global count
    count += 1
    if os.fork() == 0:
        say(f"born{os.getpid()}")
signal.signal(signal.SIGTERM, fork)
say('ready')
linger()
"""
    tree = stage.tree("step", body)
    stage.heard("ready")
    ended = end_tree(tree, grace_s=GRACE_S)
    born = stage.said("born")
    assert born
    assert ended.survivors == ()
    assert not any(alive(pid) for pid in [*born, tree.child.pid])


def test_a_process_that_flees_from_pid_to_pid(stage, subreaper, alive):
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
say('ready')
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    say('latest')
"""
    tree = stage.tree("step", body)
    stage.heard("latest")
    assert end_tree(tree, grace_s=0.05).survivors == ()
    assert not alive(stage.heard("latest"))


def test_adopted_zombies_are_reaped_while_the_step_runs(stage, subreaper, until):
    body = ESCAPE + "# MAIN\nfor number in range(5):\n    escape(f'orphan{number}', env={}, then='None')\n"
    tree = stage.tree("step", body + "say('ready')\nlinger()")
    stage.heard("ready")
    until(lambda: len(stage.said("orphan")) == 5)

    def gone():
        tree.observe()
        return not any(row.ppid == os.getpid() and row.zombie for row in ProcfsTable().rows().values())

    until(gone)
    end_tree(tree)


def test_a_server_beside_the_step_survives_with_all_it_started(stage, subreaper, until, alive):
    body = "# MAIN\nescape('helper', env={}, parent_waits_for='go')\nsay('serving')\nlinger()"
    server = stage.tree("server", ESCAPE + body)
    helper = stage.heard("helper")
    server.observe()
    stage.say("go")
    stage.heard("serving")
    server_seen = {server.child.pid, helper}
    step = stage.tree("step", ESCAPE + "# MAIN\nescape('daemon', env={})\nsay('ready')\nlinger()")
    stage.heard("ready")
    daemon = stage.heard("daemon")
    ended = end_tree(step, spare={server.mark})
    assert set(ended.ended_pids) == {step.child.pid, daemon}
    assert all(alive(pid) for pid in server_seen)
    assert set(end_tree(server).ended_pids) == server_seen
    assert server.child.status() == (None, "SIGTERM")


def test_a_server_that_was_not_named_survives_and_keeps_its_exit_code(stage, subreaper, until, alive):
    step = stage.tree("step", "say('ready')\nlinger()")
    server = stage.tree("server", "say('serving')\nwait_for('go')\nsys.exit(7)")
    stage.heard("ready")
    pid = stage.heard("serving")
    assert end_tree(step).ended_pids == (step.child.pid,)
    assert alive(pid)
    stage.say("go")
    until(lambda: not alive(pid))
    step.observe()
    assert end_tree(step) == Ended()
    assert server.child.status() == (7, None)


def test_a_spared_pid_and_a_helper_in_our_session_survive(stage, subreaper, alive):
    step = stage.tree("step", "say('ready')\nlinger()")
    sleeper = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(90)"]
    with subprocess.Popen(sleeper) as near, subprocess.Popen(sleeper, start_new_session=True) as far:
        try:
            stage.heard("ready")
            assert end_tree(step, spare={far.pid}).ended_pids == (step.child.pid,)
            assert alive(near.pid)
            assert alive(far.pid)
        finally:
            near.kill()
            far.kill()


def test_another_processes_end_code_is_not_lost(stage, subreaper, until, alive):
    step = stage.tree("step", "say('ready')\nlinger()")
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "raise SystemExit(9)"]) as helper:
        until(lambda: not alive(helper.pid))
        step.observe()
        end_tree(step)
        assert helper.wait() == 9


def test_a_step_that_left_nothing_costs_no_walk(stage, subreaper, until):
    class Unread(ProcfsTable):
        def rows(self):
            raise AssertionError("the table was read")

    tree = stage.tree("step", "pass", table=Unread())
    until(tree.child.poll)
    assert end_tree(tree) == Ended()


class ScriptedTable(ProcfsTable):
    """A process table with one process that cannot be ended."""

    def __init__(self, error: type[Exception] | None) -> None:
        super().__init__()
        self.error = error
        self.sent: list[int] = []

    def rows(self):
        return {77: Row(77, 1, 77, 77, 5.0, zombie=False, stopped=False)}

    def send(self, row, number):
        self.sent.append(number)
        if self.error is not None:
            raise self.error
        return True


@pytest.fixture
def no_groups(monkeypatch):
    """Group signals go nowhere, for the scripted pids belong to strangers."""
    monkeypatch.delattr(os, "killpg")


def ending(table):
    now = [0.0]

    def sleep(seconds):
        now[0] += max(seconds, 0.001)

    ended = end_found(
        lambda rows: rows,
        table=table,
        grace_s=10,
        kill_now=lambda: False,
        clock=lambda: now[0],
        sleep=sleep,
    )
    return ended, now[0]


def test_a_process_in_uninterruptible_sleep_is_reported_and_left(no_groups):
    table = ScriptedTable(None)
    ended, seconds = ending(table)
    assert ended == Ended(survivors=(77,))
    assert 12 <= seconds < 12.1
    assert table.sent.count(signal.SIGTERM) == 1
    assert table.sent[-1] == signal.SIGKILL


def test_a_process_that_may_not_be_signalled_is_reported_at_once(no_groups):
    ended, seconds = ending(ScriptedTable(PermissionError))
    assert ended == Ended(survivors=(77,))
    assert seconds < 0.1
