"""Measuring side by side: rounds that alternate, medians, ratios; and the machine they were taken on."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

Case = Callable[[], float]
"""Does its work once and returns what it measured: seconds, MB or events per second."""


@attrs.frozen(kw_only=True)
class Row:
    """One line of a table: a figure, and its ratio to the reference of the table."""

    name: str
    figure: float
    unit: str
    ratio: float | None = None
    limit: str = ""
    note: str = ""


@attrs.define(kw_only=True)
class Table:
    """What one part of the bench found."""

    title: str
    rows: list[Row] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)

    def add(self, name: str, figure: float, unit: str, **more: object) -> Row:
        row = Row(name=name, figure=figure, unit=unit, **more)  # type: ignore[arg-type]
        self.rows.append(row)
        return row

    def text(self) -> str:
        """The table as Markdown."""
        lines = [
            f"## {self.title}",
            "",
            "| what | figure | ratio | limit | note |",
            "| --- | ---: | ---: | --- | --- |",
        ]
        for row in self.rows:
            ratio = "" if row.ratio is None else number(row.ratio)
            lines.append(f"| {row.name} | {number(row.figure)} {row.unit} | {ratio} | {row.limit} | {row.note} |")
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """Three significant digits, no exponent; below 0.001 two of them."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if value == 0 or abs(value) >= 0.001:
        return f"{value:.3g}"
    return f"{value:.6f}".rstrip("0")


def as_json(machine: str, tables: Sequence[Table]) -> str:
    """The same for programs: ``{machine, tables: [{title, rows, notes}]}``, a row with the fields of `Row`."""
    return json.dumps({"machine": machine, "tables": [attrs.asdict(table) for table in tables]}, indent=2)


@attrs.frozen
class Rounds:
    """What cases came to that took turns, one figure a round and case."""

    figures: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        """The median of a case."""
        return statistics.median(self.figures[name])

    def ratio(self, name: str, reference: str) -> float:
        """The median over the rounds of a case to another in the same round: what slows a round down slows both."""
        pairs = zip(self.figures[name], self.figures[reference], strict=True)
        return statistics.median(figure / base for figure, base in pairs)


def alternate(cases: Mapping[str, Case], rounds: int) -> Rounds:
    """Rounds in which every case takes its turn, so that a slow minute of the machine hits all alike."""
    figures: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            figures[name].append(case())
    return Rounds(figures)


def seconds(argv: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> float:
    """Wall seconds of a program that must end with 0; what it prints goes nowhere.

    Raises:
        RuntimeError: it did not end with 0; with the end of what it said.
    """
    words = [str(word) for word in argv]
    # A file and no pipe: whoever reads a pipe wakes up for each line, and there are two processors perhaps.
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        done = subprocess.run(
            words,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            check=False,
        )
        took = time.perf_counter() - started
        if done.returncode != 0:
            said.seek(0)
            raise RuntimeError(
                f"{' '.join(words)} ended with {done.returncode}: {said.read()[-800:].decode(errors='replace')}"
            )
    return took


def machine(folder: Path) -> str:
    """The machine in one line, with what its disk takes for one fdatasync of a small write in the folder."""
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else ""
    return (
        f"{platform.system()} {platform.release()}, {os.cpu_count()} cores {model}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"one fdatasync {statistics.median(fdatasyncs(folder, 200)) * 1e3:.2f} ms"
    ).replace("  ", " ")


def fdatasyncs(folder: Path, count: int) -> list[float]:
    """Seconds that each of so many fdatasyncs takes, after a write of 400 bytes behind the last."""
    path = folder / "fdatasync"
    log = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    took: list[float] = []
    try:
        for _ in range(count):
            os.write(log, b"x" * 400)
            started = time.perf_counter()
            synchronise(log)
            took.append(time.perf_counter() - started)
    finally:
        os.close(log)
        path.unlink()
    return took


def synchronise(descriptor: int) -> None:
    """fdatasync(2), or fsync(2) where there is none (macOS)."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def clean_environment() -> dict[str, str]:
    """The environment without what would slow Python down: bytecode must be kept, as any installed program's is."""
    left_out = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "COVERAGE_PROCESS_START"}
    return {key: value for key, value in os.environ.items() if key not in left_out}
