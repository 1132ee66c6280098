"""What a journal of a million events costs to read: one night, all nights, what is left, the chain, the first page."""

from __future__ import annotations

import sqlite3
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from bench import journals
from bench.measure import Table, alternate
from runq import summary
from runq_journal import chain
from runq_journal.reader import JournalReader

FLOOR = "SQLite reads every event once"
VERIFY = "hash chain verified"


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def scan(path: Path) -> float:
    """SQLite's own speed on the file: every byte of every event read once."""
    conn = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return timed(
            lambda: conn.execute(
                "SELECT count(*), sum(length(data) + length(prev_hash) + length(hash)) FROM event"
            ).fetchone()
        )
    finally:
        conn.close()


def run(*, quick: bool) -> list[Table]:
    """Replay and resume on a large journal."""
    return [reading(20_000, 1) if quick else reading(1_000_000, 3)]


def reading(events: int, rounds: int) -> Table:
    """What questions to a journal of so many events cost."""
    with tempfile.TemporaryDirectory(prefix="runq-bench-") as name:
        path, nights = journals.write(Path(name) / "journal.db", events=events)
        size = path.stat().st_size / 2**20
        count = nights * (40 * journals.EVENTS_AN_ENTRY + 2)
        table = Table(title=f"Reading a journal of {count:,} events ({nights:,} nights of 40 entries, {size:,.0f} MB)")
        middle = journals.night_id(nights // 2)
        with JournalReader.open(path) as reader:
            found = alternate(
                {
                    FLOOR: lambda: scan(path),
                    "open, and rebuild one night's summary": lambda: timed(lambda: _one(path, middle)),
                    "what one night has left (`todo`)": lambda: timed(lambda: reader.todo(middle)),
                    "all nights' summaries": lambda: timed(reader.night_summaries),
                    "usual durations over all nights": lambda: timed(reader.durations),
                    VERIFY: lambda: timed(lambda: _verify(path)),
                },
                rounds,
            )
            limits = {
                "open, and rebuild one night's summary": "below 50 ms",
                "all nights' summaries": "below 5 s",
            }
            for label in list(found.figures)[:-1]:
                ratio = found.ratio(label, FLOOR)
                table.add(label, found.median(label) * 1e3, "ms", ratio=ratio, limit=limits.get(label, ""))
            rate, ratio = count / found.median(VERIFY), found.ratio(VERIFY, FLOOR)
            table.add(VERIFY, rate, "events/s", ratio=ratio, limit="at least 200,000")
        table.add("first page of `runq browse`", _front_page(path) * 1e3, "ms")
    return table


def _one(path: Path, night: str) -> None:
    with JournalReader.open(path) as reader:
        summary.to_json(summary.build(reader, night))


def _verify(path: Path) -> None:
    conn = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        broken = chain.first_break(conn)
        if broken is not None:
            raise RuntimeError(str(broken))
    finally:
        conn.close()


def _front_page(path: Path) -> float:
    """Seconds until a Datasette that runs already has served the first page; the second visit, median of five."""
    from bench.browsing import serving

    with serving(path) as url:

        def visit() -> float:
            return timed(lambda: urllib.request.urlopen(url, timeout=120).read())

        visit()
        return alternate({"page": visit}, 5).median("page")
