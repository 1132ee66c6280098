"""A night at one glance, live or past: the summary, whether its runner is alive, and what runs now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runq_journal.reader import JournalReader

from runq import summary
from runq.locks import holder_of, journal_lock_path
from runq.planned import clean_lines, duration
from runq.replay import chosen


def status_data(journal: Path, night: str | None) -> dict[str, Any]:
    """The summary of a night with three fields more.

    ``runner`` is the runner's process when it is alive (else ``None``), ``now`` the latest transition, and
    ``state`` is ``running``, ``finished``, ``interrupted`` or ``died``.

    Raises:
        UsageError: there is no such night.
    """
    with JournalReader.open(journal) as reader:
        wanted = chosen([row["night"] for row in reader.nights()], night)
        data = summary.build(reader, wanted)
        last = reader.last_event(wanted)
        latest = reader.last_event(None)
    holder = holder_of(journal_lock_path(journal))
    # The lock is the journal's; it is this night's runner that holds it when the night wrote last.
    alive = holder is not None and latest is not None and latest.night == wanted
    if data["state"] == "running":
        data["state"] = "running" if alive else "died"
    data["runner"] = {"pid": holder.pid, "since": holder.since} if alive and holder else None
    data["now"] = (
        None
        if last is None
        else {
            "at": last.at,
            "kind": last.kind,
            "entry": last.entry,
            "step": last.step,
            "attempt": last.attempt,
        }
    )
    data["journal"] = str(journal)
    return data


_SIGNS = {"ok": "ok", "running": "running", "skipped": "skipped", "pending": "·", "timeout": "timeout"}


def status_text(data: Mapping[str, Any]) -> str:
    """The status for people."""
    lines = [
        f"night {data['night']}  {data['state']}" + (f" (pid {data['runner']['pid']})" if data["runner"] else ""),
        f"{data['complete']} of {data['total']} entries complete, {data['failed']} failed, {data['pending']} pending",
        "",
    ]
    for entry in data["entries"]:
        steps = "  ".join(_step_text(step) for step in entry["steps"])
        lines.append(f"e{entry['id']}  {entry['model_id']}  {steps}")
        if entry["reason"]:
            lines.append(f"      {entry['reason']}")
    if data["state"] == "running" and data["now"]:
        lines += ["", f"now: {_now_text(data['now'])}"]
    if data["state"] == "died":
        lines += [
            "",
            f"its runner died; go on with: runq night {data['queue']} --resume --night {data['night']}",
        ]
    if data["warnings"]:
        lines += ["", f"{len(data['warnings'])} warnings, the last: {data['warnings'][-1]['message']}"]
    return clean_lines("\n".join(lines))


def _step_text(step: Mapping[str, Any]) -> str:
    seconds = f" {duration(step['seconds'])}" if step["seconds"] else ""
    return f"{step['name']} {_SIGNS.get(step['status'], step['status'])}{seconds}"


def _now_text(now: Mapping[str, Any]) -> str:
    since = (datetime.now(UTC) - datetime.fromisoformat(now["at"])).total_seconds()
    where = "" if now["entry"] is None else f"e{now['entry']} "
    step = "" if now["step"] is None else f"{now['step']} "
    return f"{where}{step}{now['kind']}, {duration(max(0.0, since))} ago"
