"""The table of a night's entries: one set of columns for the page, for Markdown and for CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from runq.logs import one_line
from runq.markdown import escaped
from runq.report.verdict import headline
from runq.scores import first_metrics, metric_text
from runq.text import duration

Entry = Mapping[str, Any]
"""One of a summary's ``entries``."""

UNPROVEN = "not proven"
"""Stands beside every memory figure whose baseline is not proven."""

NOTE = "The baseline is not proven: these memory figures may hold what an earlier model left behind."


@attrs.frozen
class Cell:
    """What stands in one cell.

    Args:
        text: in words; empty for nothing.
        word: a status that has a colour; empty for none.
        value: the figure itself, where the text shows one.
        unproven: whether the figure stands on a baseline that is not proven.
        lines: further lines below the text.
    """

    text: str = ""
    word: str = ""
    value: float | None = None
    unproven: bool = False
    lines: tuple[str, ...] = ()


@attrs.frozen
class Column:
    """One column: its heading, what an entry says there, and what it holds: number, step, result, scores, file."""

    title: str
    cell: Callable[[Entry], Cell]
    holds: str = ""


def columns(entries: Sequence[Entry]) -> list[Column]:
    """The columns that these entries need: a pack, a configuration or a speed only where there is one."""
    found = [Column("entry", lambda e: Cell(f"e{e['id']}")), Column("model", lambda e: Cell(one_line(e["model_id"])))]
    found += [_file(name) for name in ("config", "pack") if _tells_apart(entries, name)]
    found.append(Column("result", _result, "result"))
    found += [_step(name) for name in step_names(entries)]
    if any(entry["metrics"] for entry in entries):
        found.append(Column("first scores", _scores, "scores"))
    if any(entry["tokens_per_second"] is not None for entry in entries):
        found.append(Column("tokens/s", lambda e: _figure(e["tokens_per_second"]), "number"))
    found.append(
        Column("baseline MB", lambda e: _figure(e["baseline_mb"], unproven=not e["baseline_proven"]), "number")
    )
    found.append(
        Column("model delta MB", lambda e: _figure(e["model_delta_mb"], unproven=not e["baseline_proven"]), "number")
    )
    return found


def step_names(entries: Sequence[Entry]) -> list[str]:
    """Every step of the night, in the order in which its entries have them."""
    return list(dict.fromkeys(step["name"] for entry in entries for step in entry["steps"]))


def _tells_apart(entries: Sequence[Entry], name: str) -> bool:
    """A pack is always of interest, a configuration only where there is more than one."""
    values = {entry[name] for entry in entries}
    return bool(values - {None}) if name == "pack" else len(values) > 1


def _file(name: str) -> Column:
    return Column(name, lambda entry: Cell(one_line(entry[name] or "")), "file")


def _result(entry: Entry) -> Cell:
    failed = entry["answers_failed"] if entry["status"] == "complete" else None  # else the reason says it
    partly = (f"{failed} of {entry['answers']} answers failed",) if failed else ()
    reason = (one_line(entry["reason"] or entry["error"]),) if entry["error"] else ()
    return Cell(word=entry["status"], lines=tuple(dict.fromkeys((*reason, *partly))))


def _step(name: str) -> Column:
    def cell(entry: Entry) -> Cell:
        step = next((step for step in entry["steps"] if step["name"] == name), None)
        if step is None:
            return Cell()
        tried = len(step["attempts"])
        lines = (f"{tried} attempts, {duration(step['all_seconds'])} in all",) if tried > 1 else ()
        text = "" if step["seconds"] is None else duration(step["seconds"])
        return Cell(text, word=step["status"], value=step["seconds"], lines=lines)

    return Column(name, cell, "step")


def _scores(entry: Entry) -> Cell:
    first = first_metrics(entry["metrics"])
    several = len(first) > 1
    lines = [f"{step} {metric_text(metric)}" if several else metric_text(metric) for step, metric in first]
    return Cell(lines[0], lines=tuple(lines[1:])) if lines else Cell()


def _figure(value: float | None, *, unproven: bool = False) -> Cell:
    return Cell() if value is None else Cell(f"{value:,.1f}", value=value, unproven=unproven)


def to_markdown(data: Mapping[str, Any]) -> str:
    """The table in Markdown, below the night's headline.

    Args:
        data: a night's summary or status.
    """
    entries = data["entries"]
    shown = columns(entries)
    lines = [f"# {escaped(headline(data))}", "", f"Night {data['night']} ({data['state']})", ""]
    lines += [f"| {' | '.join(escaped(column.title) for column in shown)} |", f"|{' --- |' * len(shown)}"]
    lines += [f"| {' | '.join(_markdown(column.cell(entry)) for column in shown)} |" for entry in entries]
    if any_unproven(entries):
        lines += ["", f"\\* {NOTE}"]
    return "\n".join(lines) + "\n"


def _markdown(cell: Cell) -> str:
    first = " ".join(word for word in (cell.word, cell.text) if word)
    parts = [escaped(first) + ("\\*" if cell.unproven else ""), *(escaped(line) for line in cell.lines)]
    return "<br>".join(part for part in parts if part)


def any_unproven(entries: Sequence[Entry]) -> bool:
    """Whether any figure of the table stands on a baseline that is not proven."""
    return any(entry["baseline_mb"] is not None and not entry["baseline_proven"] for entry in entries)


_PLAIN = ("entry", "index", "model_id", "config", "pack", "status", "reason")
_MEMORY = ("baseline_mb", "baseline_proven", "peak_mb", "model_delta_mb")
_ANSWERS = ("answers", "answers_failed", "tokens_per_second")


def to_csv(data: Mapping[str, Any]) -> str:
    """The same for programs: a row for each entry, figures as the summary has them, every score a column.

    Memory is in MB (2**20 bytes), ``*_seconds`` is how long a step's last attempt ran. No text begins as a formula
    does in a spreadsheet.

    Args:
        data: a night's summary or status.
    """
    entries = data["entries"]
    steps = step_names(entries)
    scores = list(dict.fromkeys((m["step"], m["name"]) for entry in entries for m in entry["metrics"]))
    told = io.StringIO()
    rows = csv.writer(told, lineterminator="\n")
    rows.writerow(
        [_safe(name) for name in (*_PLAIN, *(f"{step}_{what}" for step in steps for what in ("status", "seconds")))]
        + [*_ANSWERS, *_MEMORY, *(_safe(f"{step}/{name}") for step, name in scores), "bundle_dir"]
    )
    for entry in entries:
        known = {step["name"]: step for step in entry["steps"]}
        figures = {(m["step"], m["name"]): m["value"] for m in entry["metrics"]}
        values = [entry["id"], *(entry[name] for name in _PLAIN[1:])]
        values += [known.get(step, {}).get(what) for step in steps for what in ("status", "seconds")]
        values += [entry[name] for name in (*_ANSWERS, *_MEMORY)]
        values += [*(figures.get(score) for score in scores), entry["bundle_dir"]]
        rows.writerow([_safe(value) for value in values])
    return told.getvalue()


def _safe(value: Any) -> Any:
    """A cell's value. A spreadsheet runs text that begins as a formula: https://owasp.org/www-community/attacks/CSV_Injection."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
