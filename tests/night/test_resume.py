"""A resume continues by content: what is done stays, what changed runs again, and the plan says why."""

import json
import os
import signal

import psutil
import pytest


def started(shop, after=0):
    return [(e.entry, e.step, e.attempt) for e in shop.events("step.started") if e.id > after]


def last_event(shop):
    return shop.events()[-1].id


def plan(shop, *words):
    result = shop.runq("plan", "queue.yaml", "--resume", "--json", *words)
    assert result.returncode == 0, result.stderr
    return {
        e["id"]: {s["name"]: (s["run"], s["why"]) for s in e["steps"]} for e in json.loads(result.stdout)["entries"]
    }


def entries(shop):
    head, _, body = shop.queue.read_text().partition("entries:\n")
    chunks = ["  - " + chunk for chunk in ("\n" + body).split("\n  - ")[1:]]
    return head + "entries:\n", [chunk if chunk.endswith("\n") else chunk + "\n" for chunk in chunks]


@pytest.fixture
def done(touchstone_queue):
    shop = touchstone_queue
    assert shop.night().returncode == 0
    return shop


def test_nothing_left_is_said_and_is_success(done):
    before = last_event(done)
    result = done.night("--resume")
    assert result.returncode == 0
    assert f"nothing is left to run in night {done.nights()[0]}" in result.stderr
    assert last_event(done) == before


def test_fault_6_reordered_inserted_and_removed_entries_keep_their_numbers(done):
    start, before = done.summary()["started"], last_event(done)
    head, (first, second, third) = entries(done)
    new = third.replace("model: three", "model: four")
    done.queue.write_text(head + new + third + first)
    assert plan(done) == {
        3: {"eval": (True, "has not run")},
        2: {"eval": (False, "done")},
        0: {"eval": (False, "done"), "judge": (False, "done")},
    }
    assert done.night("--resume").returncode == 0
    assert started(done, before) == [(3, "eval", 1)]
    summary = done.summary()
    assert [(e["index"], e["id"], e["model_id"]) for e in summary["entries"]] == [
        (0, 3, "four"),
        (1, 2, "three"),
        (2, 0, "one"),
    ]
    assert (summary["total"], summary["done"], summary["started"]) == (3, 3, start)
    # The removed entry comes back: its number and its result are still its own.
    before = last_event(done)
    done.queue.write_text(head + second + new + third + first)
    assert plan(done)[1] == {"eval": (False, "done"), "judge": (False, "done")}
    result = done.night("--resume")
    assert (result.returncode, started(done, before)) == (0, [])


def test_fault_6_a_renamed_pack_is_the_same_pack(done):
    (done.folder / "packs/office.yaml").rename(done.folder / "packs/work.yaml")
    done.queue.write_text(done.queue.read_text().replace("packs/office.yaml", "packs/work.yaml"))
    assert all(not run for steps in plan(done).values() for run, _ in steps.values())
    assert sorted(plan(done)) == [0, 1, 2]


def test_fault_6_an_edited_judge_configuration_runs_only_the_judges(done):
    before = last_event(done)
    done.write("judge.yaml", "endpoint: { base_url: http://127.0.0.1:9 }\nmodel: judge-a\nmax_tokens: 9\n")
    assert plan(done) == {
        0: {"eval": (False, "done"), "judge": (True, "judge.yaml changed")},
        1: {"eval": (False, "done"), "judge": (True, "judge.yaml changed")},
        2: {"eval": (False, "done")},
    }
    assert done.night("--resume").returncode == 0
    assert started(done, before) == [(0, "judge", 2), (1, "judge", 2)]
    # A reset precedes the first step that really runs.
    assert [(e.entry, e.data["before_step"]) for e in done.events("reset.started") if e.id > before] == [
        (0, "judge"),
        (1, "judge"),
    ]


def test_fault_6_an_edited_pack_runs_its_entries_again(done):
    done.write("packs/home.yaml", "id: home\n")
    head, (first, second, third) = entries(done)
    done.queue.write_text(head + first + second + third.replace("office", "home"))
    assert done.night("--resume").returncode == 0
    before = last_event(done)
    done.write("packs/home.yaml", "id: home\ntitle: New\n")
    number = next(iter({0, 1, 2, 3} & set(plan(done)) - {0, 1}))
    assert plan(done)[number] == {"eval": (True, "home.yaml changed")}
    assert done.night("--resume").returncode == 0
    assert started(done, before) == [(number, "eval", 2)]


