"""One night at a time per journal and per endpoint."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.locks import Holder, endpoint_name, holder_of, journal_lock_path, night_locks, own_holder
from runq_schemas import LockedError

HOLD = """
import sys
from pathlib import Path
from runq.locks import night_locks, own_holder
journal = Path(sys.argv[1])
holder = own_holder(since="2026-09-01T22:00:00+02:00", queue="/q/a.yaml", journal=journal)
with night_locks(journal, sys.argv[2:], holder):
    print("held", flush=True)
    sys.stdin.readline()
print("let go", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's state folder, where the locks of endpoints are."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def hold() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a second process that holds the locks."""
    started: list[subprocess.Popen[str]] = []

    def start(journal: Path, *endpoints: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(journal), *endpoints],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def me(journal: Path) -> Holder:
    return own_holder(since="2026-09-02T22:00:00+02:00", queue="/q/b.yaml", journal=journal)


def take(journal: Path, *endpoints: str) -> None:
    with night_locks(journal, endpoints, me(journal)):
        pass


# --- names of endpoints -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1234",
        "http://localhost:1234/v1",
        "http://LOCALHOST:1234/v1/",
        "http://localhost.:1234",
        "https://127.0.0.1:1234",
        "http://127.0.0.2:1234",
        "http://127.1:1234",
        "http://2130706433:1234",
        "http://0.0.0.0:1234",
        "http://0:1234",
        "http://[::1]:1234",
        "http://[::]:1234",
        "http://[0:0:0:0:0:0:0:1]:1234/v1",
        "http://[::ffff:127.0.0.1]:1234",
        "http://user:secret@localhost:1234",
        "http://ip6-localhost:1234",
        "http://lms.localhost:1234",
        "localhost:1234",
        "127.0.0.1:1234/v1",
    ],
)
def test_every_spelling_of_loopback_is_one_endpoint(url: str) -> None:
    assert endpoint_name(url) == "loopback:1234"


def test_this_machines_own_name_is_loopback_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "Studio")
    assert endpoint_name("http://studio.local:1234/v1") == "loopback:1234"
    assert endpoint_name("http://STUDIO:1234") == "loopback:1234"
    assert endpoint_name("http://studio.example.org:1234") == "studio.example.org:1234"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://box/v1", "box:80"),
        ("https://box/v1", "box:443"),
        ("box", "box:80"),
        ("http://Box:8080/a?b", "box:8080"),
        ("http://192.168.0.7:11434", "192.168.0.7:11434"),
        ("http://[fe80::1]:80", "fe80::1:80"),
        ("http://localhost-of-nora:80", "localhost-of-nora:80"),
        ("http://10.127.0.1:80", "10.127.0.1:80"),
        ("http://box:no-port/v1", "http://box:no-port/v1"),
        ("http://[::1", "http://[::1"),
    ],
)
def test_other_endpoints_are_host_and_port(url: str, name: str) -> None:
    assert endpoint_name(url) == name


@given(st.text(max_size=40))
def test_any_text_has_a_name(url: str) -> None:
    assert isinstance(endpoint_name(url), str)


# --- locks ------------------------------------------------------------------------------------------------------


def test_a_second_night_says_who_holds_the_journal(tmp_path: Path, hold: Callable[..., subprocess.Popen[str]]) -> None:
    journal = tmp_path / "runs" / "journal.db"
    other = hold(journal)
    with pytest.raises(LockedError) as caught:
        take(journal)
    assert caught.value.exit_code == 3
    assert caught.value.message == (
        f"the journal {journal} is in use by another night:"
        f" pid {other.pid}, since 2026-09-01T22:00:00+02:00, queue /q/a.yaml"
    )
    assert f"kill {other.pid}" in caught.value.remedy
    assert f"runq status --runs {journal.parent}" in caught.value.remedy


def test_an_endpoint_is_held_across_journals_and_spellings(
    tmp_path: Path, hold: Callable[..., subprocess.Popen[str]]
) -> None:
    other = hold(tmp_path / "one" / "journal.db", "http://localhost:1234/v1")
    journal = tmp_path / "two" / "journal.db"
    with pytest.raises(LockedError, match=rf"the endpoint http://\[::1\]:1234 .* pid {other.pid}, .* queue /q/a\.yaml"):
        take(journal, "http://box:80", "http://[::1]:1234")
    assert holder_of(journal_lock_path(journal)) is None, "what it took before is given back"
    take(journal, "http://localhost:1235", "http://box:80")


