"""Starts the stand-ins for Ollama and LM Studio (`model_host.py`, `lms.py`) as real processes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest

HERE = Path(__file__).parent
SIZE_MB = 320

Start = Callable[..., "Host"]


@attrs.define
class Host:
    """A running stand-in; ``url`` is its root, ``pid`` its process."""

    process: subprocess.Popen[str]
    url: str

    @property
    def pid(self) -> int:
        return self.process.pid

    def state(self) -> dict[str, Any]:
        """What is really so: ``workers`` (model to pid), ``listed``, ``requests``."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/_state", timeout=10) as reply:
            data: dict[str, Any] = json.load(reply)
        return data

    def workers(self) -> dict[str, int]:
        found: dict[str, int] = self.state()["workers"]
        return found

    def asked(self, path: str) -> list[dict[str, Any]]:
        return [one for one in self.state()["requests"] if one["path"] == path]

    def rss_mb(self) -> float:
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(self.pid)
            return sum(process.memory_info().rss for process in [top, *top.children(recursive=True)]) / 2**20
        return 0.0


@pytest.fixture
def host() -> Iterator[Start]:
    """Start ``ollama`` or ``lms`` in a mode, with models loaded from the beginning."""
    started: list[subprocess.Popen[str]] = []

    def start(flavour: str, mode: str = "honest", *loaded: str, size_mb: int = SIZE_MB) -> Host:
        name = {"ollama": "ollama", "lms": "llmster"}[flavour]
        process = subprocess.Popen(
            [name, str(HERE / "model_host.py"), flavour, mode, str(size_mb), *loaded],
            executable=sys.executable,
            env={**os.environ, "PYTHONHOME": sys.base_prefix, "STAND_IN_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        return Host(process=process, url=f"http://127.0.0.1:{int(process.stdout.readline())}")

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@attrs.define
class Lms:
    """The stand-in for the `lms` program."""

    binary: Path

    @property
    def place(self) -> Path:
        return self.binary.parent

    def calls(self) -> list[str]:
        log = self.place / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def started_something(self) -> bool:
        return (self.place / "woken").exists()


@pytest.fixture
def lms(tmp_path: Path) -> Callable[..., Lms]:
    """Make the program: with the daemon it belongs to, or for an LM Studio that does not run."""

    def make(daemon: Host | None = None, *, hang: str = "") -> Lms:
        binary = tmp_path / "lms-bin" / "lms"
        binary.parent.mkdir()
        shutil.copy(HERE / "lms.py", binary)
        binary.write_text(f"#!{sys.executable}\n" + binary.read_text())
        binary.chmod(0o755)
        if daemon is not None:
            (binary.parent / "daemon.json").write_text(json.dumps({"pid": daemon.pid, "url": daemon.url}))
        (binary.parent / "hang").write_text(hang)
        return Lms(binary)

    return make