def test_fault_6_what_was_not_asked_does_not_count(done):
    """Timeouts, the place of the queue and its comments are no part of what was asked."""
    text = done.queue.read_text().replace("{ eval: 60, judge: 60 }", "{ eval: 90 }")
    done.queue.write_text(f"# tonight\n{text}")
    assert all(not run for steps in plan(done).values() for run, _ in steps.values())


def test_damaged_or_lost_answers_run_again(done):
    answers = done.bundle(0, "eval") / "responses.jsonl"
    answers.write_text(answers.read_text().replace("answer 0", "answer 9"))
    (done.bundle(2, "eval") / "responses.jsonl").unlink()
    assert plan(done) == {
        0: {"eval": (True, "responses.jsonl has changed since"), "judge": (True, "eval runs again")},
        1: {"eval": (False, "done"), "judge": (False, "done")},
        2: {"eval": (True, "responses.jsonl is gone")},
    }


def kill_in_the_second_judge(shop):
    """Start a night, and SIGKILL its runner while the second entry's judge runs. Returns the judge's pid."""
    text = shop.queue.read_text().replace("    judge_model: judge-a\n", "    judge_model: wait+sampler\n")
    shop.queue.write_text(text)
    runner = shop.start("night", "queue.yaml")
    spawned = shop.wait_for_event("step.spawned", entry=1, step="judge")
    shop.wait_for(lambda: (shop.bundle(1, "judge") / "sampler.pid").exists())
    runner.kill()
    runner.wait()
    return spawned.data["pid"]


def test_must_show_4_a_killed_runner_is_resumed_with_nothing_lost_and_nothing_twice(touchstone_queue):
    shop = touchstone_queue
    orphan = kill_in_the_second_judge(shop)
    sampler = int((shop.bundle(1, "judge") / "sampler.pid").read_text())
    assert psutil.pid_exists(orphan) and psutil.pid_exists(sampler)
    part = [(e.id, e.hash) for e in shop.events()]
    first, answers = shop.files(shop.bundle(0, "eval")), shop.files(shop.bundle(1, "eval"))["responses.jsonl"]
    assert json.loads(shop.runq("status", "--json").stdout)["state"] == "died"

    resumed = shop.start("night", "queue.yaml", "--resume")
    shop.wait_for_event("night.resumed")
    assert shop.gone(orphan) and shop.gone(sampler)  # before anything else
    shop.go.touch()
    out, _ = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, out

    after = [e for e in shop.events() if e.id > part[-1][0]]
    assert [(e.id, e.hash) for e in shop.events()][: len(part)] == part
    assert [e.entry for e in after if e.entry == 0] == []
    assert shop.files(shop.bundle(0, "eval")) == first
    assert shop.files(shop.bundle(1, "eval"))["responses.jsonl"] == answers
    assert started(shop, part[-1][0]) == [(1, "judge", 2), (2, "eval", 1)]
    assert shop.attempts(1, "eval") == [(1, "ok")]
    assert shop.attempts(1, "judge") == [(1, "interrupted"), (2, "ok")]
    # The death is told before the night goes on.
    assert [(e.kind, e.data.get("reason", "")) for e in after[:2]] == [
        ("step.finished", "the runner died while it was running"),
        ("night.interrupted", "the runner died"),
    ]
    assert after[2].kind == "night.resumed"
    assert shop.marked_processes() == []
    assert len(shop.nights()) == 1
    verify = shop.runq("replay", "--verify")
    assert (verify.returncode, "hash chain whole" in verify.stdout) == (0, True)
    summary = shop.summary()
    assert (summary["state"], summary["complete"], summary["resumes"]) == ("finished", 3, 1)


def test_a_fresh_night_after_a_killed_one_ends_what_it_left(touchstone_queue):
    shop = touchstone_queue
    orphan = kill_in_the_second_judge(shop)
    shop.go.touch()
    dead = shop.nights()[0]
    assert shop.night().returncode == 0
    assert shop.gone(orphan)
    with shop.reader() as reader:
        assert reader.night_summary(dead)["state"] == "interrupted"
    assert len(shop.nights()) == 2
    assert shop.attempts(1, "judge") == [(1, "ok")]


def slow_reset(shop):
    shop.write("evict.py", "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\n")
    text = shop.queue.read_text()
    return text.replace('reset_command: ""', "reset_command: [python, evict.py]")


