"""A runner killed at random moments, resumed until the night is complete: the laws hold whatever the moment.

``RUNQ_CRASH_RUNS`` sets how many moments (12), ``RUNQ_CRASH_SEED`` where they begin.
"""

import os
import random
import signal
import sqlite3
import sys
import time
from contextlib import closing

import pytest

from runq.replay import summary_at

RUNS = int(os.environ.get("RUNQ_CRASH_RUNS", "12"))
FIRST_SEED = int(os.environ.get("RUNQ_CRASH_SEED", "1"))


def prepare(shop):
    shop.commands(["a", "b", "c"], {"first": "", "second": ""}, defaults="reset: { backend: command, command: 'true' }")
    text = shop.queue.read_text()
    for step in ("first", "second"):
        text = text.replace(f"'{{python}}', {step}.py", f"sh, {step}.sh")
        # Quick programs: the moments then fall into the runner's own work as often as into a step.
        shop.write(f"{step}.sh", f'sleep 0.04 & sleep 0.02; echo "$1" > "$2/{step}.txt"\n')
    shop.queue.write_text(text)


def without_times(summary):
    """What of a summary does not depend on when and how often something ran."""
    kept = ("index", "id", "model_id", "config", "pack", "eval_status", "judge_status", "error", "status", "reason",
            "reset_verdict", "settle_status", "baseline_proven", "answers", "answers_failed")  # fmt: skip
    return {
        **{name: summary[name] for name in ("total", "done", "state", "complete", "failed", "pending", "queue_sha256")},
        "entries": [
            {name: entry[name] for name in kept} | {"steps": [(s["name"], s["status"]) for s in entry["steps"]]}
            for entry in summary["entries"]
        ],
    }


