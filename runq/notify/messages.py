"""What is worth a notification, and its words. Pure: events in, messages out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import attrs

from runq.logs import one_line
from runq_schemas.events import (
    EntryFinished,
    Event,
    NightInterrupted,
    NightResumed,
    NightStarted,
)

Urgency = Literal["info", "success", "warning", "failure"]

KINDS = frozenset(cls.kind for cls in (NightStarted, NightResumed, NightInterrupted, EntryFinished))
"""The events that `Watch` looks at."""

TITLE_LENGTH = 110
"""Characters: what a phone's lock screen shows of a notification's first line, more or less."""

TROUBLE = 2
"""Entries in a row that fail before the night itself is in trouble: one may be the model's fault."""


@attrs.frozen(kw_only=True)
class Message:
    """A notification: a first line that says it all, the rest, and how urgent it is."""

    title: str
    body: str
    urgency: Urgency


@attrs.define
class Watch:
    """Looks at a night's events, as the journal gives them back, and says what is worth a message."""

    models: dict[int, str] = attrs.field(factory=dict, init=False)
    failed_in_a_row: int = attrs.field(default=0, init=False)

    def event(self, event: Event, entry: int | None) -> Message | None:
        """The message for an event, if it is worth one."""
        if isinstance(event, NightStarted | NightResumed):
            planned = cast(tuple[Mapping[str, Any], ...], event.entries)  # plain data inside (`from_data`)
            self.models = {one["id"]: str(one["model"]["id"]) for one in planned}
        elif isinstance(event, NightInterrupted):
            return message(
                f"runq: night interrupted - {event.reason}", "`runq night QUEUE --resume` goes on.", "warning"
            )
        elif isinstance(event, EntryFinished) and entry is not None:
            return self._entry(event, entry)
        return None

    def _entry(self, event: EntryFinished, entry: int) -> Message | None:
        if event.status not in ("failed", "incomplete", "skipped"):
            self.failed_in_a_row = 0
            return None
        self.failed_in_a_row += 1
        name = self.models.get(entry, f"entry {entry}")
        what = "skipped" if event.status == "skipped" else "failed"
        body = f"e{entry} {name}: {what} - {event.reason}"
        if self.failed_in_a_row == TROUBLE:
            return message(f"runq: night in trouble - {TROUBLE} entries in a row failed", body, "failure")
        return message(f"runq: {name} {what} - {event.reason}", body, "warning")


def message(title: str, body: str, urgency: Urgency) -> Message:
    """A message with a first line fit for a lock screen."""
    line = one_line(title)
    short = line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
    return Message(title=short, body=body, urgency=urgency)


def night_over(summary: Mapping[str, Any], stopped: str = "") -> Message:
    """The message at a night's end, from its summary."""
    total, complete, failed = summary["total"], summary["complete"], summary["failed"]
    left = total - complete - failed
    words = [f"{complete} of {total} complete"]
    words += [f"{failed} failed"] if failed else []
    words += [f"{left} left"] if left else []
    lines = [f"stopped early: {stopped}"] if stopped else []
    for entry in summary["entries"]:
        why = f" - {one_line(entry['reason'])}" if entry["reason"] else ""
        lines.append(f"e{entry['id']} {one_line(entry['model_id'])}: {entry['status']}{why}")
    urgency: Urgency = "success" if complete == total else "warning"
    return message(f"runq: night finished - {', '.join(words)}", "\n".join(lines), urgency)
