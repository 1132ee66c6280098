"""What a step costs beside its own work: runq with every event durable, its floor, and what people use instead."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from bench import queues
from bench.measure import Table, alternate, clean_environment, seconds, synchronise
from bench.peers import MissingPeerError, program_of, python_of, runq_program, script_of

PEERS = Path(__file__).parent / "peers"
TOUCH = "/usr/bin/touch"
EVENTS_A_STEP = 3
"""``step.started``, ``step.spawned``, ``step.finished``."""


def bare(folder: Path, steps: int, *, syncs: int) -> float:
    """Seconds a step of a loop that only spawns and waits, with so many fdatasyncs of a small write in between."""
    out, log = str(folder / "out"), os.open(folder / "log", os.O_CREAT | os.O_WRONLY, 0o600)
    started = time.perf_counter()
    for _ in range(steps):
        os.waitpid(os.posix_spawn(TOUCH, [TOUCH, out], os.environ), 0)
        for _ in range(syncs):
            os.write(log, b"x" * 400)
            synchronise(log)
    took = time.perf_counter() - started
    os.close(log)
    return took / steps


def bare_sqlite(folder: Path, steps: int) -> float:
    """The same with the journal's own tables and three commits a step, straight through sqlite3."""
    from runq_journal import schema

    path = folder / "bare.db"
    for old in folder.glob("bare.db*"):
        old.unlink()
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("PRAGMA synchronous = FULL")
    conn.execute(schema.EVENT_TABLE)
    for statement in (*(s for s in schema.INDICES if " ON event " in s), *schema.GUARDS.values()):
        conn.execute(statement)
    out, number, before = str(folder / "out"), 0, "sha256:" + "0" * 64
    started = time.perf_counter()
    for step in range(steps):
        os.waitpid(os.posix_spawn(TOUCH, [TOUCH, out], os.environ), 0)
        for kind in ("step.started", "step.spawned", "step.finished"):
            number += 1
            hashed = f"sha256:{number:064}"
            values = (
                number,
                "n",
                "2026-01-01T00:00:00.000000Z",
                1.5,
                kind,
                0,
                f"s{step}",
                1,
                "x" * 400,
                before,
                hashed,
            )
            conn.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            before = hashed
    took = time.perf_counter() - started
    conn.close()
    return took / steps


def of_runq(folder: Path, steps: int) -> tuple[float, float]:
    """Seconds a step inside a night, by the journal's own times, and seconds of the whole night beside its steps."""
    inside, whole = _night(folder, queues.of_steps(folder / "queue.yaml", steps), "step", steps)
    return inside / steps, whole - inside


def of_runq_entries(folder: Path, entries: int) -> float:
    """Seconds an entry of two steps inside a night: reset, settling, steps, and the summary of all entries after it."""
    inside, _ = _night(folder, queues.of_entries(folder / "queue.yaml", entries), "entry", 2 * entries)
    return inside / entries


def _night(folder: Path, queue: Path, what: str, steps: int) -> tuple[float, float]:
    """Seconds from the first start of a step or entry to the last end, and of the whole command."""
    runs = folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    whole = seconds([runq_program(), "night", queue, "--runs", runs], cwd=folder, env=clean_environment())
    conn = sqlite3.connect(runs / "journal.db")
    first, last, count = conn.execute(
        "SELECT min(CASE kind WHEN ? || '.started' THEN at END), max(CASE kind WHEN ? || '.finished' THEN at END),"
        " sum(kind = 'step.finished' AND json_extract(data, '$.status') = 'ok') FROM event",
        (what, what),
    ).fetchone()
    conn.close()
    if count != steps:
        raise RuntimeError(f"{count} of {steps} steps were ok")
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds(), whole


