"""Second tries: at the end of the night, not at all for an entry that kills the runner, and an end to failures."""

import json
import os
import signal

from runq.replay import summary_at

AT_END = 'reset_command: ""\nretries: 2\nretry_when: end'
COUNTED = "n = len(list(Path('tries').glob(model + '*')))\n(Path('tries') / f'{model}{n}').touch()\n"


def started(shop):
    return [(e.entry, e.step, e.attempt) for e in shop.events("step.started")]


def test_what_failed_gets_its_next_turn_when_every_other_entry_had_its_own(workshop):
    shop = workshop
    steps = {
        "first": "done()",
        "second": COUNTED + "if model == 'a' and n < 2 or model == 'b' and n < 1: sys.exit(1)\ndone()",
    }
    shop.commands(["a", "b", "c"], steps, defaults=AT_END + "\nretry_wait_s: 0.4")
    (shop.folder / "tries").mkdir()
    result = shop.night()
    assert result.returncode == 0, result.stderr
    assert started(shop) == [
        *((entry, step, 1) for entry in range(3) for step in ("first", "second")),
        (0, "second", 2),
        (1, "second", 2),
        (0, "second", 3),
    ]
    waits = {(e.entry, e.step, e.data["number"], e.data["of"]) for e in shop.events("retry.waiting")}
    assert waits <= {(0, "second", 1, 2), (1, "second", 1, 2), (0, "second", 2, 2)}
    # The pause counts from the attempt before, whatever else ran meanwhile.
    finished = {(e.entry, e.attempt): e.elapsed_s for e in shop.events("step.finished") if e.step == "second"}
    again = {(e.entry, e.attempt): e.elapsed_s for e in shop.events("step.started") if e.step == "second"}
    assert again[0, 2] - finished[0, 1] >= 0.4 and again[0, 3] - finished[0, 2] >= 0.4
    entry = shop.summary()["entries"][0]
    second = entry["steps"][1]
    assert [attempt["status"] for attempt in second["attempts"]] == ["failed", "failed", "ok"]
    assert len({attempt["log"] for attempt in second["attempts"]}) == 3
    assert second["all_seconds"] == round(sum(attempt["seconds"] for attempt in second["attempts"]), 3)
    assert "- 0 a: second ok after 3 attempts" in shop.markdown()


def test_only_the_ends_that_are_named_are_tried_again_and_the_pause_grows(workshop):
    shop = workshop
    script = COUNTED + "if n < 2: time.sleep(60)\nsys.exit(3)"
    more = "retries: 5\nretry_on: [timeout]\nretry_wait_s: 0.05\nretry_backoff: 3\nstep_timeout_s: { work: 0.5 }"
    shop.commands(["a"], {"work": script}, defaults=f'reset_command: ""\n{more}')
    (shop.folder / "tries").mkdir()
    assert shop.night().returncode == 1
    assert shop.attempts(0, "work") == [(1, "timeout"), (2, "timeout"), (3, "failed")]
    assert [e.data["seconds"] for e in shop.events("retry.waiting")] == [0.05, 0.15]


def test_a_row_of_failures_ends_the_night_and_leaves_the_rest(workshop):
    shop = workshop
    shop.commands(
        ["a", "b", "c", "d"], {"work": "if model != 'a' and not os.path.exists('mended'): sys.exit(1)\ndone()"}
    )
    shop.queue.write_text("max_failures: 5\n" + shop.queue.read_text())
    result = shop.night("--max-failures", "2")
    assert result.returncode == 1
    assert [e[0] for e in started(shop)] == [0, 1, 2]
    summary = shop.summary()
    assert summary["stopped"] == "max_failures ended the night: 2 entries in a row failed"
    assert [e["status"] for e in summary["entries"]] == ["complete", "failed", "failed", "pending"]
    assert "The night ended early: max\\_failures ended the night: 2 entries in a row failed." in shop.markdown()
    shop.write("mended", "")
    assert shop.night("--resume").returncode == 0
    assert shop.summary()["stopped"] is None
    assert shop.events("night.started")[0].data["max_failures"] == 2
    assert shop.events("night.resumed")[0].data["max_failures"] == 5


