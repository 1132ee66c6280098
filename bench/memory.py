"""What the runner itself holds, so that the machine's memory is the models': its share (PSS), and how it grows."""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import attrs

from bench import queues
from bench.measure import Table, clean_environment
from bench.peers import runq_program
from bench.sampler import simulated

LOOK_EVERY_S = 0.1
FULL_AFTER = 400
"""Steps."""


@attrs.frozen
class Reading:
    """The runner's PSS in MB when so many steps had ended."""

    steps: int
    mb: float


def pss_mb(pid: int) -> float | None:
    """The proportional set size of a process (proc_pid_smaps_rollup(5)); ``None`` when it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    lines = [line.split() for line in text.splitlines() if line.startswith("Pss:")]
    return int(lines[0][1]) / 1024 if lines else None


def run(*, quick: bool) -> list[Table]:
    """The runner's memory through a night, over many steps, and over many samples."""
    table = Table(title="Memory of the runner (PSS)")
    if not Path("/proc/self/smaps_rollup").exists():
        table.notes.append("- left out: this system does not tell a process's share of memory")
        return [table]
    with tempfile.TemporaryDirectory(prefix="runq-bench-") as name:
        folder = Path(name)
        entries, seconds = (2, 2) if quick else (10, 3)
        night = _night(queues.of_sleeps(folder / "night.yaml", entries, seconds), folder / "night")
        table.add(
            f"a night of {entries} entries, each two steps of {seconds} s, the sampler on: most",
            max(reading.mb for reading in night),
            "MB",
            limit="below 50",
        )
        steps = 1_500 if quick else 10_000
        many = _night(queues.of_steps(folder / "many.yaml", steps), folder / "many")
        last = max(reading.mb for reading in many)
        before = max(reading.mb for reading in many if reading.steps < steps)
        table.add(f"one entry of {steps:,} steps, its queue file in memory: most before its end", before, "MB")
        table.add("the same, its summary written at its end: most", last, "MB")
        table.add(f"growth over the {steps:,} steps", growth(many, steps), "MB", limit="below 2")
    samples = 100_000 if quick else 1_000_000
    found = simulated(1.0, samples, "constant")
    table.add(f"growth over {samples:,} samples", found["pss_after_mb"] - found["pss_before_mb"], "MB", limit="below 2")
    return [table]


def growth(readings: list[Reading], steps: int) -> float:
    """MB from when everything has been used once, and SQLite's cache of pages is full (2 MB), to the last steps.

    Medians of both, because a reading falls into a step or between two. The summary at the entry's end is left out: it
    holds every step at once.
    """
    early = [one.mb for one in readings if FULL_AFTER <= one.steps <= FULL_AFTER + steps * 0.1]
    late = [one.mb for one in readings if steps * 0.9 <= one.steps < steps]
    return statistics.median(late) - statistics.median(early)


def _night(queue: Path, runs: Path) -> list[Reading]:
    argv = [str(runq_program()), "night", str(queue), "--runs", str(runs)]
    readings: list[Reading] = []
    said = queue.with_suffix(".err")  # a pipe that nobody reads would fill up and stop the night
    with (
        said.open("wb") as stderr,
        subprocess.Popen(
            argv, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
        ) as process,
    ):
        while process.poll() is None:
            time.sleep(LOOK_EVERY_S)
            mb = pss_mb(process.pid)
            if mb is not None:
                readings.append(Reading(_ended(runs / "journal.db"), mb))
    if process.returncode != 0:
        raise RuntimeError(f"the night ended with {process.returncode}: {said.read_text(errors='replace')[-800:]}")
    return readings


def _ended(journal: Path) -> int:
    """The steps that have ended; by the number of events, which costs the night nothing."""
    try:
        conn = sqlite3.connect(f"{journal.as_uri()}?mode=ro", uri=True)
        try:
            (last,) = conn.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()
        finally:
            conn.close()
    except sqlite3.OperationalError:  # not there yet
        return 0
    return int(last) // 3