def peers(folder: Path, steps: int) -> dict[str, tuple[Callable[[], float], str]]:
    """Each peer that is here: what runs so many steps and returns seconds a step, and what it promises."""
    out = folder / "peer"
    env = {**clean_environment(), "STEPS": str(steps), "OUT": str(out)}

    def printed(peer: str, script: str, extra: dict[str, str] | None = None) -> Callable[[], float]:
        python = python_of(peer)

        def run() -> float:
            for old in folder.glob("peer*"):
                old.unlink()
            argv = [str(python), str(PEERS / script), str(steps), str(out)]
            done = subprocess.run(
                argv, cwd=folder, env={**env, **(extra or {})}, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                raise RuntimeError(f"{peer}: {done.stderr[-800:]}")
            return float(done.stdout.split()[-1]) / steps

        return run

    def whole(argv: list[str], clean: Callable[[], object] = lambda: None) -> Callable[[], float]:
        def run() -> float:
            clean()
            return seconds(argv, cwd=folder, env=env) / steps

        return run

    def parallel() -> Callable[[], float]:
        program = program_of("parallel")
        script = f"seq {steps} | {program} --will-cite -j1 --joblog {out}.joblog {TOUCH} {out}"
        return whole(["sh", "-c", script])

    def task_spooler() -> Callable[[], float]:
        program = program_of("tsp")
        socket = f"TS_SOCKET={folder}/tsp.sock TS_SAVELIST={folder}/tsp.list"
        each = f"for i in $(seq {steps}); do {program} -n {TOUCH} {out} >/dev/null; done"
        return whole(["sh", "-c", f"export {socket}; {each}; {program} -w; {program} -K"])

    def nq() -> Callable[[], float]:
        program = program_of("nq")
        each = f"for i in $(seq {steps}); do {program} -q {TOUCH} {out} >/dev/null; done"
        script = f"export NQDIR={folder}/nq; mkdir -p $NQDIR; {each}; {program} -w"
        return whole(["sh", "-c", script], lambda: shutil.rmtree(folder / "nq", ignore_errors=True))

    def doit() -> Callable[[], float]:
        state = folder / "doit.db"
        argv = [str(script_of("doit", "doit")), "-f", str(PEERS / "dodo.py"), "--db-file", str(state)]
        return whole(argv, lambda: [old.unlink() for old in folder.glob("doit.db*")])

    def snakemake() -> Callable[[], float]:
        def clean() -> None:
            shutil.rmtree(folder / ".snakemake", ignore_errors=True)
            for old in folder.glob("peer*"):
                old.unlink()

        program = str(script_of("snakemake", "snakemake"))
        return whole([program, "--snakefile", str(PEERS / "Snakefile"), "--cores", "1", "--quiet", "all"], clean)

    prefect = {"PREFECT_HOME": str(folder / "prefect"), "PREFECT_LOGGING_LEVEL": "ERROR"}
    ways: dict[str, tuple[Callable[[], Callable[[], float]], str]] = {
        "task-spooler": (task_spooler, "memory only: a power cut loses the queue and every result"),
        "nq": (nq, "log files, never synchronised: a power cut loses the last seconds"),
        "doit": (doit, "state is written at its exit: a power cut loses the whole run"),
        "GNU parallel --joblog": (parallel, "log written, not synchronised"),
        "huey, SQLite fsync": (lambda: printed("huey", "huey_steps.py"), "queue and results synchronised"),
        "DBOS on SQLite": (lambda: printed("dbos", "dbos_steps.py"), "every step's result in SQLite"),
        "Snakemake": (snakemake, "metadata per output, not synchronised"),
        "Prefect": (
            lambda: printed("prefect", "prefect_steps.py", prefect),
            "states in its server's SQLite",
        ),
    }
    found: dict[str, tuple[Callable[[], float], str]] = {}
    for name, (make, promise) in ways.items():
        try:
            found[name] = (make(), promise)
        except MissingPeerError as error:
            print(f"left out: {error}")
    return found


FLOOR = f"bare posix_spawn loop + {EVENTS_A_STEP} fdatasyncs"
SUBJECT = "runq, every event durable"


def run(*, quick: bool) -> list[Table]:
    """Step overhead beside the peers, and how it grows."""
    with tempfile.TemporaryDirectory(prefix="runq-bench-") as name:
        folder = Path(name)
        return [
            _beside_peers(folder, quick=quick),
            _growth(folder, quick=quick),
            _growth_of_entries(folder, quick=quick),
        ]


def _beside_peers(folder: Path, *, quick: bool) -> Table:
    steps, rounds, peer_rounds = (50, 3, 1) if quick else (200, 7, 3)
    table = Table(title=f"Overhead of a step ({steps} trivial steps of one entry)")
    rest: list[float] = []

    def runq() -> float:
        step, beside = of_runq(folder, steps)
        rest.append(beside)
        return step

    mine = alternate(
        {
            "bare posix_spawn loop": lambda: bare(folder, steps, syncs=0),
            FLOOR: lambda: bare(folder, steps, syncs=EVENTS_A_STEP),
            "the same, its events inserted by sqlite3": lambda: bare_sqlite(folder, steps),
            SUBJECT: runq,
        },
        rounds,
    )
    for label in mine.figures:
        limit = "at most 1.5" if label == SUBJECT else ""
        table.add(label, mine.median(label) * 1e3, "ms", ratio=mine.ratio(label, FLOOR), limit=limit)
    for label, (case, promise) in peers(folder, steps).items():
        try:
            found = alternate({FLOOR: lambda: bare(folder, steps, syncs=EVENTS_A_STEP), label: case}, peer_rounds)
        except RuntimeError as error:
            table.notes.append(f"- {label} failed here: {str(error).splitlines()[-1][:200]}")
            continue
        table.add(label, found.median(label) * 1e3, "ms", ratio=found.ratio(label, FLOOR), note=promise)
    table.notes.append(
        f"- the rest of runq's night (start, reading the queue, reset, summaries): {min(rest):.2f} s in all"
    )
    return table


def _growth(folder: Path, *, quick: bool) -> Table:
    table = Table(title="How the cost of a step grows")
    sizes = (1, 10, 100) if quick else (1, 10, 200, 1_000, 10_000)
    figures = {size: of_runq(folder, size)[0] for size in sizes}
    for size, figure in figures.items():
        limit = "flat from 10 on" if size == sizes[-1] else ""
        table.add(
            f"{size:,} step{'s' if size > 1 else ''}",
            figure * 1e3,
            "ms a step",
            ratio=figure / figures[10],
            limit=limit,
        )
    return table


def _growth_of_entries(folder: Path, *, quick: bool) -> Table:
    table = Table(
        title="How the cost of an entry grows (reset, settling, two steps, the summary of all entries so far)"
    )
    sizes = (1, 10, 40) if quick else (1, 10, 100, 400)
    figures = {size: of_runq_entries(folder, size) for size in sizes}
    for size, figure in figures.items():
        label = f"{size:,} entries" if size > 1 else "1 entry"
        table.add(label, figure * 1e3, "ms an entry", ratio=figure / figures[10])
    return table