def test_endpoints_whose_names_look_alike_do_not_lock_each_other(tmp_path: Path) -> None:
    take(tmp_path / "journal.db", "http://a_b:80", "http://a-b:80", "http://a.b:80")


def test_one_endpoint_named_twice_is_locked_once(tmp_path: Path) -> None:
    take(tmp_path / "journal.db", "http://localhost:80", "http://127.0.0.1")


def test_locks_are_freed_at_the_end(tmp_path: Path, hold: Callable[..., subprocess.Popen[str]]) -> None:
    journal = tmp_path / "journal.db"
    other = hold(journal, "http://box:80")
    assert other.stdin is not None and other.stdout is not None
    other.stdin.write("\n")
    other.stdin.flush()
    assert other.stdout.readline() == "let go\n"
    assert holder_of(journal_lock_path(journal)) is None, "the process is alive, but holds nothing"
    take(journal, "http://box:80")


def test_locks_are_freed_when_the_holder_is_killed(tmp_path: Path, hold: Callable[..., subprocess.Popen[str]]) -> None:
    journal = tmp_path / "journal.db"
    other = hold(journal, "http://box:80")
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert holder_of(journal_lock_path(journal)) is None, "its record is left behind, but it is dead"
    take(journal, "http://box:80")


def test_locks_are_freed_when_the_night_raises(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    with pytest.raises(RuntimeError), night_locks(journal, ["http://box:80"], me(journal)):
        raise RuntimeError
    assert holder_of(journal_lock_path(journal)) is None
    take(journal, "http://box:80")


def test_the_holder_is_known_while_it_holds(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    assert holder_of(journal_lock_path(journal)) is None
    with night_locks(journal, [], me(journal)):
        holder = holder_of(journal_lock_path(journal))
        assert holder is not None
        assert (holder.pid, holder.queue, holder.journal) == (os.getpid(), "/q/b.yaml", str(journal))
        # Somebody who tries must not wipe out what is known about the holder.
        with pytest.raises(LockedError, match=f"pid {os.getpid()}"):
            take(journal)
        assert holder_of(journal_lock_path(journal)) == holder


def test_lock_files_are_the_users_alone(tmp_path: Path, state: Path) -> None:
    with night_locks(tmp_path / "journal.db", ["http://box:80"], me(tmp_path / "journal.db")):
        files = [*tmp_path.glob("journal.db.lock*"), *(p for p in state.rglob("*") if p.is_file())]
        assert len(files) == 4
        assert {path.stat().st_mode & 0o077 for path in files} == {0}


def test_a_pid_that_came_round_again_is_not_the_holder() -> None:
    own = psutil.Process()
    holder = Holder(pid=own.pid, created_at=own.create_time(), since="", queue="", journal="")
    assert holder.alive()
    assert not attrs.evolve(holder, created_at=own.create_time() - 3600).alive()


def test_a_zombie_holds_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(child.pid)
    created = process.create_time()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not reaped yet
    assert process.status() == psutil.STATUS_ZOMBIE
    assert not Holder(pid=child.pid, created_at=created, since="", queue="", journal="").alive()
    child.wait()


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{",
        "[]",
        '"text"',
        "{}",
        json.dumps({"pid": "x", "created_at": 1.0, "since": "", "queue": "", "journal": ""}),
        json.dumps({"pid": -5, "created_at": 1.0, "since": "", "queue": "", "journal": ""}),
        json.dumps({"pid": 2**70, "created_at": 1.0, "since": "", "queue": "", "journal": ""}),
        json.dumps({"pid": os.getpid(), "created_at": None, "since": "", "queue": "", "journal": ""}),
        json.dumps({"pid": 1, "created_at": 1.0, "since": "", "queue": "", "journal": "", "newer": 1}),
    ],
)
def test_a_damaged_record_is_nobody(tmp_path: Path, record: str) -> None:
    lock = journal_lock_path(tmp_path / "journal.db")
    lock.with_name(lock.name + ".holder").write_text(record)
    assert holder_of(lock) is None


def test_a_lock_without_a_record_still_locks(tmp_path: Path, hold: Callable[..., subprocess.Popen[str]]) -> None:
    journal = tmp_path / "journal.db"
    hold(journal)
    lock = journal_lock_path(journal)
    lock.with_name(lock.name + ".holder").unlink()
    with pytest.raises(LockedError, match="is in use by another night") as caught:
        take(journal)
    assert "runq status" in caught.value.remedy
