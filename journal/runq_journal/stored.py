"""Rows of the journal as values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runq_schemas.errors import JournalError

if TYPE_CHECKING:
    from runq_schemas.events import Event


@attrs.frozen(kw_only=True)
class StoredEvent:
    """One event as the journal holds it.

    Args:
        id: its number, from 1, without gaps.
        night: the night it belongs to.
        at: UTC, ISO 8601 with microseconds, ending in ``Z``.
        elapsed_s: seconds on the monotonic clock since the writing process opened the journal.
        kind: the event's kind; may be one that this version does not know.
        entry: entry id; ``None`` for an event of the whole night.
        step: step name; ``None`` for an event of no step.
        attempt: from 1; ``None`` for an event of no attempt.
        data: what the kind says, JSON data.
        prev_hash: hash of the event before it; `runq_journal.GENESIS` for the first.
        hash: ``sha256:`` and 64 hexadecimal digits.
    """

    id: int
    night: str
    at: str
    elapsed_s: float
    kind: str
    entry: int | None
    step: str | None
    attempt: int | None
    data: dict[str, Any]
    prev_hash: str
    hash: str

    @property
    def event(self) -> Event:
        """The typed event; an `UnknownEvent` when this version does not know the kind."""
        from runq_schemas.events import from_data

        return from_data(self.kind, self.data)


@attrs.frozen(kw_only=True)
class Sample:
    """One reading of a probe while a step runs: ``mb`` in MB (2**20 bytes) at the aware time ``at``."""

    night: str
    at: datetime
    entry: int
    step: str
    probe: str
    mb: float


def timestamp(moment: datetime) -> str:
    """UTC as the journal writes it: ISO 8601 with microseconds, always 27 characters, so that text order is time order.

    Raises:
        ValueError: ``moment`` has no time zone.
    """
    if moment.tzinfo is None:
        raise ValueError("a time in the journal needs its time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def stored_event(path: Path, row: tuple[Any, ...]) -> StoredEvent:
    """The event of a row with every column, in the table's order.

    Raises:
        JournalError: its data is not JSON; ``path`` is named as the place.
    """
    return StoredEvent(
        id=row[0],
        night=row[1],
        at=row[2],
        elapsed_s=row[3],
        kind=row[4],
        entry=row[5],
        step=row[6],
        attempt=row[7],
        data=parsed_data(path, row[0], row[8]),
        prev_hash=row[9],
        hash=row[10],
    )


def parsed_data(path: Path, event_id: int, text: str) -> dict[str, Any]:
    """What the ``data`` column of an event says.

    Raises:
        JournalError: it is no JSON object; ``path`` is named as the place.
    """
    try:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise TypeError(f"{type(data).__name__} is no object")
    except (ValueError, TypeError, RecursionError) as exc:  # a torn page may even hold no text there
        raise JournalError(
            f"The data of event {event_id} is not JSON",
            where=str(path),
            remedy="The journal is damaged: see what is wrong with `runq replay --verify`.",
        ) from exc
    return data
