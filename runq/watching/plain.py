"""A night watched where no screen can be drawn: its status, then a line for each transition; or JSON for programs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import attrs

from runq.progress.lines import Lines
from runq.status import status_text
from runq.text import json_text
from runq.watching.typed import typed

if TYPE_CHECKING:
    from runq.watching.following import Following

EVERY_S = 1.0

Write = Callable[[str], None]
Sleep = Callable[[float], None]


@attrs.define
class _Told:
    """Lines of events with the time of the event, not of its reading."""

    write: Write
    silent: bool = True
    at: datetime = attrs.field(factory=lambda: datetime.now().astimezone())
    lines: Lines = attrs.field(init=False)

    @lines.default
    def _lines(self) -> Lines:
        return Lines(lambda line: None if self.silent else self.write(line), now=lambda: self.at)

    def look(self, following: Following) -> None:
        for stored in following.look():
            self.at = datetime.fromisoformat(stored.at).astimezone()
            self.lines.event(typed(stored), entry=stored.entry, step=stored.step, attempt=stored.attempt)


def print_lines(following: Following, write: Write, sleep: Sleep = time.sleep) -> None:
    """Write the status, and then a dated line per transition until the night ends.

    Raises:
        JournalError: the journal cannot be read.
    """
    told = _Told(write)
    told.look(following)  # the status says all that was
    write(status_text(following.data))
    told.silent = False
    while not following.over:
        sleep(EVERY_S)
        told.look(following)


def print_json(following: Following, write: Write, sleep: Sleep = time.sleep) -> None:
    """Write the status as one line of JSON, and again after each change, until the night ends.

    Raises:
        JournalError: the journal cannot be read.
    """
    shown = ""
    while True:
        if following.look() or shown != following.data["state"]:
            shown = following.data["state"]
            write(json_text(following.data, indent=None))
        if following.over:
            return
        sleep(EVERY_S)
