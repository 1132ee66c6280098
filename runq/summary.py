"""summary.json and summary.md: touchstone's fields and more, every value read from the journal's views."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runq.logs import clean
from runq.markdown import escaped
from runq.paths import private_folder, shown
from runq.scores import score_text
from runq.summary_left import left_lines, repeated_lines
from runq.text import json_text

if TYPE_CHECKING:
    from runq_journal.reader import JournalReader

JSON_NAME = "summary.json"
MARKDOWN_NAME = "summary.md"

TOUCHSTONE_FIELDS = (
    "index",
    "model_id",
    "config",
    "pack",
    "bundle_dir",
    "eval_status",
    "judge_status",
    "eval_seconds",
    "judge_seconds",
    "error",
)
"""What the ancestor's summary has per entry; never renamed, never dropped."""

_ADDED_FIELDS = (
    "status",
    "reason",
    "reset_verdict",
    "settle_status",
    "baseline_mb",
    "baseline_proven",
    "peak_mb",
    "model_delta_mb",
    "answers",
    "answers_failed",
    "eval_step",
    "judge_step",
    "tokens_per_second",
)

METRIC_FIELDS = ("step", "name", "value", "stderr", "n")
"""What an entry's ``metrics`` hold of each score, the one to look at first of its step before the others."""


POWER_FIELDS = ("on_battery", "battery_percent")
"""What an entry has of the machine's power; ``None`` where there is no battery."""

LEFT_FIELDS = ("entry", "index", "model_id", "pack", "step", "reason", "until", "left_s", "usual_s", "usual_n")
"""What ``left`` holds of each step that the deadline left for another time."""


def build(reader: JournalReader, night: str) -> dict[str, Any]:
    """The summary of a night as JSON data, as the journal (or the reader's moment in it) tells it."""
    plan = reader.latest_plan(night)
    row = reader.night_summary(night)
    base = Path(plan["base_dir"])
    attempts: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for attempt in reader.attempts(night):
        attempts.setdefault((attempt["entry"], attempt["step"]), []).append(_attempt(attempt, base))
    states: dict[int, list[dict[str, Any]]] = {}
    for state in reader.step_states(night):
        states.setdefault(state["entry"], []).append(
            {
                "name": state["step"],
                "status": state["status"],
                "seconds": state["seconds"],
                "all_seconds": _all_seconds(attempts.get((state["entry"], state["step"]), [])),
                "attempts": attempts.get((state["entry"], state["step"]), []),
            }
        )
    metrics: dict[int, list[dict[str, Any]]] = {}
    for metric in reader.step_metrics(night):
        metrics.setdefault(metric["entry"], []).append({name: metric[name] for name in METRIC_FIELDS})
    power = {row["entry"]: row for row in reader.view("entry_power", night)}
    entries = [
        {**_entry(result, states.get(result["entry"], []), base), "metrics": metrics.get(result["entry"], [])}
        | {name: power.get(result["entry"], {}).get(name) for name in POWER_FIELDS}
        for result in reader.entry_results(night)
    ]
    return {
        "started": row["started"],
        "total": row["total"],
        "done": row["done"],
        "entries": entries,
        "night": night,
        "state": row["state"],
        "complete": row["complete"],
        "failed": row["failed"],
        "pending": row["pending"],
        "resumes": row["resumes"],
        "stopped": row["stopped"],
        "window": plan.get("window"),
        "left": [{name: one[name] for name in LEFT_FIELDS} for one in reader.deferred(night)],
        "queue": plan["queue_path"],
        "queue_sha256": plan["queue_sha256"],
        "host": plan["host"],
        "versions": plan["versions"],
        "plugins": plan["plugins"],
        "warnings": [
            {"at": w["at"], "entry": w["entry"], "message": w["message"], "remedy": w["remedy"]}
            for w in reader.warnings(night)
        ],
    }


def _entry(result: Mapping[str, Any], steps: list[dict[str, Any]], base: Path) -> dict[str, Any]:
    entry = {name: result[name] for name in TOUCHSTONE_FIELDS}
    if entry["bundle_dir"]:
        entry["bundle_dir"] = shown(entry["bundle_dir"], base)
    entry["id"] = result["entry"]
    entry |= {name: result[name] for name in _ADDED_FIELDS}
    entry["baseline_proven"] = bool(result["baseline_proven"])
    entry["steps"] = steps
    return entry


def _attempt(attempt: Mapping[str, Any], base: Path) -> dict[str, Any]:
    return {
        "attempt": attempt["attempt"],
        "status": attempt["status"],
        "seconds": attempt["seconds"],
        "exit_code": attempt["exit_code"],
        "signal": attempt["signal"],
        "reason": attempt["reason"],
        "started_at": attempt["started_at"],
        "log": shown(attempt["log"], base) if attempt["log"] else None,
        "bundle_dir": shown(attempt["bundle"], base) if attempt["bundle"] else None,
    }


def _all_seconds(attempts: Sequence[Mapping[str, Any]]) -> float | None:
    """How long all attempts of a step ran together; ``None`` when no end of one is known."""
    known = [attempt["seconds"] for attempt in attempts if attempt["seconds"] is not None]
    return round(sum(known), 3) if known else None


