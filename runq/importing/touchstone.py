"""touchstone's `summary.json`: model, pack, what came of eval and judge, and how long they took."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from runq_schemas.event_parts import ImportedEntry, ImportedStep

STATUSES = ("ok", "failed", "timeout")
"""What a step that ran is called there; `pending` and `skipped` are of those that did not."""


def is_summary(data: Any) -> bool:
    """Whether JSON data is a queue's summary."""
    entries = data.get("entries") if isinstance(data, Mapping) else None
    return (
        isinstance(entries, list)
        and "started" in data
        and all(isinstance(entry, Mapping) and "eval_status" in entry and "model_id" in entry for entry in entries)
    )


def is_ours(data: Mapping[str, Any]) -> bool:
    """Whether runq itself wrote the summary: it adds every step."""
    return any("steps" in entry for entry in data["entries"])


def entries_of(data: Mapping[str, Any]) -> tuple[ImportedEntry, ...]:
    """The entries with a step that ran."""
    entries = []
    for entry in data["entries"]:
        steps = tuple(
            ImportedStep(
                name=step,
                status=entry[f"{step}_status"],
                seconds=_seconds(entry.get(f"{step}_seconds")),
                reason="" if entry[f"{step}_status"] == "ok" else str(entry.get("error") or ""),
            )
            for step in ("eval", "judge")
            if entry.get(f"{step}_status") in STATUSES
        )
        if steps:
            entries.append(
                ImportedEntry(
                    model_id=str(entry["model_id"]),
                    config=_text(entry.get("config")),
                    pack=_text(entry.get("pack")),
                    steps=steps,
                )
            )
    return tuple(entries)


def measured_at(data: Mapping[str, Any]) -> str | None:
    """When the night began, in UTC; ``None`` when it cannot be read."""
    text = str(data.get("started"))
    for read in (datetime.fromisoformat, lambda written: datetime.strptime(written, "%Y-%m-%d_%H%M%S")):
        try:
            return read(text).astimezone(UTC).isoformat(timespec="seconds")  # local time where no zone is written
        except ValueError:
            continue
    return None


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
