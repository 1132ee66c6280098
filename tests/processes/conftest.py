"""Real processes for the tests: small scripts that tell their pids by files, and no process left behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from runq.processes import MARK_VARIABLE, Child, Tree, spawn, step_mark, sweep
from runq.processes.table import ProcfsTable

DEADLINE_S = 60.0

PRELUDE = """
import os, signal, sys, time
HERE = {here!r}
def say(name, value=None):
    temporary = f"{{HERE}}/{{name}}.{{os.getpid()}}.new"
    with open(temporary, "w") as file:
        file.write(str(os.getpid() if value is None else value))
    os.rename(temporary, f"{{HERE}}/{{name}}")
def wait_for(name):
    end = time.monotonic() + 60
    while not os.path.exists(f"{{HERE}}/{{name}}") and time.monotonic() < end:
        time.sleep(0.005)
def linger():
    end = time.monotonic() + 90  # whatever the tests do, no script outlives this
    while time.monotonic() < end:
        time.sleep(max(0.0, min(1.0, end - time.monotonic())))
    os._exit(0)
"""


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a condition; a test that needs longer than the deadline has failed."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("the condition did not come true")
        time.sleep(0.002)


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Stage:
    """Starts scripts under a journal uuid of its own, and hears from them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uuid = str(uuid.uuid4())
        self.children: list[Child] = []
        self.trees: list[Tree] = []

    def argv(self, name: str, body: str, *, prelude: bool = True) -> list[str]:
        script = self.folder / f"{name}.py"
        script.write_text((PRELUDE.format(here=str(self.folder)) if prelude else "") + body)
        return [sys.executable, "-I", "-S", str(script)]

    def env(self, mark: str | None) -> dict[str, str]:
        env = {"PATH": os.environ["PATH"]}
        return {**env, MARK_VARIABLE: mark} if mark is not None else env

    def start(self, name: str, body: str, *, marked: bool = True) -> Child:
        mark = step_mark(self.uuid, "2026-01-02_030405", 0, name, 1) if marked else None
        child = spawn(self.argv(name, body), cwd=self.folder, env=self.env(mark), log_path=self.folder / f"{name}.log")
        self.children.append(child)
        return child

    def tree(self, name: str, body: str, *, marked: bool = True, **options: object) -> Tree:
        tree = Tree(self.start(name, body, marked=marked), **options)  # type: ignore[arg-type]
        self.trees.append(tree)
        return tree

    def heard(self, name: str) -> int:
        """The number that a script said under this name."""
        path = self.folder / name
        wait_until(path.exists)
        return int(path.read_text())

    def said(self, prefix: str) -> list[int]:
        return [int(path.read_text()) for path in self.folder.glob(f"{prefix}*") if path.suffix != ".new"]

    def say(self, name: str) -> None:
        (self.folder / name).touch()

    def close(self) -> None:
        sweep(self.uuid, [], grace_s=0)
        for child in self.children:
            if child.poll() is None:
                os.kill(child.pid, 9)
            wait_until(child.poll)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def set_subreaper(on: bool) -> None:
    ctypes.CDLL(None).prctl(36, int(on), 0, 0, 0)


@pytest.fixture(autouse=True)
def no_zombie_of_another_test() -> None:
    """Reap what earlier tests of this run left: a night run in this process adopts orphans, which become zombies."""
    for row in ProcfsTable().rows().values():
        if row.ppid == os.getpid() and row.zombie:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(row.pid, os.WNOHANG)


@pytest.fixture
def subreaper() -> Iterator[None]:
    """This process adopts orphans during the test."""
    set_subreaper(True)
    yield
    set_subreaper(False)


@pytest.fixture(params=[True, False], ids=["adopting", "not adopting"])
def either(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Once as a subreaper, once not."""
    set_subreaper(request.param)
    yield request.param
    set_subreaper(False)


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    return wait_until


@pytest.fixture
def alive() -> Callable[[int], bool]:
    return is_alive
