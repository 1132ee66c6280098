"""Four machines with addresses of their own, one cut off, one dead, the head killed: no entry is lost or runs twice.

``RUNQ_FLEET_ENTRIES`` sets how many entries (16).
"""

import os
from pathlib import Path

import pytest

from bench.laws import broken, read
from bench.laws_of_files import LAWS_OF_FILES
from runq.fleet.secure import make_certificates
from runq_journal import JournalReader
from tests.fleet.namespaces import Network

ENTRIES = int(os.environ.get("RUNQ_FLEET_ENTRIES", "16"))
MACHINES = ("anna", "bert", "cleo", "dora")
LEASE = ("--lease", "30")


@pytest.fixture
def network(missing):
    try:
        made = Network(MACHINES)
    except OSError as error:
        missing(f"network namespaces: {error}")
    yield made
    made.close()


def host_of(cluster, model):
    """The machine that a model's entry is on now."""
    number = int(model[1:])
    return [e.data["host"] for e in cluster.events("lease.granted") if e.entry == number][-1]


def outbox_finished(cluster, name, entry, step):
    for slot in Path(cluster.folder / f"state-{name}").rglob("slot0/journal.db"):
        with JournalReader.open(slot) as reader:
            if any((e.entry, e.step) == (entry, step) for e in reader.events(kinds=("step.finished",))):
                return True
    return False


@pytest.mark.slow
def test_a_night_on_four_machines(tmp_path, cluster_class, network):
    tls = make_certificates(tmp_path / "tls")
    folder = tmp_path / "night"
    folder.mkdir()
    dask = ("--tls-ca-file", f"{tls}/ca.pem", "--tls-cert", f"{tls}/cert.pem", "--tls-key", f"{tls}/key.pem")
    cluster = cluster_class(folder, scheme="tls", dask=dask)
    cluster.host = network.address
    cluster.env["RUNQ_CLUSTER_TLS"] = str(tls)
    models = [f"m{number}" for number in range(ENTRIES)]
    gated = models[:3]
    cluster.entries(*models)
    for model in gated:
        cluster.shut(model, "first")
    try:
        cluster.scheduler(*network.inside())
        for name in MACHINES:
            cluster.worker(name, prefix=network.inside(name))
            cluster.joined(name)
        head = cluster.start_night(*LEASE, prefix=network.inside())
        for model in gated:
            cluster.waits(model, "first")
        cluster.wait_for(lambda: {e.entry for e in cluster.events("step.spawned")} >= {0, 1, 2})
        cut_off, dead, other = (host_of(cluster, model) for model in gated)
        assert len({cut_off, dead, other}) == 3

        # One is cut off in mid-entry, ends its step meanwhile, and starts no other.
        network.cut(cut_off)
        cluster.open("m0", "first")
        cluster.wait_for(lambda: outbox_finished(cluster, cut_off, 0, "first"))
        # One loses power.
        cluster.power_off(dead)
        cluster.open("m1", "first")
        # The head is killed while the third is at work.
        head.kill()
        head.wait()
        network.mend(cut_off)
        cluster.open("m2", "first")
        resumed = cluster.start_night("--resume", *LEASE, prefix=network.inside())
        cluster.wait_for(lambda: resumed.poll() is not None, 150)
        assert resumed.returncode == 0, (folder / "head.log").read_text()
    finally:
        cluster.close()

    assert cluster.statuses() == ["complete"] * ENTRIES
    granted = {number: [e for e in cluster.events("lease.granted") if e.entry == number] for number in range(ENTRIES)}
    assert len(granted[1]) == 2 and granted[1][1].data["host"] != dead  # what the dead one had went elsewhere
    assert all(len(granted[number]) == 1 for number in range(ENTRIES) if number != 1)
    assert all(cluster.ran(model, step) == 1 for model in models if model != "m1" for step in ("first", "second"))
    assert (cluster.ran("m1", "first"), cluster.ran("m1", "second")) == (2, 1)
    # Each machine one at a time, by what the machines themselves wrote.
    for name in MACHINES:
        running = None
        for event in cluster.events("entry.started", "entry.finished"):
            if event.data["origin"]["host"] == name:
                assert (running is None) if event.kind == "entry.started" else (running == event.entry)
                running = event.entry if event.kind == "entry.started" else None
    record = read(cluster.journal)
    assert broken(record) == {}
    assert broken(record, LAWS_OF_FILES) == {}
