"""Showing a night while it runs, and how it ended. Everything for people goes to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from runq.record import Observer
    from runq_journal.reader import JournalReader

__all__ = ["can_redraw", "check_closing", "closing", "dated_lines", "observer", "usual_seconds"]

_CANNOT_REDRAW = ("dumb", "unknown")

PACK_NEEDS_COLUMNS = 70
"""On a narrower terminal the packs would leave the model ids a few letters a line."""


@contextmanager
def observer(estimates: Mapping[tuple[str, str, str], float] | None = None) -> Iterator[Observer]:
    """The observer that fits standard error: live on a terminal, dated lines elsewhere.

    Args:
        estimates: (step, model id, pack) to the median seconds of earlier nights.
    """
    if not can_redraw(sys.stderr):
        yield dated_lines()
        return
    from rich.console import Console
    from rich.live import Live

    from runq.progress.live import LiveView

    console = Console(stderr=True)
    known = estimates or {}
    live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False)
    live.start()
    try:
        yield LiveView(console, live, lambda *key: known.get(key))
    finally:
        with suppress(OSError):  # the terminal was closed; the night must not end in an error for that
            live.stop()


def can_redraw(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal on which a line can be drawn anew."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "") not in _CANNOT_REDRAW


def usual_seconds(reader: JournalReader) -> dict[tuple[str, str, str], float]:
    """The usual duration in seconds of each (step, model id, pack), going by all nights."""
    return {(row["step"], row["model_id"], row["pack"] or ""): row["seconds"] for row in reader.durations()}


def dated_lines() -> Observer:
    """The observer for a standard error that is no terminal: a dated line for each transition."""
    from runq.progress.lines import Lines

    def write(line: str) -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - the one place where progress is printed

    return Lines(write)


def closing(summary: Mapping[str, Any], *, folder: Path, resume: str | None, earlier: str | None, ran: bool) -> None:
    """The table at the end, where the files are, and the command to go on with."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from runq.logs import one_line
    from runq.summary_left import left_in_short

    console = Console(stderr=True)
    if not ran:
        console.print(f"nothing is left to run in night {summary['night']}", highlight=False)
    table = Table("#", title=f"night {summary['night']}", title_justify="left")
    with_pack = console.width >= PACK_NEEDS_COLUMNS
    table.add_column("model", overflow="fold")
    if with_pack:
        table.add_column("pack", overflow="fold")
    for name in ("eval", "judge", "delta MB"):
        table.add_column(name, no_wrap=True)
    for entry in summary["entries"]:
        delta = entry["model_delta_mb"]
        mark = "" if entry["baseline_proven"] or delta is None else "*"
        cells = [
            f"e{entry['id']}",
            entry["model_id"],
            *([entry["pack"] or ""] if with_pack else []),
            _cell(entry["eval_status"], entry["eval_seconds"]),
            _cell(entry["judge_status"], entry["judge_seconds"]),
            "" if delta is None else f"{delta:.0f}{mark}",
        ]
        table.add_row(*[Text(one_line(cell)) for cell in cells])
    console.print(table)
    if any(e["model_delta_mb"] is not None and not e["baseline_proven"] for e in summary["entries"]):
        console.print("* the baseline is not proven", highlight=False)
    lines = [f"e{entry['id']}: {one_line(entry['reason'])}" for entry in summary["entries"] if entry["reason"]]
    if summary["left"]:
        lines.append(f"left for another time: {left_in_short(summary)}")
    lines += [
        f"{summary['complete']} of {summary['total']} entries complete",
        f"summary  {folder / 'summary.md'}",
        f"journal  {folder.parent / 'journal.db'}",
    ]
    if resume:
        lines.append(f"go on    {resume}")
    if earlier:
        lines.append(f"an earlier night of this queue is incomplete; go on with it by: {earlier}")
    for line in lines:
        console.print(Text(line), soft_wrap=True, highlight=False)


def check_closing(rows: Sequence[Mapping[str, Any]], *, files: Sequence[Path]) -> None:
    """The table at the end of a check, what to do about each model, and where the files are."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from runq.logs import one_line

    console = Console(stderr=True)
    table = Table("model", title="check", title_justify="left")
    table.columns[0].overflow = "fold"
    for name in ("verdict", "answer", "delta MB", "context", "evicted"):
        table.add_column(name, no_wrap=True)
    for row in rows:
        delta = row["ram_delta_mb"]
        mark = "" if row["baseline_proven"] or delta is None else "*"
        cells = [
            row["model_id"],
            row["verdict"],
            row["status"],
            "" if delta is None else f"{delta:.0f}{mark}",
            str(row["context_length"] or ""),
            row["evict_verdict"],
        ]
        table.add_row(*[Text(one_line(cell)) for cell in cells])
    console.print(table)
    told = [{name: one_line(row[name]) for name in ("model_id", "problem", "remedy")} for row in rows if row["problem"]]
    lines = [f"{row['model_id']}: {row['problem']}\n  {row['remedy']}" for row in told]
    lines += [str(file) for file in files]
    for line in lines:
        console.print(Text(line), soft_wrap=True, highlight=False)


def _cell(status: str, seconds: float | None) -> str:
    from runq.text import duration

    return status if seconds is None else f"{status} {duration(seconds)}"
