"""Measuring side by side: rounds that alternate, medians, ratios; and the machine they were taken on."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import subprocess
import sys
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
            ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
            lines.append(f"| {row.name} | {number(row.figure)} {row.unit} | {ratio} | {row.limit} | {row.note} |")
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines) + "\n"


def number(value: float) -> str:
    """Three significant digits, no exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def alternate(cases: Mapping[str, Case], rounds: int) -> dict[str, float]:
    """The median of each case over rounds that take turns, so that a slow minute of the machine hits all alike."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            found[name].append(case())
    return {name: statistics.median(values) for name, values in found.items()}


def paired(reference: Case, cases: Mapping[str, Case], rounds: int) -> tuple[float, dict[str, tuple[float, float]]]:
    """The reference's median, and for each case its median and the median ratio to a reference run just before it."""
    base: list[float] = []
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            before = reference()
            base.append(before)
            value = case()
            found[name].append((value, value / before))
    return statistics.median(base), {
        name: (statistics.median(value for value, _ in pairs), statistics.median(ratio for _, ratio in pairs))
        for name, pairs in found.items()
    }


def seconds(argv: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> float:
    """Wall seconds of a program that must end with 0; what it prints goes nowhere.

    Raises:
        RuntimeError: it did not end with 0; with the end of what it said.
    """
    started = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env=None if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    took = time.perf_counter() - started
    if done.returncode != 0:
        words = " ".join(str(word) for word in argv)
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-800:]}")
    return took


def machine() -> str:
    """The machine in one line."""
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else ""
    return (
        f"{platform.system()} {platform.release()}, {os.cpu_count()} cores {model}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    ).replace("  ", " ")


def clean_environment() -> dict[str, str]:
    """The environment without what would slow Python down: bytecode must be kept, as any installed program's is."""
    left_out = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "COVERAGE_PROCESS_START"}
    return {key: value for key, value in os.environ.items() if key not in left_out}


def runq_program() -> Path:
    """The `runq` of the interpreter this runs under."""
    return Path(sys.executable).with_name("runq")
