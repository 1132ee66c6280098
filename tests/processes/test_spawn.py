"""Starting processes, and what is said when that fails."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import psutil
import pytest

from runq.processes import SpawnError, spawn, step_mark
from runq.processes import spawn as spawn_function

spawn_module = sys.modules[spawn_function.__module__]


def test_a_child_has_its_own_session_no_input_and_writes_its_log_itself(stage, until):
    body = """
print("out", flush=True)
print("err", file=sys.stderr, flush=True)
print(sys.stdin.read() == "", os.getsid(0) == os.getpid(), sorted(map(int, os.listdir("/proc/self/fd")))[:3])
print(os.environ["RUNQ_STEP"], os.getcwd())
"""
    log = stage.folder / "step.log"
    log.write_text("before\n")
    child = stage.start("step", body)
    until(child.poll)
    assert child.status() == (0, None)
    lines = log.read_text().splitlines()
    assert lines == ["before", "out", "err", "True True [0, 1, 2]", f"{child.mark} {stage.folder}"]


def test_no_open_file_of_ours_reaches_the_child(stage, until):
    secret = stage.folder / "secret"
    with secret.open("w") as file:
        os.set_inheritable(file.fileno(), True)
        child = stage.start(
            "step",
            "print([os.readlink(f'/proc/self/fd/{n}') for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}')])",
        )
        until(child.poll)
    assert str(secret) not in (stage.folder / "step.log").read_text()


def test_the_log_is_for_its_owner_only(stage, until):
    old = os.umask(0)
    try:
        until(stage.start("step", "").poll)
    finally:
        os.umask(old)
    assert (stage.folder / "step.log").stat().st_mode & 0o777 == 0o600


def test_what_identifies_a_child(stage):
    child = stage.start("step", "say('ready')\nlinger()")
    stage.heard("ready")
    assert child.created_at == psutil.Process(child.pid).create_time()
    assert child.mark == step_mark(stage.uuid, "2026-01-02_030405", 0, "step", 1)
    assert child.mark == f"{stage.uuid}/2026-01-02_030405/0/step/1"
    assert child.status() == (None, None)
    assert not child.reaped
    assert str(child.pid) in repr(child)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("sys.exit(3)", (3, None)),
        ("os.kill(os.getpid(), signal.SIGKILL)", (None, "SIGKILL")),
        ("os.kill(os.getpid(), 40)", (None, "SIG40")),
    ],
)
def test_how_a_child_ended(stage, until, body, status):
    child = stage.start("step", body)
    until(child.poll)
    assert child.status() == status
    assert child.reaped


def fails(tmp_path, argv, *, env=None, cwd=None, log=None):
    with pytest.raises(SpawnError) as caught:
        spawn(
            argv, cwd=cwd or tmp_path, env={"PATH": os.environ["PATH"], **(env or {})}, log_path=log or tmp_path / "log"
        )
    assert caught.value.remedy
    return caught.value.message


def script(tmp_path, text, mode=0o755):
    path = tmp_path / "program"
    path.write_bytes(text)
    path.chmod(mode)
    return str(path)


def test_spawn_failures_say_what_to_do(tmp_path):
    assert "no program 'no-such-program'" in fails(tmp_path, ["no-such-program"])
    assert "may not be executed" in fails(tmp_path, [script(tmp_path, b"#!/bin/sh\n", 0o644)])
    assert "interpreter" in fails(tmp_path, [script(tmp_path, b"#!/no/such/interpreter\n")])
    assert "not a program" in fails(tmp_path, [script(tmp_path, b"\x7fnothing")])
    assert "working directory" in fails(tmp_path, ["true"], cwd=tmp_path / "missing")
    assert "too long" in fails(tmp_path, ["true", "x" * 10_000_000])
    assert "null byte" in fails(tmp_path, ["true", "a\0b"])
    assert "cannot be passed on" in fails(tmp_path, ["true"], env={"A=B": "c"})
    assert "empty" in fails(tmp_path, [])
    assert "could not be started" in fails(tmp_path, ["true", 3])
    assert "log" in fails(tmp_path, ["true"], log=tmp_path / "missing" / "log")
    assert "log" in fails(tmp_path, ["true"], log=tmp_path / "a\0b")


@pytest.mark.parametrize(
    ("number", "name", "words"),
    [(errno.EAGAIN, "true", "no room"), (errno.ENOMEM, "true", "no room"), (errno.EACCES, None, "cannot be entered")],
)
def test_spawn_failures_of_the_system(tmp_path, monkeypatch, number, name, words):
    def fail(*_args, **_options):
        raise OSError(number, os.strerror(number), name or str(tmp_path))

    monkeypatch.setattr(subprocess, "Popen", fail)
    assert words in fails(tmp_path, ["true"])


def test_a_failed_spawn_leaves_no_open_file(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        fails(tmp_path, ["no-such-program"])
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_child_without_row_or_mark(stage, until):
    class Blind:
        def row(self, _pid):
            return None

    child = spawn(
        [sys.executable, "-I", "-S", "-c", ""],
        cwd=stage.folder,
        env={},
        log_path=stage.folder / "log",
        table=Blind(),
    )
    until(child.poll)
    assert child.mark == ""
    assert child.ident == (child.pid, 0.0)
