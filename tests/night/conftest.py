"""A workshop for nights: a folder with a queue, scripts for steps, and the real command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from runq_journal import JournalReader
from runq_schemas.errors import JournalError

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
        self.go = folder / "go"
        self.env["TOUCHSTONE_GO"] = str(self.go)
        self.started: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def _argv(self, words: Sequence[str], code: str) -> list[str]:
        """The real command line; with ``code``, a few lines that change it first (a death at a chosen event)."""
        main = f"import sys\n{code}\nfrom runq.cli import main\nmain(sys.argv[1:])"
        return [sys.executable, *(["-c", main] if code else ["-m", "runq"]), *words]

    def runq(self, *words: str, code: str = "", **changes: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._argv(words, code),
            cwd=changes.pop("cwd", self.folder),
            env={**self.env, **changes.pop("env", {})},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            **changes,
        )

    def start(self, *words: str, code: str = "", env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._argv(words, code),
            cwd=self.folder,
            env={**self.env, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        self.started.append(process)
        return process

    def commands(
        self,
        models: Sequence[str],
        steps: Mapping[str, str],
        *,
        defaults: str = 'reset_command: ""',
        entries: Mapping[str, str] | None = None,
    ) -> None:
        """Write a queue of the `command` harness: every step is a Python script that proves itself by `done()`.

        Args:
            models: the model ids, an entry each; a script knows its own as ``model``, its folder as ``bundle``.
            steps: name to script.
            defaults: further lines for ``defaults``.
            entries: per model, further lines for its entry.
        """
        written = []
        for name, code in steps.items():
            head = (
                "import os, signal, subprocess, sys, time\nfrom pathlib import Path\n"
                "model, bundle = sys.argv[1], Path(sys.argv[2])\n"
                f"def done():\n    (bundle / '{name}.txt').write_text(model)\n"
            )
            self.write(f"{name}.py", head + code)
            argv = f"['{{python}}', {name}.py, '{{model}}', '{{bundle}}']"
            written.append(f"      {name}: {{ argv: {argv}, artifacts: [{name}.txt] }}")
        lines = ["defaults:", f"  settle: {FAST}", *[f"  {line}" for line in defaults.splitlines()]]
        lines += ["  harness:", "    harness: command", "    steps:", *written, "entries:"]
        for model in models:
            lines.append(f"  - model: {model}")
            lines += [f"    {line}" for line in (entries or {}).get(model, "").splitlines()]
        self.write("queue.yaml", "\n".join(lines) + "\n")

    def files(self, folder: Path) -> dict[str, tuple[int, int, int]]:
        """Every file below a folder: inode, bytes and mtime, to show that nothing touched it."""
        found = {}
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            stat = path.stat()
            found[path.relative_to(folder).as_posix()] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return found

    def nights(self) -> list[str]:
        """The ids of all nights, the newest first."""
        with self.reader() as reader:
            return [row["night"] for row in reader.nights()]

    def attempts(self, entry: int, step: str) -> list[tuple[int, str]]:
        """(attempt, status) of every attempt of a step."""
        with self.reader() as reader:
            return [
                (row["attempt"], row["status"])
                for row in reader.attempts(self.nights()[0])
                if row["entry"] == entry and row["step"] == step
            ]

    def bundle(self, entry: int, step: str, attempt: int = 1) -> Path:
        """The folder an attempt wrote into."""
        started = [e for e in self.events("step.started") if (e.entry, e.step, e.attempt) == (entry, step, attempt)]
        return Path(started[-1].data["bundle"])

    def gone(self, pid: int) -> bool:
        """Whether a process has ended (a zombie that nobody reaps has)."""
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def night(self, *words: str, **changes: Any) -> subprocess.CompletedProcess[str]:
        return self.runq("night", "queue.yaml", *words, **changes)

    def reader(self, upto: int | None = None) -> JournalReader:
        return JournalReader.open(self.journal, upto=upto)

    def events(self, *kinds: str) -> list[Any]:
        with self.reader() as reader:
            return list(reader.events(kinds=kinds or None))

    def queue_folder(self, night: str | None = None) -> Path:
        return self.runs / f"{night or self.nights()[0]}_queue"

    def summary(self, night: str | None = None) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.queue_folder(night) / "summary.json").read_text())
        return data

    def markdown(self, night: str | None = None) -> str:
        return (self.queue_folder(night) / "summary.md").read_text()

    def wait_for(self, what: Callable[[], Any], seconds: float = 30.0) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := what():
                return found
            time.sleep(0.02)
        raise AssertionError(f"nothing came of {what} within {seconds} s")

    def wait_for_event(self, kind: str, **columns: Any) -> Any:
        def found() -> Any:
            try:
                events = self.events(kind)
            except JournalError:  # the runner has not made it yet
                return None
            return next((e for e in events if all(getattr(e, name) == value for name, value in columns.items())), None)

        return self.wait_for(found)

    def marked_processes(self) -> list[psutil.Process]:
        """Every process of the machine that bears this journal's mark."""
        try:
            with self.reader() as reader:
                uuid = reader.uuid
        except JournalError:  # no night began
            return []
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("RUNQ_STEP", "").startswith(uuid) and process.status() != "zombie":
                    found.append(process)
            except psutil.Error:
                continue
        return found


@pytest.fixture(scope="session")
def workshop_class() -> type[Workshop]:
    """For whoever needs more than one."""
    return Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    folder = tmp_path / "night"
    folder.mkdir()
    shop = Workshop(folder, tmp_path / "state")
    yield shop
    for process in shop.started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        if process.stdout and not process.stdout.closed:
            process.communicate()
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
