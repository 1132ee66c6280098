"""A queue to prepare, and a journal to write a night into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runq.discovery import Plugins
from runq.prepare import prepare
from runq.prepared import PreparedQueue
from runq_journal import Journal
from runq_schemas import events as ev
from runq_schemas import parse_queue


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what a queue file of touchstone's kind names."""
    made = tmp_path / "night"
    (made / "packs").mkdir(parents=True)
    (made / "config.yaml").write_text("endpoint: { base_url: 'http://127.0.0.1:1234/v1' }\nmodels: [ { id: a } ]\n")
    (made / "other.yaml").write_text("endpoint: { base_url: 'http://127.0.0.1:1234/v1' }\nmodels: [ { id: b } ]\n")
    (made / "judge.yaml").write_text("endpoint: { base_url: 'http://127.0.0.1:1234/v1' }\nmodel: j\n")
    (made / "other-judge.yaml").write_text("endpoint: { base_url: 'http://127.0.0.1:1234/v1' }\nmodel: k\n")
    (made / "packs" / "office.yaml").write_text("id: office\n")
    (made / "packs" / "home.yaml").write_text("id: home\n")
    return made


Prepare = Callable[..., PreparedQueue]


@pytest.fixture
def prepared(folder: Path) -> Prepare:
    """Prepare a queue file's text in the folder."""

    def make(text: str, **changes: Any) -> PreparedQueue:
        spec = parse_queue(text, folder / "queue.yaml")
        given: dict[str, Any] = {"base_dir": folder, "plugins": Plugins(), "environ": {}, "cwd": folder, **changes}
        return prepare(spec, **given)

    return make


class Told:
    """A night told event by event, one second after another."""

    night = "2026-10-01_220000"

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        self.path = runs / "journal.db"
        self.seconds = 0.0
        self.start = datetime(2026, 10, 1, 20, tzinfo=UTC)
        self.journal = Journal.open(
            self.path, now=lambda: self.start + timedelta(seconds=self.seconds), monotonic=lambda: self.seconds
        )

    def say(
        self, event: ev.Event, entry: int | None = None, step: str | None = None, attempt: int | None = None
    ) -> None:
        self.seconds += 1
        self.journal.append(event, night=self.night, entry=entry, step=step, attempt=attempt)

    def plan(self, *models: str, cls: Any = ev.NightStarted, pack: str = "packs/office.yaml") -> None:
        self.say(night_plan(*models, cls=cls, pack=pack, runs=self.runs, night=self.night))

    def started(self, entry: int, step: str, attempt: int = 1) -> None:
        bundle = self.runs / f"{self.night}_e{entry}_model_eval_office"
        self.say(
            ev.StepStarted(
                argv=("python", "-m", "touchstone", step),
                log=str(self.runs / f"{self.night}_queue" / "logs" / f"e{entry}-{step}-{attempt}.log"),
                bundle=str(bundle),
                timeout_s=14400.0,
                stall_timeout_s=None,
                identity=f"{step}-{entry}",
                identity_parts={},
            ),
            entry,
            step,
            attempt,
        )

    def finished(self, entry: int, step: str, status: ev.StepStatus = "ok", attempt: int = 1, **fields: Any) -> None:
        self.say(ev.StepFinished(status=status, **{"seconds": 61.0, **fields}), entry, step, attempt)

    def settled(self, entry: int, mb: float, *, proven: bool) -> None:
        self.say(
            ev.SettleFinished(status="settled", proven=proven, waited_s=4.0, baseline_mb={"system": mb}, probes=()),
            entry,
        )


def night_plan(*models: str, cls: Any, pack: str, runs: Path, night: str) -> Any:
    return cls(
        queue_path=str(runs.parent / "queue.yaml"),
        queue_sha256="ab" * 32,
        base_dir=str(runs.parent),
        runs_dir=str(runs),
        queue_dir=str(runs / f"{night}_queue"),
        started_local="2026-10-01T22:00:00+02:00",
        entries=tuple(
            ev.PlannedEntry(
                id=number,
                index=number,
                model={"id": model},
                config="config.yaml",
                pack=pack,
                judge_config="judge.yaml",
                judge_model="j",
                steps=tuple(
                    ev.PlannedStep(name=step, identity=f"{step}-{number}", run=True, why="has not run")
                    for step in ("eval", "judge")
                ),
                settings={},
            )
            for number, model in enumerate(models)
        ),
        host=ev.Host(name="box", system="Linux", machine="x86_64", cpus=8, memory_mb=65536.0),
        boot_id="boot",
        pid=4711,
        versions={"runq": "0.1.0"},
        plugins=(),
    )


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    runs = tmp_path / "home" / "runs"
    runs.mkdir(parents=True)
    night = Told(runs)
    yield night
    night.journal.close()
