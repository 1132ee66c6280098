"""summary.md in German, as touchstone's queue writes it: the same lines, columns and rounding, and nothing else.

Read off touchstone's newest public state, September 2026. What runq knows beyond it stands in the English summary and
in summary.json.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runq.logs import one_line
from runq.markdown import escaped

UNDECIDED = ("pending", "running", "interrupted")
"""touchstone writes a row only for an entry that has a result, as `done` counts them."""

_MARKUP = re.compile(r"[\\`*\[\]|~$&<]|(?<!\w)_|_(?!\w)|:(?=//)|www(?=\.)", re.IGNORECASE)


def to_german(summary: Mapping[str, Any]) -> str:
    """The text of summary.md, line for line as touchstone has it.

    The one addition is a line below `Fehler` for an entry some of whose answers failed: touchstone counts those as ok.
    """
    lines = [
        "# Nacht-Queue Summary",
        "",
        f"**Start:** {summary['started']} · **Einträge:** {summary['total']} · **Fertig:** {summary['done']}",
        "",
        "| # | Modell | eval | judge | eval s | judge s | Bundle |",
        "|---|--------|------|-------|--------|---------|--------|",
    ]
    decided = [entry for entry in summary["entries"] if entry["status"] not in UNDECIDED]
    for entry in decided:
        cells = [
            str(entry["index"]),
            _text(entry["model_id"]),
            entry["eval_status"],
            entry["judge_status"],
            _seconds(entry, "eval"),
            _seconds(entry, "judge"),
            _code(entry["bundle_dir"] or ""),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    faults = [
        f"- **{_text(entry['model_id'])}** (#{entry['index']}): {text}" for entry in decided for text in _faults(entry)
    ]
    return "\n".join([*lines, *(["", "## Fehler", "", *faults] if faults else [])]) + "\n"


def _faults(entry: Mapping[str, Any]) -> list[str]:
    found = [_text(entry["error"])] if entry["error"] else []
    if entry["answers_failed"]:
        found.append(f"{entry['answers_failed']} von {entry['answers']} Antworten fehlgeschlagen")
    return found


def _seconds(entry: Mapping[str, Any], which: str) -> str:
    """Whole seconds; 0 for a step without any, as touchstone has it.

    From the step's own figure: `eval_seconds` is rounded to a tenth already, and rounding twice makes 60 of 59.46.
    """
    if entry[f"{which}_seconds"] is None:
        return "0"
    (seconds,) = (step["seconds"] for step in entry["steps"] if step["name"] == entry[f"{which}_step"])
    return f"{seconds:.0f}"


def _text(text: str) -> str:
    """Text from outside as touchstone has it, which escapes nothing; as harmless Markdown where it is not."""
    flat = one_line(text)
    return escaped(flat) if _MARKUP.search(flat) else flat


def _code(path: str) -> str:
    return escaped(path) if not path or set(path) & set("`|\\") or one_line(path) != path else f"`{path}`"
