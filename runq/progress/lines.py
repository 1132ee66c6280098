"""Progress where there is no terminal: one dated line per transition, on standard error."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import attrs

from runq.progress.words import words
from runq_schemas.events import Event, NightResumed, NightStarted


@attrs.define
class Lines:
    """An observer that prints a line per event."""

    write: Callable[[str], None]
    now: Callable[[], datetime] = datetime.now
    names: dict[int, str] = attrs.field(factory=dict, init=False)

    def event(self, event: Event, *, entry: int | None, step: str | None, attempt: int | None) -> None:
        """Print the event's line."""
        if isinstance(event, NightStarted | NightResumed):
            self.names = {planned.id: str(planned.model["id"]) for planned in event.entries}
        text = words(event, entry=entry, step=step, names=self.names)
        if text is not None:
            self.write(f"{self.now():%Y-%m-%d %H:%M:%S} {text}")

    def waiting(self, until: str, seconds: float) -> None:
        """Nothing: the event before it has its line."""

    def notice(self, text: str) -> None:
        """Print it with its time."""
        self.write(f"{self.now():%Y-%m-%d %H:%M:%S} {text}")

    def tick(self, *, entry: int, step: str, seconds: float, memory_mb: float | None) -> None:
        """Nothing: a log is not a progress bar."""
