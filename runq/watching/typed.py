"""Stored events with their nested values typed too, as the words for people need them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from runq_schemas.events import EVENT_CLASSES, Event, UnknownEvent

if TYPE_CHECKING:
    from cattrs import Converter

    from runq_journal.stored import StoredEvent


def typed(stored: StoredEvent) -> Event:
    """The event, nested values included; an `UnknownEvent` for what another version wrote in a form of its own."""
    from cattrs import BaseValidationError

    cls = EVENT_CLASSES.get(stored.kind)
    if cls is not None:
        try:
            event: Event = _converter().structure(stored.data, cls)
            return event
        except BaseValidationError:
            pass
    return UnknownEvent(name=stored.kind, data=stored.data)


@cache
def _converter() -> Converter:
    from cattrs import Converter

    return Converter()
