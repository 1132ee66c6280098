"""What a night came to, in the words one reads first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TIMED_OUT = ("timeout", "stalled")


def headline(data: Mapping[str, Any]) -> str:
    """The night in one line: ``2 of 4 entries complete, 2 failed (1 of them timed out)``.

    Args:
        data: a night's summary or status.
    """
    total, complete, failed, pending = (data[name] for name in ("total", "complete", "failed", "pending"))
    if complete == total:
        return "The entry is complete" if total == 1 else f"All {total} entries complete"
    parts = [f"{complete} of {_entries(total)} complete"]
    if failed:
        parts.append(f"{failed} failed{_timed_out(data, failed)}")
    if pending:
        parts.append(f"{pending} {'still to run' if data['state'] in ('running', 'paused') else 'not run'}")
    return ", ".join(parts)


def tone(data: Mapping[str, Any]) -> str:
    """The colour of the headline: good, bad, odd or busy."""
    if data["complete"] == data["total"]:
        return "good"
    if data["state"] in ("running", "paused", "frozen"):
        return "busy"
    return "bad" if data["failed"] else "odd"


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _timed_out(data: Mapping[str, Any], failed: int) -> str:
    count = sum(
        entry["status"] == "failed" and any(step["status"] in _TIMED_OUT for step in entry["steps"])
        for entry in data["entries"]
    )
    if count == 0:
        return ""
    return " by timeout" if count == failed else f" ({count} of them by timeout)"
