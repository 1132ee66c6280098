"""check.json and check.md: touchstone's fields and more, as the journal's view tells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runq.markdown import escaped
from runq.paths import private_folder
from runq.summary import replace_file
from runq.text import json_text

JSON_NAME = "check.json"
MARKDOWN_NAME = "check.md"


TOUCHSTONE_FIELDS = (
    "model",
    "loaded",
    "status",
    "content_chars",
    "ram_before_mb",
    "ram_after_mb",
    "ram_delta_mb",
)
"""What the ancestor's check.json has per model; never renamed, never dropped."""

_ADDED_FIELDS = (
    "verdict",
    "problem",
    "remedy",
    "role",
    "endpoint",
    "answered_by",
    "loaded_models",
    "context_length",
    "seconds",
    "ram_back_mb",
    "baseline_proven",
    "reset_verdict",
    "evict_verdict",
    "memory_back",
)


def checked(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of the `check_result` view as check.json has them."""
    return [
        {name: row["model_id" if name == "model" else name] for name in (*TOUCHSTONE_FIELDS, *_ADDED_FIELDS)}
        for row in rows
    ]


def to_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """The text of check.json: an array, one object per model."""
    return json_text(checked(rows)) + "\n"


def to_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The text of check.md: the same as a table, then what is wrong and what to do."""
    lines = [
        "# Check",
        "",
        "| model | role | loaded | status | content chars | RAM before MB | RAM after MB | RAM delta MB | context"
        " | evicted | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        unproven = "" if row["baseline_proven"] or row["ram_delta_mb"] is None else "\\*"
        cells = [
            escaped(row["model_id"]),
            row["role"],
            "yes" if row["loaded"] else "no",
            row["status"],
            str(row["content_chars"]),
            _mb(row["ram_before_mb"]),
            _mb(row["ram_after_mb"]),
            _mb(row["ram_delta_mb"]) + unproven,
            str(row["context_length"] or ""),
            row["evict_verdict"],
            row["verdict"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if any(not row["baseline_proven"] and row["ram_delta_mb"] is not None for row in rows):
        lines += ["", "\\* The baseline is not proven."]
    wrong = [row for row in rows if row["problem"]]
    if wrong:
        lines += ["", "## What to do", ""]
        for row in wrong:
            lines.append(f"- {escaped(row['model_id'])}: {escaped(row['problem'])} — {escaped(row['remedy'])}")
    return "\n".join(lines) + "\n"


def write(rows: Sequence[Mapping[str, Any]], folder: Path) -> tuple[Path, Path]:
    """Write both files, each replaced atomically. Returns their paths.

    Raises:
        OSError: a file could not be written.
    """
    private_folder(folder)
    targets = (folder / JSON_NAME, folder / MARKDOWN_NAME)
    for target, text in zip(targets, (to_json(rows), to_markdown(rows)), strict=True):
        replace_file(target, text)
    return targets


def _mb(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
