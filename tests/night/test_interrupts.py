"""Ctrl-C, SIGTERM, a closed terminal: recorded, nothing left running, and the night can go on."""

import json
import signal
import sys
import time
from datetime import datetime, timedelta

import psutil
import pytest


def waiting(shop, entry_model="wait+sampler"):
    shop.queue.write_text(
        shop.queue.read_text().replace("model: two/b", "model: two/b").replace('"two/b"', f'"{entry_model}"')
    )
    runner = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned", entry=1, step="eval")
    shop.wait_for(lambda: (shop.bundle(1, "eval") / "sampler.pid").exists())
    return runner


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_fault_7_an_interrupt_in_mid_step_is_recorded_and_leaves_nothing_running(touchstone_queue, name):
    shop = touchstone_queue
    runner = waiting(shop)
    sampler = int((shop.bundle(1, "eval") / "sampler.pid").read_text())
    runner.send_signal(getattr(signal, name))
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 130, out
    assert shop.gone(sampler) and shop.marked_processes() == []
    events = shop.events()
    assert [(e.kind, e.entry, e.data.get("status"), e.data.get("reason")) for e in events[-3:]] == [
        ("step.finished", 1, "interrupted", "the night was interrupted"),
        ("entry.finished", 1, "interrupted", "the night was interrupted"),
        ("night.interrupted", None, None, name),
    ]
    summary = shop.summary()
    assert (summary["state"], summary["done"], summary["pending"]) == ("interrupted", 1, 2)
    assert [e["eval_status"] for e in summary["entries"]] == ["ok", "pending", "pending"]
    assert summary["entries"][1]["steps"][0]["attempts"][0]["status"] == "interrupted"
    assert "(interrupted)" in shop.markdown()
    assert f"--resume --night {shop.nights()[0]}" in out
    shop.go.touch()
    assert shop.night("--resume").returncode == 0
    assert shop.attempts(0, "eval") == [(1, "ok")]
    assert shop.attempts(1, "eval") == [(1, "interrupted"), (2, "ok")]


def test_a_second_ctrl_c_kills_at_once(workshop):
    shop = workshop
    stubborn = """
signal.signal(signal.SIGTERM, lambda *_: (bundle / "asked").touch())
(bundle / "ready").touch()
while True: time.sleep(0.02)
"""
    shop.commands(["a", "b"], {"work": stubborn})
    runner = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned")
    bundle = shop.bundle(0, "work")
    shop.wait_for(lambda: (bundle / "ready").exists())
    runner.send_signal(signal.SIGINT)
    shop.wait_for(lambda: (bundle / "asked").exists())
    assert runner.poll() is None  # ten seconds of grace have begun
    runner.send_signal(signal.SIGINT)
    asked = time.monotonic()
    out, _ = runner.communicate(timeout=60)
    assert time.monotonic() - asked < 5
    assert runner.returncode == 130, out
    assert shop.marked_processes() == []
    (finished,) = shop.events("step.finished")
    assert (finished.data["status"], finished.data["signal"]) == ("interrupted", "SIGKILL")


def test_an_interrupt_while_the_endpoint_is_made_ready(touchstone_queue):
    shop = touchstone_queue
    shop.queue.write_text(shop.queue.read_text().replace("poll_interval_s: 0.02", "poll_interval_s: 300"))
    runner = shop.start("night", "queue.yaml")
    shop.wait_for_event("settle.started")
    runner.send_signal(signal.SIGINT)
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 130, out
    assert [e.kind for e in shop.events()[-3:]] == ["settle.started", "entry.finished", "night.interrupted"]
    assert shop.summary()["pending"] == 3


def test_an_interrupt_that_comes_as_a_step_ends_starts_no_other(workshop):
    """The eval was fine and is kept; no later step is started to be ended at once."""
    shop = workshop
    first = "done()\nos.kill(os.getppid(), signal.SIGINT)\n"
    shop.commands(["a"], {"first": first, "second": "done()"})
    result = shop.night()
    assert result.returncode == 130
    assert shop.attempts(0, "second") == []
    assert [e.step for e in shop.events("step.started")] == ["first"]


