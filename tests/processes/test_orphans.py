"""What a killed runner leaves is found and ended by the next one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from runq.processes import Ended, Recorded, boot_id, helper_mark, spawn, step_mark, sweep
from runq.processes.table import MARK_VARIABLE, ProcfsTable

RUNNER = """
import json, sys, time
from pathlib import Path
from runq.processes import become_subreaper, spawn, MARK_VARIABLE
here, mark = Path(sys.argv[1]), sys.argv[2]
become_subreaper()
argv = json.loads(sys.argv[3])
child = spawn(argv, cwd=here, env={MARK_VARIABLE: mark}, log_path=here / "step.log")
(here / "runner.new").write_text(json.dumps([child.pid, child.created_at]))
(here / "runner.new").rename(here / "runner")
time.sleep(90)
"""

STEP = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        say('daemon')
        linger()
    os._exit(0)
if os.fork() == 0:
    say('plain')
    os.execve(sys.executable, [sys.executable, '-I', '-S', '-c', 'import time; time.sleep(90)'], {})
say('ready')
linger()
"""


def test_everything_a_killed_runner_left_is_ended(stage, until, alive):
    mark = step_mark(stage.uuid, "2026-01-02_030405", 3, "eval", 1)
    argv = json.dumps(stage.argv("step", STEP))
    with subprocess.Popen([sys.executable, "-c", RUNNER, str(stage.folder), mark, argv]) as runner:
        until((stage.folder / "runner").exists)
        step, created_at = json.loads((stage.folder / "runner").read_text())
        pids = {step, stage.heard("daemon"), stage.heard("plain")}
        stage.heard("ready")
        until(lambda: ProcfsTable().mark(stage.heard("plain")) is None)  # known by its parent only
        runner.send_signal(signal.SIGKILL)
        runner.wait()
    assert all(alive(pid) for pid in pids)
    recorded = [Recorded(pid=step, created_at=created_at, boot_id=boot_id())]
    ended = sweep(stage.uuid, recorded)
    assert set(ended.ended_pids) == pids
    assert ended.survivors == ()
    assert not any(alive(pid) for pid in pids)
    assert sweep(stage.uuid, recorded) == Ended()


def test_a_stubborn_orphan_is_killed(stage):
    child = stage.start("step", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay('ready')\nlinger()")
    stage.heard("ready")
    assert sweep(stage.uuid, [], grace_s=0.1) == Ended(ended_pids=(child.pid,))


def test_another_journals_processes_are_left(stage, alive):
    child = stage.start("step", "say('ready')\nlinger()")
    stage.heard("ready")
    assert sweep(stage.uuid[:-1], []) == Ended()
    assert alive(child.pid)


def test_only_the_nights_that_are_named_are_swept(stage, alive):
    """A copied runs folder has the uuid of its original, where a night may be running."""
    child = stage.start("step", "say('ready')\nlinger()")
    stage.heard("ready")
    night = child.mark.split("/")[1]
    assert sweep(stage.uuid, [], nights=["1999-01-01_000000"]) == Ended()
    assert sweep(stage.uuid, [], nights=[night[:-1]]) == Ended()
    assert sweep(stage.uuid, [], nights=[]) == Ended()
    assert alive(child.pid)
    assert sweep(stage.uuid, [], nights=[night]).ended_pids == (child.pid,)


def test_of_resets_and_restarts_only_the_one_that_is_named_is_swept(stage, alive):
    """A service that an earlier reset started outlives the night; the event's number is compared as a whole."""
    env = {**stage.env(None), MARK_VARIABLE: helper_mark(stage.uuid, "2026-01-02_030405", 12)}
    script = stage.argv("helper", "say('ready')\nlinger()")
    child = spawn(script, cwd=stage.folder, env=env, log_path=stage.folder / "helper.log")
    stage.children.append(child)
    stage.heard("ready")
    other, mine = (helper_mark(stage.uuid, "2026-01-02_030405", event) for event in (1, 12))
    assert sweep(stage.uuid, [], nights=["2026-01-02_030405"], helpers=[other]) == Ended()
    assert alive(child.pid)
    assert sweep(stage.uuid, [], nights=[], helpers=[mine]).ended_pids == (child.pid,)


@pytest.mark.parametrize("change", ["created_at", "boot_id", "nothing"])
def test_a_recorded_pid_is_believed_only_with_its_creation_and_boot(stage, alive, change):
    child = stage.start("step", "say('ready')\nlinger()", marked=False)
    stage.heard("ready")
    record = Recorded(
        pid=child.pid,
        created_at=child.created_at - (60 if change == "created_at" else 0.5),
        boot_id="another boot" if change == "boot_id" else boot_id(),
    )
    ended = sweep(stage.uuid, [record])
    assert ended == (Ended(ended_pids=(child.pid,)) if change == "nothing" else Ended())
    assert alive(child.pid) == (change != "nothing")


def test_a_recorded_pid_that_is_gone_or_changes_hands(stage, until, alive):
    gone = stage.start("gone", "")
    until(gone.poll)
    child = stage.start("step", "say('ready')\nlinger()", marked=False)
    stage.heard("ready")

    class Changing(ProcfsTable):
        def row(self, pid):
            row = super().row(pid)
            self.asked = getattr(self, "asked", 0) + 1
            return row if self.asked == 1 else None

        def rows(self):
            self.asked = 0
            return {}

    records = [Recorded(pid=c.pid, created_at=c.created_at, boot_id=boot_id()) for c in (gone, child)]
    assert sweep(stage.uuid, records[:1]) == Ended()
    assert sweep(stage.uuid, records[1:], table=Changing()) == Ended()
    assert alive(child.pid)


def test_we_and_our_ancestors_are_never_touched(stage, monkeypatch):
    me = psutil.Process()
    records = [
        Recorded(pid=process.pid, created_at=process.create_time(), boot_id=boot_id())
        for process in (me, *me.parents())
    ]
    assert sweep(stage.uuid, records, grace_s=0) == Ended()


def test_a_runner_that_bears_the_mark_itself_survives_its_own_sweep(stage):
    code = f"from runq.processes import sweep; print(sweep({stage.uuid!r}, [], grace_s=0))"
    env = {**os.environ, MARK_VARIABLE: step_mark(stage.uuid, "night", 0, "eval", 1)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "Ended(ended_pids=(), survivors=())"


@pytest.mark.parametrize("uuid", ["", "a/b"])
def test_a_uuid_that_would_fit_others_is_refused(uuid):
    with pytest.raises(ValueError, match="uuid"):
        sweep(uuid, [])
