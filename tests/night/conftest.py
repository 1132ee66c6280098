"""A workshop for nights: a folder with a queue, scripts for steps, and the real command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from runq_journal import JournalReader

STAND_INS = Path(__file__).parents[1] / "stand_ins"

FAST = "{ timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.02, epsilon_mb: 100000 }"
"""Settling is tested elsewhere; here it only has to be over at once on any machine."""


class Workshop:
    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.queue = folder / "queue.yaml"
        self.runs = folder / "runs"
        self.journal = self.runs / "journal.db"
        self.env = {
            **os.environ,
            "XDG_STATE_HOME": str(state),
            "PYTHONPATH": str(STAND_INS),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "NO_COLOR": "1",
        }
        self.env.pop("RUNQ_RUNS", None)
        self.started: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def runq(self, *words: str, **changes: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "runq", *words],
            cwd=changes.pop("cwd", self.folder),
            env={**self.env, **changes.pop("env", {})},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            **changes,
        )

    def start(self, *words: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "runq", *words],
            cwd=self.folder,
            env={**self.env, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        self.started.append(process)
        return process

    def night(self, *words: str, **changes: Any) -> subprocess.CompletedProcess[str]:
        return self.runq("night", "queue.yaml", *words, **changes)

    def reader(self, upto: int | None = None) -> JournalReader:
        return JournalReader.open(self.journal, upto=upto)

    def events(self, *kinds: str) -> list[Any]:
        with self.reader() as reader:
            return list(reader.events(kinds=kinds or None))

    def summary(self, night: str | None = None) -> dict[str, Any]:
        folders = sorted(self.runs.glob("*_queue"))
        folder = folders[-1] if night is None else self.runs / f"{night}_queue"
        data: dict[str, Any] = json.loads((folder / "summary.json").read_text())
        return data

    def wait_for(self, what: Callable[[], Any], seconds: float = 30.0) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := what():
                return found
            time.sleep(0.02)
        raise AssertionError(f"nothing came of {what} within {seconds} s")

    def wait_for_event(self, kind: str, **columns: Any) -> Any:
        def found() -> Any:
            if not self.journal.exists() or not self.journal.stat().st_size:
                return None
            return next(
                (e for e in self.events(kind) if all(getattr(e, name) == value for name, value in columns.items())),
                None,
            )

        return self.wait_for(found)

    def marked_processes(self) -> list[psutil.Process]:
        """Every process of the machine that bears this journal's mark."""
        with self.reader() as reader:
            uuid = reader.uuid
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("RUNQ_STEP", "").startswith(uuid) and process.status() != "zombie":
                    found.append(process)
            except psutil.Error:
                continue
        return found


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    folder = tmp_path / "night"
    folder.mkdir()
    shop = Workshop(folder, tmp_path / "state")
    yield shop
    for process in shop.started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    if shop.journal.exists():
        for orphan in shop.marked_processes():
            orphan.kill()


@pytest.fixture
def touchstone_queue(workshop: Workshop) -> Workshop:
    """touchstone's own kind of queue file, three entries."""
    workshop.write("config.yaml", "endpoint: { base_url: http://127.0.0.1:9 }\nmodels: [ { id: a } ]\n")
    workshop.write("judge.yaml", "endpoint: { base_url: http://127.0.0.1:9 }\nmodel: judge-a\n")
    workshop.write("packs/office.yaml", "id: office\ntitle: Office\n")
    workshop.write(
        "queue.yaml",
        f"""\
defaults:
  reset_command: ""
  settle: {FAST}
  step_timeout_s: {{ eval: 60, judge: 60 }}
entries:
  - {{ config: config.yaml, pack: packs/office.yaml, model: one, judge_config: judge.yaml, judge_model: judge-a }}
  - config: config.yaml
    pack: packs/office.yaml
    model: {{ id: "two/b", reasoning_headroom_tokens: 2000, extra_body: {{ think: false, mode: "false" }} }}
    judge_config: judge.yaml
    judge_model: judge-a
  - {{ config: config.yaml, pack: packs/office.yaml, model: three }}
""",
    )
    return workshop
