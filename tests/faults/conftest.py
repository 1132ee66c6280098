"""Nights told event by event, sound ones and such as no runner may write."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench import laws
from runq_schemas import events as ev

GOLDEN = Path(__file__).parents[1] / "journal" / "make_golden.py"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("laws_make_golden", GOLDEN)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


golden = _load()

NIGHT = "2026-10-01_220000"
DIED = "the runner died"


class Teller:
    """Tells nights into one journal; a new runner begins with `runner`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = golden.Clock(datetime(2026, 10, 1, 20, 0, 0, tzinfo=UTC))
        self.scribe: Any = None
        self.runner()

    def runner(self) -> None:
        """The runner is another one from here on: its own clock begins anew."""
        if self.scribe:
            self.scribe.close()
        self.clock.tick(1)
        self.scribe = golden.Scribe(self.path, NIGHT, self.clock)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scribe, name)

    def open(
        self, *entries: int, resumed: bool = False, run: bool = True, why: str = "has not run", **more: Any
    ) -> None:
        """A plan of entries with an eval and a judge each."""
        told = []
        for number in entries or (0,):
            entry = golden.planned(number, number, f"model-{number}")
            steps = tuple(ev.PlannedStep(name=s.name, identity=s.identity, run=run, why=why) for s in entry.steps)
            told.append(golden.ev.PlannedEntry(**{**{f: getattr(entry, f) for f in FIELDS}, "steps": steps}))
        self.plan(told, resumed=resumed, **more)

    def turn(self, entry: int = 0) -> None:
        """An entry begins, reset and settled."""
        self.say(ev.EntryStarted(), entry)
        self.baseline(entry, 4000.0)

    def step(self, entry: int = 0, step: str = "eval", status: ev.StepStatus = "ok", attempt: int = 1) -> None:
        """A step from start to end, ten seconds long."""
        self.start(entry, step, attempt)
        self.finish(entry, step, status, attempt, seconds=10.0)

    def leave(self, entry: int = 0, status: ev.EntryStatus = "complete") -> None:
        """An entry ends."""
        self.say(ev.EntryFinished(status=status), entry)

    def end(self, total: int = 1, complete: int = 1, **more: Any) -> None:
        """The night finishes."""
        self.say(ev.NightFinished(total=total, complete=complete, **more))

    def die(self, entry: int | None = 0, step: str = "eval", attempt: int = 1) -> None:
        """The runner dies in a step (in none: ``entry`` is ``None``), and the next one says so."""
        self.runner()
        if entry is not None:
            finished = ev.StepFinished(status="interrupted", reason=f"{DIED} while it was running")
            self.say(finished, entry, step, attempt)
        self.say(ev.NightInterrupted(reason=DIED))

    def good(self, *entries: int) -> None:
        """A whole night in which all is well."""
        self.open(*entries)
        for entry in entries or (0,):
            self.turn(entry)
            self.step(entry, "eval")
            self.step(entry, "judge")
            self.leave(entry)
        self.end(len(entries) or 1, len(entries) or 1)

    def record(self) -> laws.Record:
        """What it has told so far."""
        return laws.read(self.path)


FIELDS = ("id", "index", "model", "config", "pack", "judge_config", "judge_model", "settings")


@pytest.fixture
def tell(tmp_path: Path) -> Iterator[Teller]:
    (tmp_path / "runs").mkdir(mode=0o700)
    teller = Teller(tmp_path / "runs" / "journal.db")
    yield teller
    teller.scribe.close()


@pytest.fixture
def holds(tell: Teller) -> Callable[[], dict[str, list[str]]]:
    """The laws over the events that what was told breaks."""
    return lambda: laws.broken(tell.record())
