"""What a night left and what it tried more than once, as parts of summary.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runq.markdown import escaped
from runq.text import duration, left_text


def left_in_short(summary: Mapping[str, Any]) -> str:
    """How many steps the deadline left, and how long they need; empty when it left none."""
    left = summary["left"]
    seconds, unknown = sum(one["usual_s"] or 0.0 for one in left), sum(one["usual_s"] is None for one in left)
    return left_text(len(left), seconds, unknown) if left else ""


def left_lines(summary: Mapping[str, Any]) -> list[str]:
    """Why the night ended early, and what the deadline left; nothing where neither happened."""
    lines = ["", f"The night ended early: {escaped(summary['stopped'])}."] if summary["stopped"] else []
    left = summary["left"]
    if not left:
        return lines
    lines += [
        "",
        "## Left for another time",
        "",
        f"{left_in_short(summary)}.",
        "",
        "| # | model | pack | step | usually | why |",
        f"|{' --- |' * 6}",
    ]
    for one in left:
        cells = [
            str(one["index"]),
            escaped(one["model_id"]),
            escaped(one["pack"] or ""),
            escaped(one["step"]),
            "" if one["usual_s"] is None else f"{duration(one['usual_s'])} (n={one['usual_n']})",
            escaped(one["reason"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def repeated_lines(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every step that took more than one attempt, with what they took together; nothing where none did."""
    rows = [
        f"- {entry['index']} {escaped(entry['model_id'])}: {escaped(step['name'])} {step['status']} after"
        f" {len(step['attempts'])} attempts, {duration(step['all_seconds'])} in all"
        for entry in entries
        for step in entry["steps"]
        if len(step["attempts"]) > 1
    ]
    return ["", "## Attempts", "", *rows] if rows else []
