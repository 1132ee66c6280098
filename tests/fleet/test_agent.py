"""The process that runs an entry on a machine, held to its lease: real process, terms written by the test."""

import contextlib
import json
import subprocess
import sys

import attrs
import psutil
import pytest

from runq.fleet.agent import ENDED, JOB, TERMS
from runq.fleet.lease import elapsed
from runq.fleet.wire import Job, Terms
from runq.planning import fresh
from runq.processes import boot_id
from runq_journal import JournalReader


@pytest.fixture
def place(cluster, monkeypatch):
    """A job's folder, and how to start its process; grace and silence are short."""
    monkeypatch.chdir(cluster.folder)
    cluster.entries("a")
    folder = cluster.folder / "outbox" / "lease7"
    folder.mkdir(parents=True)
    cluster.runs.mkdir()

    from runq.commands.arguments import prepared_queue

    work = fresh(prepared_queue(cluster.queue, None))[0]
    job = Job(
        journal="j", night="n", lease=7, host="anna", slot=0, entry=0, index=0, queue=cluster.queue.read_text(),
        queue_path=str(cluster.queue), base_dir=str(cluster.folder), runs=str(cluster.runs), decisions=work.decisions,
        past={}, identities=work.identities, until=None, hard=False, usual={}, silence_s=5.0, grace_s=1.0,
    )  # fmt: skip
    (folder / JOB).write_text(job.to_json())

    def start():
        return cluster._start([sys.executable, "-m", "runq.fleet.agent", str(folder)], "agent.log")

    return cluster, folder, job, start


def tell(folder, **changes):
    now_s = elapsed()
    terms = Terms(boot_id=boot_id(), until_s=now_s + 600, heard_s=now_s)
    part = folder / "new"
    part.write_text(json.dumps(attrs.asdict(attrs.evolve(terms, **changes))))
    part.replace(folder / TERMS)


def events(folder, *kinds):
    with JournalReader.open(folder.parent / "slot0" / "journal.db") as reader:
        return list(reader.events(kinds=kinds or None))


def test_a_job_travels_as_text(place):
    _, _, job, _ = place
    assert Job.from_json(job.to_json()) == job


def test_in_silence_the_step_that_runs_is_finished_and_no_other_starts(place):
    cluster, folder, _, start = place
    cluster.shut("a", "first")
    tell(folder)
    agent = start()
    cluster.waits("a", "first")
    tell(folder, heard_s=elapsed() - 5.0)  # silent for as long as allowed
    cluster.open("a", "first")
    cluster.wait_for(lambda: [e for e in events(folder, "step.finished") if e.step == "first"])
    with pytest.raises(subprocess.TimeoutExpired):  # nothing happens, and that takes a while to see
        agent.wait(2)
    assert cluster.ran("a", "second") == 0
    tell(folder)
    assert agent.wait(60) == 0
    assert [(e.step, e.data["status"]) for e in events(folder, "step.finished")] == [("first", "ok"), ("second", "ok")]
    assert json.loads((folder / ENDED).read_text()) == {"exit_code": 0}


def test_a_step_is_ended_before_its_lease_is_over(place):
    cluster, folder, _, start = place
    cluster.shut("a", "first")
    tell(folder)
    agent = start()
    cluster.waits("a", "first")
    until_s = elapsed() + 8  # ending may take 1 s of grace and 5 s more
    tell(folder, until_s=until_s)
    assert agent.wait(60) == 0
    (finished,) = events(folder, "step.finished")
    assert (finished.data["status"], finished.data["signal"]) == ("interrupted", "SIGTERM")
    (entry,) = events(folder, "entry.finished")
    assert entry.data["status"] == "interrupted"
    assert cluster.ran("a", "second") == 0


def test_a_job_that_comes_when_its_lease_is_over_runs_nothing(place):
    cluster, folder, _, start = place
    tell(folder, until_s=elapsed() - 1)
    assert start().wait(60) == 0
    assert cluster.ran("a", "first") == 0
    assert events(folder, "step.started") == []


def test_files_that_differ_from_the_heads_are_the_entrys_failure(place):
    cluster, folder, job, start = place
    other = {"first": "1:other", "second": job.identities["second"]}
    (folder / JOB).write_text(attrs.evolve(job, identities=other).to_json())
    tell(folder)
    assert start().wait(60) == 0
    (entry,) = events(folder, "entry.finished")
    assert entry.data["status"] == "failed"
    assert entry.data["reason"] == "first: what it reads is not the same on anna as on the head"
    assert cluster.ran("a", "first") == 0


def test_an_entry_that_cannot_run_here_says_so(place):
    _, folder, job, start = place
    queue = job.queue.replace("harness: command", "harness: absent")
    (folder / JOB).write_text(attrs.evolve(job, queue=queue).to_json())
    tell(folder)
    assert start().wait(60) == 0
    (entry,) = events(folder, "entry.finished")
    assert entry.data["status"] == "failed"
    assert "it cannot run on anna" in entry.data["reason"] and "'absent'" in entry.data["reason"]


def test_what_a_killed_process_left_is_swept_up(place):
    cluster, folder, _, start = place
    cluster.shut("a", "first")
    tell(folder)
    agent = start()
    cluster.waits("a", "first")
    (spawned,) = cluster.wait_for(lambda: events(folder, "step.spawned"))
    agent.kill()
    agent.wait()
    sweep = [sys.executable, "-m", "runq.fleet.agent", "--sweep", str(folder)]
    assert subprocess.run(sweep, cwd=cluster.folder, env=cluster.env, check=False).returncode == 0
    with contextlib.suppress(psutil.NoSuchProcess):
        assert psutil.Process(spawned.data["pid"]).status() == psutil.STATUS_ZOMBIE  # nobody reaps it here
    (finished,) = events(folder, "step.finished")
    assert finished.data["status"] == "interrupted" and "the runner died" in finished.data["reason"]
    assert json.loads((folder / ENDED).read_text()) == {"exit_code": None}