def to_json(summary: Mapping[str, Any]) -> str:
    """The text of summary.json."""
    return json_text(summary) + "\n"


def to_markdown(summary: Mapping[str, Any]) -> str:
    """The text of summary.md."""
    entries = summary["entries"]
    lines = [
        "# Night queue summary",
        "",
        f"- Started: {summary['started']}",
        f"- Night: {summary['night']} ({summary['state']})",
        f"- Entries: {summary['total']}",
        f"- Done: {summary['done']} ({summary['complete']} complete, {summary['failed']} failed,"
        f" {summary['pending']} pending)",
        "",
        "| # | model | eval | judge | eval s | judge s | baseline MB | model delta MB | bundle |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for entry in entries:
        cells = [
            str(entry["index"]),
            escaped(entry["model_id"]),
            entry["eval_status"] + _failed_answers(entry),
            entry["judge_status"],
            _number(entry["eval_seconds"]),
            _number(entry["judge_seconds"]),
            _number(entry["baseline_mb"]) + _unproven(entry, "baseline_mb"),
            _number(entry["model_delta_mb"]) + _unproven(entry, "model_delta_mb"),
            _path(entry["bundle_dir"] or ""),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if any(not entry["baseline_proven"] and entry["baseline_mb"] is not None for entry in entries):
        lines += [
            "",
            "\\* The baseline is not proven: the model delta may hold what an earlier model left behind.",
        ]
    lines += _scores(entries)
    lines += left_lines(summary) + repeated_lines(entries)
    errors = [entry for entry in entries if entry["error"]]
    if errors:
        lines += ["", "## Errors", ""]
        for entry in errors:
            more = entry["reason"] and entry["reason"] not in entry["error"]
            detail = f" — {escaped(entry['reason'])}" if more else ""
            lines.append(f"- {entry['index']} {escaped(entry['model_id'])}: {escaped(entry['error'])}{detail}")
    if summary["warnings"]:
        lines += ["", "## Warnings", ""]
        for warning in summary["warnings"]:
            at = "" if warning["entry"] is None else f"e{warning['entry']}: "
            remedy = f" — {escaped(warning['remedy'])}" if warning["remedy"] else ""
            lines.append(f"- {at}{escaped(warning['message'])}{remedy}")
    return "\n".join(lines) + "\n"


def _scores(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The table of all scores; nothing where no step has any."""
    rows = [
        [
            str(entry["index"]),
            escaped(entry["model_id"]),
            escaped(entry["pack"] or ""),
            escaped(metric["step"]),
            escaped(metric["name"]),
            score_text(metric["value"]),
            "" if metric["stderr"] is None else score_text(metric["stderr"]),
            "" if metric["n"] is None else str(metric["n"]),
        ]
        for entry in entries
        for metric in entry["metrics"]
    ]
    if not rows:
        return []
    head = ["", "## Scores", "", "| # | model | pack | step | score | value | stderr | n |", f"|{' --- |' * 8}"]
    return [*head, *(f"| {' | '.join(cells)} |" for cells in rows)]


def _path(text: str) -> str:
    """A path that can be copied as it stands, where it holds nothing that could leave a code span or the cell."""
    harmless = text and text == clean(text) and not set(text) & set("`|\\\n\t")
    return f"`{text}`" if harmless else escaped(text)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _unproven(entry: Mapping[str, Any], field: str) -> str:
    return "\\*" if entry[field] is not None and not entry["baseline_proven"] else ""


def _failed_answers(entry: Mapping[str, Any]) -> str:
    return f" ({entry['answers_failed']} of {entry['answers']} answers failed)" if entry["answers_failed"] else ""


LANGUAGES = ("en", "de")
"""What summary.md is written in: English with all that runq knows, or German as touchstone writes it."""


def write(reader: JournalReader, night: str, folder: Path, *, lang: str | None = None) -> tuple[Path, Path]:
    """Write both files, each replaced atomically. Returns their paths.

    Args:
        lang: what summary.md is written in; by default what the night was told.

    Raises:
        OSError: a file could not be written; the old one stands.
    """
    summary = build(reader, night)
    private_folder(folder)
    targets = (folder / JSON_NAME, folder / MARKDOWN_NAME)
    lang = lang or reader.latest_plan(night).get("lang") or LANGUAGES[0]
    for target, text in zip(targets, (to_json(summary), _markdown(summary, lang)), strict=True):
        replace_file(target, text)
    return targets


def _markdown(summary: Mapping[str, Any], lang: str) -> str:
    if lang == "de":
        from runq.summary_german import to_german

        return to_german(summary)
    return to_markdown(summary)


def replace_file(target: Path, text: str) -> None:
    """Write a file whole or not at all: a reader sees the old text or the new one.

    Raises:
        OSError: it could not be written; the old one stands.
    """
    _remove_leftovers(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    temporary.unlink(missing_ok=True)  # of a process that had our pid
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # never through a link of somebody else
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_leftovers(target: Path) -> None:
    """Remove what a process left that died while it wrote this file; others may be writing it now, as a replay does."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        import psutil

        pid = part.name.removesuffix(".part").rpartition(".")[2]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            part.unlink(missing_ok=True)