def test_a_closed_terminal_does_not_end_the_night(touchstone_queue):
    shop = touchstone_queue
    runner = waiting(shop)
    runner.send_signal(signal.SIGHUP)
    shop.go.touch()
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 0, out
    assert shop.summary()["complete"] == 3
    assert [w["message"] for w in shop.summary()["warnings"]] == ["the terminal was closed; the night goes on"]


def test_a_reader_of_the_progress_that_has_gone_costs_nothing(workshop):
    shop = workshop
    shop.commands(
        ["a", "b", "c"],
        {"work": "while not os.path.exists('go'): time.sleep(0.02)\nif model == 'b': sys.exit(1)\ndone()"},
    )
    runner = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned")
    runner.stdout.close()
    shop.go.touch()
    assert runner.wait(timeout=60) == 1
    assert [e["status"] for e in shop.summary()["entries"]] == ["complete", "failed", "complete"]


# --- every stage of the loop ------------------------------------------------------------------------------------

HANG = "while True: time.sleep(0.02)\n"


def stopped(pid):
    return psutil.Process(pid).status() == psutil.STATUS_STOPPED


def at_reset(shop):
    shop.write("slow.py", "import time\ntime.sleep(300)\n")
    shop.commands(["a"], {"work": HANG}, defaults=f'reset_command: "{sys.executable} slow.py"')
    return shop.start("night", "queue.yaml"), "reset.started"


def at_settle(shop):
    shop.commands(["a"], {"work": HANG})
    shop.queue.write_text(shop.queue.read_text().replace("poll_interval_s: 0.02", "poll_interval_s: 300"))
    return shop.start("night", "queue.yaml"), "settle.started"


def at_cooldown(shop):
    shop.commands(["a"], {"work": HANG}, defaults='reset_command: ""\ncooldown_s: 300')
    return shop.start("night", "queue.yaml"), "cooldown.started"


def at_retry_wait(shop):
    shop.commands(["a"], {"work": "sys.exit(1)"}, defaults='reset_command: ""\nretries: 1\nretry_wait_s: 300')
    return shop.start("night", "queue.yaml"), "retry.waiting"


def at_start_wait(shop):
    shop.commands(["a"], {"work": HANG})
    later = datetime.now().astimezone() + timedelta(hours=1)
    return shop.start("night", "queue.yaml", "--start-at", later.isoformat(timespec="seconds")), "night.waiting"


def at_step(shop):
    shop.commands(["a"], {"work": HANG})
    return shop.start("night", "queue.yaml"), "step.spawned"


def between(shop):
    shop.commands(
        ["a", "b"], {"work": "(bundle / 'on').touch()\nwhile not os.path.exists('go'): time.sleep(0.02)\ndone()"}
    )
    runner = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned")
    assert shop.runq("pause").returncode == 0
    shop.go.touch()
    return runner, "night.paused"


STAGES = [at_reset, at_settle, at_cooldown, at_retry_wait, at_start_wait, at_step, between]


@pytest.mark.parametrize(("stage", "last"), list(zip(STAGES, ["SIGINT", "SIGTERM"] * 4, strict=False)))
def test_every_signal_does_the_same_at_every_stage(workshop, stage, last):
    """Ctrl-Z stops, `fg` goes on, a closed terminal is noted, and what ends the night ends it at once."""
    shop = workshop
    runner, kind = stage(shop)
    shop.wait_for_event(kind)
    runner.send_signal(signal.SIGTSTP)
    shop.wait_for(lambda: stopped(runner.pid))
    shop.wait_for_event("night.frozen")
    assert json.loads(shop.runq("status", "--json").stdout)["state"] == "frozen"
    assert all(process.status() == psutil.STATUS_STOPPED for process in shop.marked_processes())
    assert shop.events("night.continued") == []
    runner.send_signal(signal.SIGCONT)
    shop.wait_for_event("night.continued")
    assert not any(process.status() == psutil.STATUS_STOPPED for process in shop.marked_processes())
    runner.send_signal(signal.SIGHUP)
    assert shop.wait_for_event("warning").data["message"] == "the terminal was closed; the night goes on"
    runner.send_signal(getattr(signal, last))
    out, _ = runner.communicate(timeout=15)
    assert runner.returncode == 130, out
    assert (shop.events()[-1].kind, shop.events()[-1].data["reason"]) == ("night.interrupted", last)
    assert len(shop.events("warning")) == 1
    assert shop.marked_processes() == []
    assert shop.summary()["state"] == "interrupted"
    assert not list(shop.runs.glob("*.control"))


FAMILY = """
child = subprocess.Popen([sys.executable, '-c', 'import time\\nwhile True: time.sleep(0.02)'], start_new_session=True)
(bundle / 'child').write_text(str(child.pid))
while not os.path.exists('go'): time.sleep(0.02)
child.kill()
done()
"""


def test_ctrl_z_stops_the_whole_step_and_the_time_counts_against_nothing(workshop):
    shop = workshop
    shop.commands(["a"], {"work": FAMILY}, defaults='reset_command: ""\nstep_timeout_s: { work: 4 }')
    runner = shop.start("night", "queue.yaml")
    spawned = shop.wait_for_event("step.spawned")
    family = [spawned.data["pid"], int(shop.wait_for(lambda: _text(shop.bundle(0, "work") / "child")))]
    runner.send_signal(signal.SIGTSTP)
    shop.wait_for(lambda: stopped(runner.pid))
    assert [stopped(pid) for pid in family] == [True, True]
    time.sleep(6)  # longer than the timeout
    assert [stopped(pid) for pid in (runner.pid, *family)] == [True, True, True]
    runner.send_signal(signal.SIGCONT)
    continued = shop.wait_for_event("night.continued")
    assert 6 <= continued.data["seconds"] < 9
    shop.wait_for(lambda: not any(stopped(pid) for pid in family))
    shop.go.touch()
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 0, out
    (finished,) = shop.events("step.finished")
    assert finished.data["status"] == "ok" and finished.data["seconds"] < 4
    assert [e.kind for e in shop.events("night.frozen", "night.continued", "night.slept")] == [
        "night.frozen",
        "night.continued",
    ]


def _text(path):
    return path.exists() and path.read_text()


# A machine whose time asleep stands in a file: its monotonic clock stands still meanwhile, as Linux's does.
SLEEPER = """
import time
from pathlib import Path
from runq import suspend
def asleep():
    try:
        return float(Path('asleep').read_text())
    except (OSError, ValueError):
        return 0.0
suspend.machine_clock = lambda: suspend.MachineClock(
    awake=lambda: time.monotonic() - asleep(), asleep=asleep, least_s=1.0, how='stub')
"""


@pytest.mark.parametrize(("asleep", "status"), [(6.0, "ok"), (0.0, "timeout")])
def test_a_machine_that_slept_is_written_down_and_costs_no_step_its_time(workshop, asleep, status):
    """The runner is stopped for longer than the timeout. Without the machine's word that it slept, that time counts."""
    shop = workshop
    step = "while not os.path.exists('go'): time.sleep(0.02)\ndone()"
    shop.commands(["a"], {"work": step}, defaults='reset_command: ""\nstep_timeout_s: { work: 4 }')
    runner = shop.start("night", "queue.yaml", code=SLEEPER)
    shop.wait_for_event("step.spawned")
    runner.send_signal(signal.SIGSTOP)
    time.sleep(6)
    shop.write("asleep.part", str(asleep)).rename(shop.folder / "asleep")
    runner.send_signal(signal.SIGCONT)
    shop.wait_for_event("night.slept" if asleep else "step.finished")
    shop.go.touch()
    out, _ = runner.communicate(timeout=60)
    (finished,) = shop.events("step.finished")
    assert finished.data["status"] == status, out
    assert [e.data for e in shop.events("night.slept")] == ([{"seconds": 6.0, "how": "stub"}] if asleep else [])
    assert shop.events("warning") == []
