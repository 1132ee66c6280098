"""Nights on real Dask workers of this machine: what goes wrong with one costs that one, and nothing runs twice."""

import json
import signal
import subprocess
import sys

from bench.laws import broken, read
from bench.laws_of_files import LAWS_OF_FILES

SHORT = ("--lease", "25")
"""Seconds: ending a step may take 15 of them, so that a machine gives up after 10."""


def holds(cluster):
    record = read(cluster.journal)
    assert broken(record) == {}
    assert broken(record, LAWS_OF_FILES) == {}


def granted_to(cluster, entry):
    return [f"_l{e.id}" for e in cluster.events("lease.granted") if e.entry == entry]


def host_of(cluster, entry):
    return [e.data["host"] for e in cluster.events("lease.granted") if e.entry == entry]


def test_the_entries_are_spread_and_the_journal_is_one(cluster):
    cluster.entries("a", "b", "c", "d")
    cluster.scheduler()
    for name in ("anna", "bert"):
        cluster.worker(name)
        cluster.joined(name)
    done = cluster.night()
    assert done.returncode == 0, done.stderr
    assert cluster.statuses() == ["complete"] * 4
    assert {e.data["host"] for e in cluster.events("lease.granted")} == {"anna", "bert"}
    assert all(cluster.ran(model, step) == 1 for model in "abcd" for step in ("first", "second"))
    first = next(e for e in cluster.events("step.started") if e.entry == 0)
    assert first.data["origin"]["host"] == host_of(cluster, 0)[0]
    assert [e.data["how"] for e in cluster.events("lease.ended")] == ["done"] * 4
    holds(cluster)


def test_a_machine_that_dies_costs_its_entry_only_until_its_lease_runs_out(cluster):
    cluster.entries("a", "b")
    cluster.shut("a", "first")
    cluster.scheduler()
    cluster.worker("anna")
    cluster.joined("anna")
    head = cluster.start_night(*SHORT)
    cluster.waits("a", "first")
    cluster.wait_for(lambda: cluster.events("step.spawned"))  # the head has heard of it
    cluster.power_off("anna")
    cluster.open("a", "first")
    cluster.worker("bert")
    assert cluster.wait_for(lambda: head.poll() is not None) and head.returncode == 0
    assert cluster.statuses() == ["complete"] * 2
    assert host_of(cluster, 0) == ["anna", "bert"]
    ended = [e for e in cluster.events("lease.ended") if e.entry == 0]
    assert [e.data["how"] for e in ended] == ["expired", "done"]
    attempts = [
        (e.attempt, e.data["status"]) for e in cluster.events("step.finished") if (e.entry, e.step) == (0, "first")
    ]
    assert attempts == [(1, "interrupted"), (2, "ok")]
    started = [e.data for e in cluster.events("step.started") if (e.entry, e.step) == (0, "first")]
    assert all(str(granted_to(cluster, 0)[1]) in started[1][what] for what in ("bundle", "log"))  # nobody's but its own
    granted = [e for e in cluster.events("lease.granted") if e.entry == 0]
    assert granted[1].id > ended[0].id  # handed on only then
    holds(cluster)


