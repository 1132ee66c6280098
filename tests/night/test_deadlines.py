"""--until, --for, --start-at: what starts, what is left, and what plan and summary say about it."""

import json
import signal
import time
from datetime import datetime, timedelta

from runq.replay import summary_at


def at(seconds):
    """A moment so far from now, as one writes it."""
    return (datetime.now() + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def steps(shop):
    return [(e.entry, e.step) for e in shop.events("step.started")]


def left(shop):
    return [(one["entry"], one["step"]) for one in shop.summary()["left"]]


def replayed(shop):
    return summary_at(shop.journal, shop.events()[-1].id) == (shop.queue_folder() / "summary.json").read_text()


def test_a_deadline_in_the_past_starts_nothing_and_says_how_long_it_would_take(workshop):
    shop = workshop
    shop.commands(["a", "b"], {"work": "time.sleep(0.2)\ndone()", "then": "done()"})
    assert shop.night().returncode == 0
    count = len(shop.events("step.started"))
    until = "2026-01-01T07:00"
    plan = shop.runq("plan", "queue.yaml", "--until", until, "--json")
    deadline = json.loads(plan.stdout)["deadline"]
    assert (deadline["left"], deadline["left_unknown"], deadline["until"][:16]) == (4, 0, until)
    assert deadline["left_s"] >= 0.4
    text = shop.runq("plan", "queue.yaml", "--until", until).stdout
    assert text.count("would not start: the deadline 2026-01-01 07:00 has passed") == 4
    assert "would leave 4 steps, which need about" in text

    result = shop.night("--until", until)
    assert result.returncode == 1
    assert len(shop.events("step.started")) == count and len(shop.events("reset.started")) == 2
    assert left(shop) == [(0, "work"), (0, "then"), (1, "work"), (1, "then")]
    assert all(one["usual_s"] > 0 and one["reason"].endswith("has passed") for one in shop.summary()["left"])
    assert [e["status"] for e in shop.summary()["entries"]] == ["pending"] * 2
    assert "## Left for another time" in shop.markdown() and "4 steps, which need about" in shop.markdown()
    assert "left for another time: 4 steps, which need about" in result.stderr
    assert "left for another time: 4 steps, which need about" in shop.runq("status").stdout
    assert replayed(shop)

    assert shop.night("--resume").returncode == 0  # without a deadline
    assert shop.summary()["left"] == []


def test_a_near_deadline_starts_what_fits_by_its_history(workshop):
    shop = workshop
    slow = "time.sleep({'long': 6.0, 'short': 0.1}[model] if not os.path.exists('quick') else 0)\ndone()"
    shop.commands(["long", "short"], {"work": slow, "then": "done()"})
    assert shop.night().returncode == 0
    shop.write("quick", "")
    count = len(steps(shop))
    result = shop.night("--for", "5s")
    assert result.returncode == 1
    assert steps(shop)[count:] == [(1, "work"), (1, "then")]
    assert left(shop) == [(0, "work"), (0, "then")]
    first, second = shop.summary()["left"]
    assert first["reason"].startswith("it usually takes 6 s, and the deadline ") and 6 <= first["usual_s"] < 9
    assert second["reason"] == "the step before it is not started"
    assert shop.summary()["warnings"] == []
    window = shop.events("night.started")[-1].data["window"]
    assert window == shop.summary()["window"] and window["hard"] is False and window["start_at"] is None
    assert replayed(shop)


def test_a_step_without_history_starts_with_a_warning_and_is_not_ended(workshop):
    shop = workshop
    shop.commands(["a", "b"], {"work": "time.sleep(3)\ndone()", "then": "done()"})
    result = shop.night("--until", at(2.5))
    assert result.returncode == 1
    # It ran past the deadline; what came after it, even of its own entry, did not start.
    assert [(e.entry, e.step, e.data["status"]) for e in shop.events("step.finished")] == [(0, "work", "ok")]
    assert left(shop) == [(0, "then"), (1, "work"), (1, "then")]
    (warning,) = shop.summary()["warnings"]
    assert (warning["entry"], "no history" in warning["message"]) == (0, True)
    assert [e["status"] for e in shop.summary()["entries"]] == ["pending", "pending"]
    assert "3 steps without history" in shop.markdown()


def test_hard_ends_a_step_at_the_deadline(workshop):
    shop = workshop
    shop.commands(["a", "b"], {"work": "time.sleep(60)\ndone()"}, defaults='reset_command: ""\nretries: 3')
    began = time.monotonic()
    assert shop.night("--for", "3s", "--hard").returncode == 1
    assert time.monotonic() - began < 30
    (finished,) = shop.events("step.finished")
    assert (finished.data["status"], finished.data["reason"]) == ("interrupted", "the deadline came while it ran")
    assert left(shop) == [(0, "work"), (1, "work")]
    assert [e["eval_status"] for e in shop.summary()["entries"]] == ["pending", "pending"]
    assert shop.marked_processes() == []


def test_a_retry_that_would_come_after_the_deadline_is_not_waited_for(workshop):
    shop = workshop
    for when in ("now", "end"):
        shop.commands(
            ["a"],
            {"work": "sys.exit(1)"},
            defaults=f'reset_command: ""\nretries: 1\nretry_wait_s: 600\nretry_when: {when}',
        )
        began = time.monotonic()
        assert shop.night("--for", "5m").returncode == 1
        assert time.monotonic() - began < 60
        (one,) = shop.summary()["left"]
        assert one["reason"].startswith("its retry would come after the deadline ")
        assert shop.summary()["entries"][0]["status"] == "failed"


def test_a_night_waits_for_its_start_with_its_locks_and_can_be_interrupted(workshop):
    shop = workshop
    shop.commands(["a"], {"work": "done()"})
    refused = shop.runq("night", "missing.yaml", "--start-at", at(3600))
    assert refused.returncode == 2
    runner = shop.start("night", "queue.yaml", "--start-at", at(3600))
    shop.wait_for_event("night.waiting")
    assert shop.night().returncode == 3  # it holds the locks
    assert "waiting for its time" in shop.runq("status").stdout
    runner.send_signal(signal.SIGINT)
    assert runner.wait(30) == 130
    assert (shop.summary()["state"], steps(shop)) == ("interrupted", [])

    start = datetime.now() + timedelta(seconds=3)
    result = shop.night("--start-at", start.isoformat())
    assert result.returncode == 0 and "waiting until" in result.stderr
    (started,) = shop.events("entry.started")
    assert datetime.fromisoformat(started.at).timestamp() >= start.timestamp()
    assert shop.night("--start-at", "2026-01-01T23:00").returncode == 0  # past: at once
    assert len(shop.events("night.waiting")) == 2
