"""A cluster on this machine: a real Dask scheduler, real workers, each with a state folder of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runq_journal import JournalReader
from runq_schemas.errors import JournalError

FAST = "{ timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.02, epsilon_mb: 100000 }"

STEP = """\
import sys, time
from pathlib import Path
model, bundle, name = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
gate = Path("gates") / f"{model}-{name}"
with open(f"ran-{model}-{name}.txt", "a") as ran:
    ran.write("x")
if gate.exists():
    Path(f"waits-{model}-{name}").touch()
    while gate.exists():
        time.sleep(0.05)
time.sleep(0.1)
(bundle / f"{name}.txt").write_text(model)
"""
"""A step that notes that it ran, and waits as long as its gate is shut."""


class Cluster:
    def __init__(self, folder: Path, *, scheme: str = "tcp", dask: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.queue = folder / "queue.yaml"
        self.runs = folder / "runs"
        self.journal = self.runs / "journal.db"
        self.scheme, self.dask = scheme, dask
        with socket.create_server(("127.0.0.1", 0)) as sock:
            self.port = sock.getsockname()[1]
        self.host = "127.0.0.1"
        self.env = {
            **os.environ,
            "NO_COLOR": "1",
            "RUNQ_KEEP_AWAKE": "0",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "XDG_STATE_HOME": str(folder / "state-head"),
        }
        self.env.pop("RUNQ_RUNS", None)
        self.processes: list[subprocess.Popen[Any]] = []
        (folder / "gates").mkdir()

    @property
    def address(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    def _start(self, argv: list[str], log: str, *, env: dict[str, str] | None = None) -> subprocess.Popen[Any]:
        with (self.folder / log).open("ab") as out:
            process = subprocess.Popen(
                argv,
                cwd=self.folder,
                env={**self.env, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def scheduler(self, *prefix: str) -> subprocess.Popen[Any]:
        words = [*prefix, "dask", "scheduler", "--host", self.host, "--port", str(self.port), "--no-dashboard"]
        process = self._start([*words, "--no-show", *self.dask], "scheduler.log")
        self.wait_for(lambda: "Scheduler at" in (self.folder / "scheduler.log").read_text())
        return process

    def worker(self, name: str, *words: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[Any]:
        argv = [*prefix, "dask", "worker", self.address, "--name", name, "--nthreads", "1", "--no-dashboard"]
        argv += ["--resources", "endpoint=1", "--no-nanny", "--local-directory", str(self.folder / f"dask-{name}")]
        return self._start([*argv, *self.dask, *words], f"{name}.log", env=self.worker_env(name))

    def worker_env(self, name: str) -> dict[str, str]:
        return {"XDG_STATE_HOME": str(self.folder / f"state-{name}"), "FLEET_WORKER": self._mark(name)}

    def joined(self, name: str) -> None:
        self.wait_for(lambda: "Registered to:" in (self.folder / f"{name}.log").read_text())

    def entries(self, *models: str, defaults: str = "") -> None:
        (self.folder / "step.py").write_text(STEP)
        lines = ["defaults:", '  reset_command: ""', f"  settle: {FAST}", *([f"  {defaults}"] if defaults else [])]
        lines += ["  harness:", "    harness: command", "    steps:"]
        for name in ("first", "second"):
            argv = f"['{{python}}', step.py, '{{model}}', '{{bundle}}', {name}]"
            lines.append(f"      {name}: {{ argv: {argv}, artifacts: [{name}.txt] }}")
        lines += ["entries:", *[f"  - model: {model}" for model in models]]
        self.queue.write_text("\n".join(lines) + "\n")

    def night_argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "runq", "night", "queue.yaml", "--cluster", self.address, *words]

    def night(self, *words: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*prefix, *self.night_argv(*words)],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=200,
            check=False,
        )

    def start_night(self, *words: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[Any]:
        return self._start([*prefix, *self.night_argv(*words)], "head.log")

    def shut(self, model: str, step: str) -> None:
        """Have a step wait."""
        (self.folder / "gates" / f"{model}-{step}").touch()

    def open(self, model: str, step: str) -> None:
        (self.folder / "gates" / f"{model}-{step}").unlink()

    def waits(self, model: str, step: str) -> None:
        """Return when a step runs and waits."""
        self.wait_for(lambda: (self.folder / f"waits-{model}-{step}").exists())

    def ran(self, model: str, step: str) -> int:
        """How often a step ran, by its own word."""
        path = self.folder / f"ran-{model}-{step}.txt"
        return len(path.read_text()) if path.exists() else 0

    def reader(self) -> JournalReader:
        return JournalReader.open(self.journal)

    def events(self, *kinds: str) -> list[Any]:
        try:
            with self.reader() as reader:
                return list(reader.events(kinds=kinds or None))
        except JournalError:  # the head has not made it yet
            return []

    def statuses(self) -> list[str]:
        with self.reader() as reader:
            night = reader.latest_night()
            assert night is not None
            return [row["status"] for row in reader.entry_results(night)]

    def _mark(self, name: str) -> str:
        # Another run of these tests on this computer has machines of the same names.
        return f"{self.folder}/{name}"

    def processes_of(self, name: str) -> list[psutil.Process]:
        """All that runs on one of the machines: its Dask worker, and what that started."""
        found = []
        for process in psutil.process_iter():
            try:
                if (
                    process.environ().get("FLEET_WORKER") == self._mark(name)
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def power_off(self, name: str) -> None:
        """Kill all that runs on a machine, at once."""
        while found := self.processes_of(name):
            for process in found:
                process.kill()
            for process in self.processes:
                process.poll()

    def wait_for(self, what: Callable[[], Any], seconds: float = 60.0) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := what():
                return found
            time.sleep(0.05)
        logs = {path.name: path.read_text()[-1500:] for path in self.folder.glob("*.log")}
        raise AssertionError(f"nothing came of it within {seconds} s; {logs}")

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        for name in {path.name.removeprefix("state-") for path in self.folder.glob("state-*")}:
            self.power_off(name)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


@pytest.fixture
def cluster_class() -> type[Cluster]:
    return Cluster
