"""The processes behind an endpoint."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import psutil
import pytest

from runq_plugins.reset import owner
from runq_plugins.reset.owner import Evidence, Owner


def one(pid: int, rss_mb: float, *, worker: bool = False, created_at: float = 1.0) -> Owner:
    return Owner(pid=pid, created_at=created_at, name=f"p{pid}", rss_mb=rss_mb, worker=worker)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("lm.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("::1%lo", True),
        ("0.0.0.0", True),
        ("192.0.2.1", False),
        ("2001:db8::1", False),
        ("example.com", False),
        ("", False),
    ],
)
def test_what_is_this_machine(host, local):
    assert owner.is_local(host) is local


def test_own_name_and_own_addresses_are_this_machine():
    assert owner.is_local(socket.gethostname())
    addresses = [a.address for many in psutil.net_if_addrs().values() for a in many if a.family == socket.AF_INET]
    assert all(owner.is_local(address) for address in addresses)


def test_the_listener_of_a_port(free_port, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        found = owner.listener(port)
        assert found is not None and found.pid == os.getpid()

        def denied(**_):
            raise psutil.AccessDenied

        monkeypatch.setattr(psutil, "net_connections", denied)  # as on macOS
        found = owner.listener(port)
        assert found is not None and found.pid == os.getpid()
    assert owner.listener(free_port) is None


def test_words_of_a_gone_process_are_none():
    process = subprocess.Popen([sys.executable, "-c", ""])
    seen = psutil.Process(process.pid)
    process.wait()
    assert owner.words_of(seen) == ()
    assert owner.family(seen, ("python",)) == ()
    assert owner.snapshot([seen], lambda _: True) == ()


def test_a_zombie_is_gone():
    process = subprocess.Popen([sys.executable, "-c", ""])
    seen = psutil.Process(process.pid)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert seen.status() == psutil.STATUS_ZOMBIE
    assert owner.snapshot([seen], lambda _: True) == ()
    process.wait()


def test_a_hidden_command_line_leaves_the_name_and_hidden_memory_is_unseen(monkeypatch):
    me = psutil.Process()

    def denied(*_):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil.Process, "cmdline", denied)
    assert owner.words_of(me) == (me.name().lower(),)
    monkeypatch.setattr(psutil.Process, "status", denied)
    assert owner.snapshot([me], lambda _: True) is None


def doubt(before, now, *, evicted=True, size_mb=1000.0, idle_limit_mb=100.0) -> str:
    evidence = Evidence(idle_limit_mb, "It")
    evidence.note_before(before)
    return evidence.doubt(now, evicted=evicted, size_mb=size_mb)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ([one(1, 50), one(2, 1100, worker=True)], [one(1, 50)]),  # the worker ended
        ([one(1, 1100)], []),  # everything ended
        ([one(1, 1100)], [one(1, 350)]),  # exactly 750 of 1000 MB came back
        ([one(1, 50), one(2, 2000, worker=True)], [one(1, 50), one(3, 90, worker=True)]),  # a new, idle worker
    ],
)
def test_memory_that_is_free(before, now):
    assert doubt(before, now) == ""


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ([one(1, 1100)], None, "cannot be seen"),
        ([one(1, 1100)], [one(1, 351)], "gave back 749 MB of 1000 MB"),
        ([one(1, 1100, worker=True)], [one(1, 1100, worker=True)], "gave back 0 MB"),
        ([one(1, 50), one(2, 1100, worker=True)], [one(1, 50), one(3, 900, worker=True)], "p3 (pid 3, 900 MB)"),
        ([one(2, 1100, worker=True)], [one(2, 900, worker=True, created_at=2.0)], "p2 (pid 2, 900 MB)"),  # pid reused
        ([], [one(1, 50)], "no process of It was seen"),
        ([], [], "no process of It was seen"),
    ],
)
def test_memory_that_is_not_proven_free(before, now, words):
    assert words in doubt(before, now)


def test_without_a_size_only_an_end_proves_anything():
    assert "gave back 1000 MB" in doubt([one(1, 1100)], [one(1, 100)], size_mb=None)


def test_nothing_loaded_before_and_nothing_heavy_is_proven():
    assert doubt([], [one(1, 99)], evicted=False) == ""
    assert "p1 (pid 1, 101 MB)" in doubt([], [one(1, 101)], evicted=False)
    assert "cannot be seen" in doubt([], None, evicted=False)


def test_a_process_counts_at_its_largest_and_the_figures_are_told():
    evidence = Evidence(100.0, "It")
    for rss in (900, 1100, 1000):
        evidence.note_before([one(1, rss)])
    evidence.note_before(None)
    assert evidence.details() == {
        "owners_before": [{"pid": 1, "name": "p1", "rss_mb": 1100}],
        "owners_after": None,
    }
    evidence.doubt([one(1, 300)], evicted=True, size_mb=1000)
    assert evidence.freed_mb == 800
    assert evidence.details()["owners_after"] == [{"pid": 1, "name": "p1", "rss_mb": 300}]
