"""The command line in this process, and a folder with a queue and a journal to try it on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from runq import cli
from runq_journal import Journal
from runq_schemas import events as ev

NIGHT = "2026-09-01_220000"

QUEUE = """\
defaults: { reset: none }
entries:
  - { config: config.yaml, pack: packs/office.yaml, model: gemma, judge_config: judge.yaml }
  - { config: config.yaml, pack: packs/office.yaml, model: qwen }
"""


@attrs.frozen
class Ran:
    """What a command line came to."""

    code: int
    out: str
    err: str


Runq = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a queue; nothing of the user's is touched or read."""
    folder = tmp_path / "home"
    (folder / "packs").mkdir(parents=True)
    for name in ("config.yaml", "judge.yaml", "packs/office.yaml"):
        (folder / name).write_text("id: office\n")
    (folder / "queue.yaml").write_text(QUEUE)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("RUNQ_RUNS", raising=False)
    return folder


@pytest.fixture
def runq(home: Path, capsys: pytest.CaptureFixture[str]) -> Runq:
    def run(*words: str) -> Ran:
        capsys.readouterr()
        code = cli.run(list(words))
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


@pytest.fixture
def past(home: Path) -> Path:
    """A journal in ./runs with one night: e0 complete, e1 failed. Gives the runs folder."""
    runs = home / "runs"
    logs = runs / f"{NIGHT}_queue" / "logs"
    logs.mkdir(parents=True)
    with Journal.open(runs / "journal.db") as journal:

        def say(event: ev.Event, entry: int | None = None, step: str | None = None, attempt: int | None = None) -> None:
            journal.append(event, night=NIGHT, entry=entry, step=step, attempt=attempt)

        def attempt(entry: int, step: str, status: ev.StepStatus, number: int = 1, **fields: Any) -> None:
            log = logs / f"e{entry}-{step}-{number}.log"
            log.write_text(f"this is {step} {number} of e{entry}\n\x1b[31mred\x1b[0m\n")
            say(
                ev.StepStarted(
                    argv=("x",),
                    log=str(log),
                    bundle=str(runs / f"{NIGHT}_e{entry}"),
                    timeout_s=60.0,
                    stall_timeout_s=None,
                    identity=f"{step}-{entry}",
                    identity_parts={},
                ),
                entry,
                step,
                number,
            )
            say(ev.StepFinished(status=status, seconds=5.0, **fields), entry, step, number)

        say(
            ev.NightStarted(
                queue_path=str(home / "queue.yaml"),
                queue_sha256="",
                base_dir=str(home),
                runs_dir=str(runs),
                queue_dir=str(runs / f"{NIGHT}_queue"),
                started_local="2026-09-01T22:00:00+02:00",
                entries=tuple(
                    ev.PlannedEntry(
                        id=number,
                        index=number,
                        model={"id": model},
                        config="config.yaml",
                        pack="packs/office.yaml",
                        judge_config=None,
                        judge_model=None,
                        steps=tuple(
                            ev.PlannedStep(name=step, identity=f"{step}-{number}", run=True, why="has not run")
                            for step in steps
                        ),
                        settings={},
                    )
                    for number, (model, steps) in enumerate((("gemma", ("eval", "judge")), ("qwen", ("eval",))))
                ),
                host=ev.Host(name="box", system="Linux", machine="x86_64", cpus=8, memory_mb=65536.0),
                boot_id="boot",
                pid=1,
                versions={},
                plugins=(),
            )
        )
        attempt(0, "eval", "failed", 1, reason="it exited with 3")
        attempt(0, "eval", "ok", 2)
        attempt(0, "judge", "ok")
        say(ev.EntryFinished(status="complete"), 0)
        attempt(1, "eval", "failed", reason="it exited with 3")
        say(ev.EntryFinished(status="incomplete"), 1)
        say(ev.NightFinished(total=2, complete=1))
    return runs
