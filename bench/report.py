"""What the page of a long night costs: making it, its size, and opening it in Chromium."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench import long_night
from bench.measure import Table, clean_environment, seconds

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

SWITCHES = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


def run(*, quick: bool) -> list[Table]:
    """Make the page of a night and open it."""
    entries, samples, rounds = (20, 50_000, 1) if quick else (200, 500_000, 5)
    return [of_night(entries, samples, rounds)]


def of_night(entries: int, samples: int, rounds: int) -> Table:
    """The same of a night of so many entries and readings."""
    table = Table(title=f"The page of a night of {entries} entries and {samples:,} readings of memory")
    with tempfile.TemporaryDirectory(prefix="runq-bench-") as name:
        runs = Path(name) / "runs"
        runs.mkdir()
        long_night.write(runs / "journal.db", entries=entries, samples=samples)
        page = Path(name) / "night.html"
        # Of the environment that runs the bench: it has the extra `report`.
        argv = [sys.executable, "-m", "runq", "report", "--runs", runs, "-o", page]
        made = [seconds(argv, env=clean_environment()) for _ in range(rounds)]
        table.add("`runq report`", statistics.median(made), "s", limit="below 10 s")
        table.add("its size", page.stat().st_size / 2**20, "MB", limit="below 5 MB")
        opened = [one for one in (_open(page) for _ in range(rounds)) if one is not None]
        if opened:
            table.add("opened and painted in Chromium", statistics.median(opened), "s", limit="below 3 s")
        else:
            table.notes.append("Chromium or Playwright is not installed: opening was not measured")
    return table


def _open(page: Path) -> float | None:
    """Seconds from the call to a painted window of 1280 by 900 in a fresh tab; ``None`` without a browser."""
    program = next((path for path in map(shutil.which, BROWSERS) if path), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if program is None:
        return None
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(SWITCHES))
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        started = time.perf_counter()
        tab.goto(page.as_uri(), wait_until="load")
        tab.screenshot()
        took = time.perf_counter() - started
        browser.close()
    return took