@pytest.fixture(scope="module")
def undisturbed(workshop_class, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    shop = workshop_class(folder, folder / "state")
    prepare(shop)
    assert shop.night().returncode == 0
    return without_times(shop.summary()), len(shop.events())


def count(shop):
    try:
        with closing(sqlite3.connect(f"{shop.journal.as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0]
    except sqlite3.Error:
        return 0


def kill_at(shop, runner, events, delay_s):
    """SIGKILL the runner so long after its journal has so many events, if it lives so long."""
    while runner.poll() is None and count(shop) < events:
        time.sleep(0.001)
    time.sleep(delay_s)
    runner.kill()
    runner.communicate()


def stored(shop):
    return [(e.id, e.hash) for e in shop.events()] if count(shop) else []


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + RUNS))
def test_a_night_survives_its_runners_death_at_any_moment(workshop, undisturbed, seed):
    print(f"seed {seed}")
    shop, rng = workshop, random.Random(seed)
    expected, total = undisturbed
    prepare(shop)
    seen = []
    resume = ["--resume", "--with-set-aside"]  # the deaths are not the entries' doing
    for death in range(rng.choice((1, 1, 2))):
        words = resume if seen else []
        events = rng.randrange(len(seen), total) if seen else rng.randrange(0, total)
        delay_s = rng.uniform(0, 0.8) if events == 0 else rng.uniform(0, 0.05)
        print(f"death {death}: after event {events} and {delay_s:.3f} s")
        kill_at(shop, shop.start("night", "queue.yaml", *words), events, delay_s)
        now = stored(shop)
        assert now[: len(seen)] == seen  # nothing that was there is lost or changed
        seen = now
    last = shop.night(*(resume if seen else []))
    assert last.returncode == 0, last.stderr

    events = shop.events()
    assert [(e.id, e.hash) for e in events][: len(seen)] == seen
    assert [e.id for e in events] == list(range(1, len(events) + 1))
    with shop.reader() as reader:
        assert reader.verify() is None
        assert reader.unfinished() == []
    started = [(e.entry, e.step, e.attempt) for e in events if e.kind == "step.started"]
    finished = {(e.entry, e.step, e.attempt): e for e in events if e.kind == "step.finished"}
    assert len(set(started)) == len(started)
    assert set(started) == set(finished)
    assert len(finished) == sum(e.kind == "step.finished" for e in events)
    for entry in range(3):
        for step in ("first", "second"):
            told = [finished[where].data["status"] for where in started if where[:2] == (entry, step)]
            assert told == ["interrupted"] * (len(told) - 1) + ["ok"]  # once ok, never again
    assert [e.kind for e in events].count("night.started") == len(shop.nights()) == 1
    assert shop.marked_processes() == []
    assert without_times(shop.summary()) == expected
    text = (shop.queue_folder() / "summary.json").read_text()
    assert summary_at(shop.journal, len(events)) == text


def test_a_reset_that_a_dead_runner_left_under_way_is_ended_and_what_an_earlier_one_started_stays(workshop):
    """A command that is still evicting would take the next night's model from under its eval."""
    shop = workshop
    shop.write(
        "reset.py",
        "import os, subprocess, sys, time\n"
        "number = len([name for name in os.listdir() if name.startswith('pid')])\n"
        "command = [sys.executable, '-c', 'import time; time.sleep(300)']\n"
        "service = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL,"
        " stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "open(f'pid{number}', 'w').write(f'{os.getpid()} {service.pid}')\n"
        "while number == 1: time.sleep(0.02)\n",
    )
    shop.commands(["a", "b"], {"work": "done()"}, defaults=f"reset_command: '{sys.executable} reset.py'")
    runner = shop.start("night", "queue.yaml")
    shop.wait_for(lambda: (shop.folder / "pid1").exists() and (shop.folder / "pid1").read_text())
    runner.kill()
    runner.communicate()
    (_, first), (hanging, second) = (map(int, (shop.folder / f"pid{n}").read_text().split()) for n in (0, 1))
    services = [first]
    try:
        assert not any(shop.gone(pid) for pid in (first, hanging, second))
        assert shop.night("--resume").returncode == 0
        services.append(int((shop.folder / "pid2").read_text().split()[1]))
        assert shop.gone(hanging) and shop.gone(second)  # what it had started is part of what was under way
        assert not any(shop.gone(pid) for pid in services)
    finally:
        for pid in services:
            os.kill(pid, signal.SIGKILL)
    assert shop.attempts(0, "work") == [(1, "ok")]


def test_a_runner_that_dies_while_it_makes_the_journal_leaves_nothing_in_the_way(workshop):
    """SQLite's file is there by then, with nothing in it: no journal, and no damage."""
    shop = workshop
    shop.commands(["a"], {"work": "done()"})
    dies = "import os, runq_journal.journal as j\nj.Journal._prepare = lambda self: os.kill(os.getpid(), 9)"
    assert shop.night(code=dies).returncode == -signal.SIGKILL
    assert shop.journal.stat().st_size > 0
    for words in (["status"], ["night", "queue.yaml", "--resume"]):
        refused = shop.runq(*words)
        assert refused.returncode == 2, refused.stderr
        assert "no journal" in refused.stderr
    assert shop.runq("plan", "queue.yaml").returncode == 0
    assert shop.night().returncode == 0
    assert shop.attempts(0, "work") == [(1, "ok")]


def test_what_a_killed_runner_left_beside_the_journal_goes_with_the_next_start(workshop):
    """Also where nothing is left to do: the socket, and the room that was kept back on the disk."""
    shop = workshop
    shop.commands(["a"], {"work": "done()"})
    at_the_end = "from runq import night_loop\nimport os\n" + (
        "whole = night_loop.write_summary\n"
        "def die(context):\n    whole(context)\n"
        "    if context.recorder.journal.reader().last_event().kind == 'night.finished': os.kill(os.getpid(), 9)\n"
        "night_loop.write_summary = die"
    )
    assert shop.night(code=at_the_end).returncode == -signal.SIGKILL
    left = {path.name for path in shop.runs.iterdir() if path.name.startswith("journal.db.")}
    assert {"journal.db.control", "journal.db.reserve"} <= left
    done = shop.night("--resume")
    assert (done.returncode, "nothing is left" in done.stderr) == (0, True)
    assert {path.name for path in shop.runs.iterdir() if path.name.startswith("journal.db.")} <= {"journal.db.lock"}
