"""The first-night example as a user gets it: its folder, copied, and its scripts as programs of their own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "first-night"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def user_env(state: Path, **more: str) -> dict[str, str]:
    """The environment of somebody who has activated this interpreter's environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    env = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(state), "NO_COLOR": "1", **more}
    env.pop("RUNQ_RUNS", None)
    env.pop("PYTHONPATH", None)
    return env


def copy_example(target: Path) -> Path:
    shutil.copytree(EXAMPLE, target, ignore=shutil.ignore_patterns("runs", "__pycache__"))
    return target


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script of the example in a process of its own, as a step does."""

    def run(name: str, *words: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(EXAMPLE / name), *map(str, words)],
            cwd=EXAMPLE,
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    return run


@pytest.fixture(scope="session")
def example() -> Path:
    return EXAMPLE
