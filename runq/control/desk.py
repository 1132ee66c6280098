"""Between the thread that hears questions and the night, which answers them when it looks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from runq.control.wire import Ask

ANSWER_S = 5.0
"""How long a question waits for the night to look: it does so within a second, unless it ends a step (12 s at most)."""


class Ticket:
    """A question, and its answer once there is one."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._answer: dict[str, Any] | None = None
        self._answered = threading.Event()

    def answer(self, answer: dict[str, Any]) -> None:
        """Answer it."""
        self._answer = answer
        self._answered.set()

    def wait(self, seconds: float) -> dict[str, Any] | None:
        """The answer; ``None`` when there is none within so many seconds."""
        self._answered.wait(seconds)
        return self._answer


class Desk:
    """Questions that nobody has answered yet.

    Args:
        wake: ends whatever wait the night is in.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._waiting: list[Ticket] = []

    def put(self, ask: Ask, *, wait_s: float = ANSWER_S) -> dict[str, Any]:
        """Hand over a question, from any thread but the night's, and wait for its answer."""
        ticket = Ticket(ask)
        with self._lock:
            self._waiting.append(ticket)
        self._wake()
        answer = ticket.wait(wait_s)
        if answer is None:
            return {"ok": True, "taken": False, "message": "the runner is busy; it will see to it within seconds"}
        return answer

    def take(self) -> list[Ticket]:
        """The questions since the last time. Only the night asks for them."""
        if not self._waiting:
            return []
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken
