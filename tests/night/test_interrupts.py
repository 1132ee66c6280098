"""Ctrl-C, SIGTERM, a closed terminal: recorded, nothing left running, and the night can go on."""

import signal
import time

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