def test_the_head_is_killed_and_the_machines_go_on(cluster):
    cluster.entries("a", "b", "c")
    for model in "ab":
        cluster.shut(model, "first")
    cluster.scheduler()
    for name in ("anna", "bert"):
        cluster.worker(name)
        cluster.joined(name)
    head = cluster.start_night()
    for model in "ab":
        cluster.waits(model, "first")
    cluster.wait_for(lambda: len(cluster.events("step.spawned")) == 2)
    head.kill()
    head.wait()
    cluster.open("a", "first")
    cluster.wait_for(lambda: cluster.ran("a", "second") == 1)  # nobody had to tell it to go on
    local = subprocess.run(
        [sys.executable, "-m", "runq", "night", "queue.yaml", "--resume"],
        cwd=cluster.folder, env=cluster.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert local.returncode == 3 and "is in the hands of" in local.stderr and "--cluster" in local.stderr
    resumed = cluster.start_night("--resume")
    cluster.wait_for(lambda: [e for e in cluster.events("entry.finished") if e.entry == 0])
    cluster.open("b", "first")
    assert cluster.wait_for(lambda: resumed.poll() is not None) and resumed.returncode == 0
    assert cluster.statuses() == ["complete"] * 3
    assert all(cluster.ran(model, step) == 1 for model in "abc" for step in ("first", "second"))
    assert [len(host_of(cluster, entry)) for entry in range(3)] == [1, 1, 1]
    holds(cluster)


def test_what_a_machine_does_while_it_is_cut_off_comes_later(cluster):
    """The Dask worker stands still, which is the way to the head; what it started goes on."""
    cluster.entries("a")
    cluster.shut("a", "first")
    cluster.scheduler()
    worker = cluster.worker("anna")
    cluster.joined("anna")
    head = cluster.start_night()
    cluster.waits("a", "first")
    cluster.wait_for(lambda: cluster.events("step.spawned"))
    worker.send_signal(signal.SIGSTOP)
    cluster.open("a", "first")
    (slot,) = (cluster.folder / "state-anna").rglob("slot0/journal.db")
    from runq_journal import JournalReader

    def first_is_over():
        with JournalReader.open(slot) as reader:
            return [e for e in reader.events(kinds=("step.finished",)) if e.step == "first"]

    cluster.wait_for(first_is_over)
    assert cluster.events("step.finished") == []
    worker.send_signal(signal.SIGCONT)
    assert cluster.wait_for(lambda: head.poll() is not None) and head.returncode == 0
    assert cluster.statuses() == ["complete"]
    assert cluster.ran("a", "first") == cluster.ran("a", "second") == 1
    holds(cluster)


def test_a_worker_that_is_started_again_delivers_what_the_one_before_could_not(cluster):
    cluster.entries("a", "b")
    cluster.shut("a", "first")
    cluster.scheduler()
    worker = cluster.worker("anna")
    cluster.joined("anna")
    head = cluster.start_night()
    cluster.waits("a", "first")
    worker.kill()  # its entry has a process of its own, and a lease
    worker.wait()
    cluster.wait_for(lambda: cluster.events("host.lost"))
    cluster.open("a", "first")
    cluster.worker("anna")
    assert cluster.wait_for(lambda: head.poll() is not None) and head.returncode == 0
    assert cluster.statuses() == ["complete"] * 2
    assert all(cluster.ran(model, step) == 1 for model in "ab" for step in ("first", "second"))
    assert len(host_of(cluster, 0)) == 1
    holds(cluster)


def test_ctrl_c_ends_what_runs_everywhere_and_a_resume_goes_on(cluster):
    cluster.entries("a", "b")
    for model in "ab":
        cluster.shut(model, "first")
    cluster.scheduler()
    for name in ("anna", "bert"):
        cluster.worker(name)
        cluster.joined(name)
    head = cluster.start_night()
    for model in "ab":
        cluster.waits(model, "first")
    head.send_signal(signal.SIGINT)
    assert cluster.wait_for(lambda: head.poll() is not None) and head.returncode == 130
    assert [e.data["status"] for e in cluster.events("step.finished")] == ["interrupted"] * 2
    assert [e.data["how"] for e in cluster.events("lease.ended")] == ["done"] * 2
    for model in "ab":
        cluster.open(model, "first")
    assert cluster.night("--resume").returncode == 0
    assert cluster.statuses() == ["complete"] * 2
    holds(cluster)


def test_the_summary_is_rebuilt_byte_for_byte(cluster):
    cluster.entries("a")
    cluster.scheduler()
    cluster.worker("anna")
    cluster.joined("anna")
    assert cluster.night().returncode == 0
    (summary,) = cluster.runs.glob("*_queue/summary.json")
    before = summary.read_bytes()
    assert json.loads(before)["complete"] == 1
    replay = subprocess.run(
        [sys.executable, "-m", "runq", "replay", "--runs", "runs"],
        cwd=cluster.folder, env=cluster.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert replay.returncode == 0, replay.stderr
    assert summary.read_bytes() == before


def test_figures_of_different_machines_stand_apart(cluster):
    """`a` waits on one machine: its median is that machine's alone, and neither is the runner's own."""
    cluster.entries("a", "b")
    cluster.scheduler()
    for name in ("anna", "bert"):
        cluster.worker(name)
        cluster.joined(name)
    assert cluster.night().returncode == 0
    with cluster.reader() as reader:
        hosts = reader.hosts(reader.latest_night())
        assert sorted(hosts.values()) == ["anna", "bert"]
        assert reader.durations() == []
        for name in ("anna", "bert"):
            (model,) = [model for model, host in zip("ab", (hosts[0], hosts[1]), strict=True) if host == name]
            finished = [
                e.data["seconds"] for e in reader.events(kinds=("step.finished",)) if e.entry == "ab".index(model)
            ]
            rows = {row["step"]: (row["model_id"], row["seconds"], row["n"]) for row in reader.durations(name)}
            assert rows == {"first": (model, finished[0], 1), "second": (model, finished[1], 1)}
    shown = subprocess.run(
        [sys.executable, "-m", "runq", "status", "--runs", "runs"],
        cwd=cluster.folder, env=cluster.env, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert f"on {hosts[0]}" in shown.splitlines()[3] and f"on {hosts[1]}" in shown.splitlines()[4]
