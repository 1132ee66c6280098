"""Questions to the runner while a screen is drawn: in threads of their own, because a busy runner takes seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runq.control.asking import ask_runner
from runq.control.told import answer_text
from runq.logs import one_line
from runq_schemas.errors import RunqError

if TYPE_CHECKING:
    from runq.control.wire import What

Ask = Callable[[Path, "What"], dict[str, Any]]


class Calls:
    """Asks one runner.

    Args:
        journal: the runner's.
        woken: called when there is an answer.
        ask: how it is asked.
    """

    def __init__(self, journal: Path, woken: Callable[[], None], ask: Ask = ask_runner) -> None:
        self._journal = journal
        self._woken = woken
        self._ask = ask
        self._looking = False
        self._tick: dict[str, Any] | None = None
        self._message = ""

    @property
    def tick(self) -> dict[str, Any] | None:
        """What the runner last said of what it does; ``None`` when it said nothing, or cannot be asked."""
        return self._tick

    @property
    def message(self) -> str:
        """What came of the last thing that was asked for."""
        return self._message

    def look(self) -> None:
        """Ask how far it is, unless that was asked and has no answer yet."""
        if not self._looking:
            self._looking = True
            self._start(self._look)

    def call(self, what: What) -> None:
        """Ask for something."""
        self._message = "asking the runner …"
        self._start(lambda: self._call(what))

    def _start(self, work: Callable[[], None]) -> None:
        # Daemons: whoever leaves need not wait for a runner that does not answer.
        threading.Thread(target=work, daemon=True).start()

    def _look(self) -> None:
        try:
            self._tick = self._ask(self._journal, "status").get("tick")
        except RunqError:  # the journal says as much as there is to say
            self._tick = None
        finally:
            self._looking = False

    def _call(self, what: What) -> None:
        try:
            self._message = one_line(answer_text(self._ask(self._journal, what)))
        except RunqError as error:
            self._message = one_line(f"{error.message}; {error.remedy}" if error.remedy else error.message)
        self._woken()
