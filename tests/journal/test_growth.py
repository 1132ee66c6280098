"""What a question to the journal costs, counted in SQLite's own steps: nothing grows faster than what it reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from runq_journal import Journal, JournalReader
from runq_journal.view_rows import ORDERS
from runq_schemas import events as ev

HOST = ev.Host(name="h", system="Linux", machine="x86_64", cpus=2, memory_mb=1024.0)


def plan(entries: int, steps: int) -> ev.NightStarted:
    return ev.NightStarted(
        queue_path="/q.yaml",
        queue_sha256="0" * 64,
        base_dir="/",
        runs_dir="/runs",
        queue_dir="/runs/q",
        started_local="2026-09-01T22:00:00+02:00",
        entries=tuple(
            ev.PlannedEntry(
                id=number,
                index=number,
                model={"id": f"m{number}"},
                config=None,
                pack="p",
                judge_config=None,
                judge_model=None,
                steps=tuple(ev.PlannedStep(name=f"s{n}", identity=f"i{n}", run=True, why="") for n in range(steps)),
                settings={"retries": 0},
            )
            for number in range(entries)
        ),
        host=HOST,
        boot_id="b",
        pid=1,
        versions={},
        plugins=(),
    )


@attrs.frozen
class Shape:
    nights: int
    entries: int
    steps: int

    def write(self, path: Path) -> Path:
        with Journal.open(path) as journal:
            journal._conn.execute("PRAGMA synchronous = OFF")  # the events are counted, not kept
            for number in range(self.nights):
                self._night(journal, f"n{number:04}")
        return path

    def _night(self, journal: Journal, night: str) -> None:
        journal.append(plan(self.entries, self.steps), night=night)
        for entry in range(self.entries):
            journal.append(ev.EntryStarted(), night=night, entry=entry)
            journal.append(
                ev.SettleFinished(
                    status="settled", proven=True, waited_s=0.0, baseline_mb={"system": 100.0}, probes=()
                ),
                night=night,
                entry=entry,
            )
            for number in range(self.steps):
                self._step(journal, night, entry, f"s{number}", f"i{number}")
            journal.append(ev.EntryFinished(status="complete"), night=night, entry=entry)

    def _step(self, journal: Journal, night: str, entry: int, step: str, identity: str) -> None:
        where: dict[str, Any] = {"night": night, "entry": entry, "step": step, "attempt": 1}
        started = ev.StepStarted(
            argv=("x",),
            log="/l",
            bundle="/b",
            timeout_s=1.0,
            stall_timeout_s=None,
            identity=identity,
            identity_parts={},
        )
        journal.append(started, **where)
        journal.append(ev.StepFinished(status="ok", seconds=1.0, peak_mb={"system": 120.0}), **where)


def instructions(reader: JournalReader, question: Callable[[], object]) -> int:
    """Hundreds of instructions of SQLite's virtual machine."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    reader._conn.set_progress_handler(step, 100)
    try:
        question()
    finally:
        reader._conn.set_progress_handler(None, 0)
    return count


@pytest.fixture(scope="module")
def cost(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Shape, str], int]:
    folder = tmp_path_factory.mktemp("growth")
    opened: dict[Shape, JournalReader] = {}

    def cost(shape: Shape, view: str) -> int:
        if shape not in opened:
            opened[shape] = JournalReader.open(shape.write(folder / f"{len(opened)}" / "journal.db"))
        reader = opened[shape]
        return instructions(reader, lambda: reader.view(view, "n0000"))

    return cost


# What they say is not of one night.
OF_A_NIGHT = sorted(set(ORDERS) - {"duration_estimate", "pack_disk", "check_result", "metric"})


@pytest.mark.parametrize("view", OF_A_NIGHT)
def test_a_night_of_twice_the_steps_costs_at_most_little_more_than_twice(cost: Any, view: str) -> None:
    small, large = cost(Shape(1, 1, 60), view), cost(Shape(1, 1, 120), view)
    assert large <= 2.6 * small + 20  # sorting adds a logarithm; a search among all steps for each would make it four


@pytest.mark.parametrize("view", OF_A_NIGHT)
def test_a_night_of_twice_the_entries_costs_at_most_little_more_than_twice(cost: Any, view: str) -> None:
    small, large = cost(Shape(1, 40, 2), view), cost(Shape(1, 80, 2), view)
    assert large <= 2.6 * small + 20


@pytest.mark.parametrize("view", OF_A_NIGHT)
def test_other_nights_cost_nothing(cost: Any, view: str) -> None:
    alone, among_many = cost(Shape(1, 3, 2), view), cost(Shape(40, 3, 2), view)
    assert among_many <= 1.5 * alone + 20