def killer(shop):
    """Entry b ends the runner, which is its parent, until it is mended."""
    script = (
        "if model == 'b' and not os.path.exists('mended'):\n    os.kill(os.getppid(), 9)\n    time.sleep(60)\ndone()"
    )
    shop.commands(["a", "b", "c"], {"work": script, "then": "done()"})


def test_an_entry_that_kills_the_runner_twice_is_set_aside(workshop):
    shop = workshop
    killer(shop)
    assert shop.night().returncode == -signal.SIGKILL
    assert shop.night("--resume").returncode == -signal.SIGKILL
    planned = json.loads(shop.runq("plan", "queue.yaml", "--resume", "--json").stdout)["entries"][1]["steps"]
    assert [(s["run"], s["why"]) for s in planned] == [(False, "set aside: the runner died 2 times while it ran")] * 2
    third = shop.night("--resume")
    assert third.returncode == 1, third.stderr
    assert "runq rerun e1" in third.stderr
    assert [e[:2] for e in started(shop)] == [
        (0, "work"),
        (0, "then"),
        (1, "work"),
        (1, "work"),
        (2, "work"),
        (2, "then"),
    ]
    entry = shop.summary()["entries"][1]
    assert (entry["status"], entry["eval_status"], entry["judge_status"]) == ("gave_up", "failed", "skipped")
    assert entry["error"] == "set aside: the runner died 2 times while it ran"
    assert [step["status"] for step in entry["steps"]] == ["gave_up"]
    assert shop.summary()["failed"] == 1
    assert shop.marked_processes() == []
    last = shop.events()[-1].id
    assert summary_at(shop.journal, last) == (shop.queue_folder() / "summary.json").read_text()

    fourth = shop.night("--resume")  # and it is not asked for again
    assert fourth.returncode == 1 and "nothing is left" in fourth.stderr
    assert shop.events()[-1].id == last

    shop.write("mended", "")
    assert shop.runq("rerun", "e1").returncode == 0
    assert shop.events("night.resumed")[-1].data["lifted"] == [1]
    assert [e["status"] for e in shop.summary()["entries"]] == ["complete"] * 3


def test_what_was_set_aside_is_tried_by_a_flag_or_when_it_has_changed(workshop):
    shop = workshop
    killer(shop)
    for words in ((), ("--resume",), ("--resume", "--with-set-aside")):
        assert shop.night(*words).returncode == -signal.SIGKILL
    # The flag made the count begin anew: this is the first death since.
    assert shop.night("--resume").returncode == -signal.SIGKILL
    assert shop.night("--resume").returncode == 1
    assert shop.summary()["entries"][1]["status"] == "gave_up"
    shop.queue.write_text(
        shop.queue.read_text().replace("'{bundle}'], artifacts: [work.txt]", "'{bundle}', x], artifacts: [work.txt]")
    )
    shop.write("mended", "")
    assert shop.night("--resume").returncode == 0


def test_a_night_that_is_interrupted_is_not_held_against_its_entry(workshop):
    shop = workshop
    shop.commands(["a"], {"work": "if os.path.exists('slow'): time.sleep(60)\ndone()"})
    shop.write("slow", "")
    for number, words in enumerate(((), ("--resume",), ("--resume",)), start=1):
        runner = shop.start("night", "queue.yaml", *words)
        shop.wait_for_event("step.spawned", attempt=number)
        os.kill(runner.pid, signal.SIGINT)
        assert runner.wait(30) == 130
    (shop.folder / "slow").unlink()
    assert shop.night("--resume").returncode == 0
    assert shop.attempts(0, "work")[-1] == (4, "ok")