@pytest.mark.parametrize(
    ("change", "kind", "step"),
    [
        (slow_reset, "reset.started", None),
        (
            lambda s: s.queue.read_text().replace("poll_interval_s: 0.02", "poll_interval_s: 300"),
            "settle.started",
            None,
        ),
        (lambda s: s.queue.read_text().replace("entries:", "  cooldown_s: 300\nentries:"), "cooldown.started", None),
        (lambda s: s.queue.read_text().replace("model: one", "model: wait"), "step.spawned", "eval"),
    ],
    ids=["reset", "settle", "cooldown", "eval"],
)
def test_a_runner_killed_anywhere_in_an_entry_resumes(touchstone_queue, change, kind, step):
    shop = touchstone_queue
    text = shop.queue.read_text()
    shop.queue.write_text(change(shop))
    runner = shop.start("night", "queue.yaml")
    shop.wait_for_event(kind, step=step)
    runner.kill()
    runner.wait()
    shop.go.touch()
    if step is None:
        shop.queue.write_text(text)  # settings are no part of what was asked
    before = last_event(shop)
    result = shop.night("--resume")
    assert result.returncode == 0, result.stderr
    attempt = 2 if step else 1
    assert started(shop, before) == [
        (0, "eval", attempt),
        (0, "judge", 1),
        (1, "eval", 1),
        (1, "judge", 1),
        (2, "eval", 1),
    ]
    assert shop.summary()["state"] == "finished"
    assert shop.runq("replay", "--verify").returncode == 0


@pytest.mark.parametrize("kind", ["step.started", "entry.finished"])
def test_a_runner_killed_right_after_an_event_resumes(touchstone_queue, kind):
    """Between the intention and the spawn, and between two entries."""
    shop = touchstone_queue
    die = f"""
import os, signal
from runq_journal.journal import Journal
append = Journal.append
def dying(self, event, **where):
    stored = append(self, event, **where)
    if event.kind == {kind!r}:
        os.kill(os.getpid(), signal.SIGKILL)
    return stored
Journal.append = dying
"""
    assert shop.night(code=die).returncode == -signal.SIGKILL
    before = last_event(shop)
    assert shop.events()[-1].kind == kind
    assert shop.night("--resume").returncode == 0
    first = [(0, "eval", 2), (0, "judge", 1)] if kind == "step.started" else []
    assert started(shop, before) == [*first, (1, "eval", 1), (1, "judge", 1), (2, "eval", 1)]
    assert shop.summary()["complete"] == 3


def test_a_pid_that_came_round_again_is_spared(touchstone_queue):
    """The recorded pid with another creation time is somebody else's process."""
    shop = touchstone_queue
    shop.queue.write_text(shop.queue.read_text().replace("model: one", "model: wait"))
    lie = f"""
import attrs
from runq_journal.journal import Journal
append = Journal.append
def lying(self, event, **where):
    if event.kind == "step.spawned":
        event = attrs.evolve(event, pid={os.getpid()}, created_at=1000.0)
    return append(self, event, **where)
Journal.append = lying
"""
    runner = shop.start("night", "queue.yaml", code=lie)
    shop.wait_for_event("step.spawned")
    runner.kill()
    runner.wait()
    shop.go.touch()
    assert shop.night("--resume").returncode == 0  # and this test is still alive
    assert shop.marked_processes() == []


def test_a_runner_killed_before_it_could_end_the_night_is_given_its_end(touchstone_queue):
    """Nothing is left to run, but the night and its summary have no end yet."""
    shop = touchstone_queue
    die = """
import os, signal
import runq.night_loop
runq.night_loop.NightFinished = lambda **_: os.kill(os.getpid(), signal.SIGKILL)
"""
    assert shop.night("--only", "e2", code=die).returncode == -signal.SIGKILL
    assert shop.summary()["state"] == "running"
    # Not the night's end as long as anything is left.
    assert "nothing is left" in shop.night("--resume", "--only", "e2").stderr
    assert shop.summary()["state"] == "interrupted"
    assert shop.night("--resume", code=die).returncode == -signal.SIGKILL
    assert shop.night("--resume").returncode == 0
    summary = shop.summary()
    assert (summary["state"], summary["complete"]) == ("finished", 3)
    assert [e.kind for e in shop.events()[-2:]] == ["night.interrupted", "night.finished"]


def test_the_summary_of_a_night_that_died_says_so_once_another_night_has_noticed(touchstone_queue):
    shop = touchstone_queue
    shop.queue.write_text(shop.queue.read_text().replace("model: one", "model: wait"))
    runner = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned")
    runner.kill()
    runner.wait()
    dead = shop.nights()[0]
    assert shop.night("--only", "e2").returncode == 0
    summary = shop.summary(dead)
    assert (summary["state"], summary["entries"][0]["eval_status"]) == ("interrupted", "pending")
    before = (shop.queue_folder(dead) / "summary.json").read_bytes()
    assert shop.runq("replay", dead).returncode == 0
    assert (shop.queue_folder(dead) / "summary.json").read_bytes() == before
