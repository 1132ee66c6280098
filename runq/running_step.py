"""The step that runs now, in figures for programs and status bars: everything from the journal's views and samples."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from runq_journal.stored import timestamp

if TYPE_CHECKING:
    from runq_journal.reader import JournalReader

_RUNS = ("step.started", "step.spawned")


def running_step(
    reader: JournalReader, night: str, now: Mapping[str, Any] | None, entries: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """The step that runs; ``None`` while none does.

    ``seconds`` is how long by the wall clock, ``usual_s`` the median of earlier nights (``None`` without any),
    ``memory_mb`` the first probe's latest reading in the journal in MB, ``memory_at`` its time in UTC: readings are
    written in batches, which may lie a minute apart.

    Args:
        reader: of the journal.
        night: its id.
        now: the latest transition, as `runq.status.status_of` has it.
        entries: the summary's.
    """
    if now is None or now["kind"] not in _RUNS:
        return None
    rows = reader.attempts_of(night, now["entry"], now["step"])
    attempt = next((row for row in rows if row["attempt"] == now["attempt"]), None)
    entry = next((entry for entry in entries if entry["id"] == now["entry"]), None)
    if attempt is None or entry is None:  # the newest plan has dropped it
        return None
    last = reader.last_sample(night, now["entry"], now["step"], attempt["probe"])
    began = datetime.fromisoformat(attempt["started_at"])
    return {
        "entry": now["entry"],
        "model_id": entry["model_id"],
        "step": now["step"],
        "attempt": now["attempt"],
        "started_at": attempt["started_at"],
        "seconds": round(max(0.0, (datetime.now(UTC) - began).total_seconds()), 1),
        "timeout_s": attempt["timeout_s"],
        "usual_s": reader.usual_seconds(now["step"], entry["model_id"], entry["pack"]),
        "log": attempt["log"],
        "probe": attempt["probe"],
        "baseline_mb": attempt["baseline_mb"],
        "baseline_proven": bool(attempt["baseline_proven"]),
        "memory_mb": last.mb if last is not None and last.at >= began else None,
        "memory_at": timestamp(last.at) if last is not None and last.at >= began else None,
    }
