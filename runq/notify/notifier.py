"""Sends a night's notifications from a thread of its own; what fails there is told to the night, which records it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import attrs

from runq.notify.messages import KINDS, Message, Watch, night_over
from runq.notify.urls import kind_of

if TYPE_CHECKING:
    from runq_journal.stored import StoredEvent

SEND_S = 30.0
"""Seconds one notification may take; Apprise gives up on a service after a few of its own."""

LAST_S = 20.0
"""Seconds that the night's end waits for what is under way."""

Send = Callable[[Message], Sequence[str]]
"""Sends one message. Returns the kinds of services that did not take it."""


class Notifier:
    """Where the recorder tells events; a night without URLs has this one, which does nothing."""

    def event(self, stored: StoredEvent) -> None:
        """An event is in the journal. What is sent is made of what stands there, where secrets are hidden."""

    def night_over(self, summary: Callable[[], Mapping[str, Any]], stopped: str) -> None:
        """The night ends."""

    def wait(self, seconds: float) -> None:
        """Wait for what is under way, but no longer."""

    def failures(self) -> list[str]:
        """What could not be sent since the last call, in words without a secret."""
        return []


@attrs.define
class AppriseNotifier(Notifier):
    """Sends through Apprise."""

    urls: tuple[str, ...] = attrs.field(repr=False)
    send: Send | None = None
    last_s: float = LAST_S
    clock: Callable[[], float] = time.monotonic
    _watch: Watch = attrs.field(factory=Watch, init=False)
    _waiting: SimpleQueue[Message] = attrs.field(factory=SimpleQueue, init=False)
    _failed: SimpleQueue[str] = attrs.field(factory=SimpleQueue, init=False)
    _under_way: int = attrs.field(default=0, init=False)
    _changed: threading.Condition = attrs.field(factory=threading.Condition, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    def event(self, stored: StoredEvent) -> None:
        """Send what is worth it, later."""
        message = self._watch.event(stored.event, stored.entry) if stored.kind in KINDS else None
        if message is not None:
            self._put(message)

    def night_over(self, summary: Callable[[], Mapping[str, Any]], stopped: str) -> None:
        """Send the night's end, and wait for all that is under way, but not for ever."""
        self._put(night_over(summary(), stopped))
        self.wait(self.last_s)
        if self._under_way:
            self._failed.put(f"{self._under_way} not sent after {self.last_s:g} s")

    def wait(self, seconds: float) -> None:
        """See `Notifier`."""
        end = self.clock() + seconds
        with self._changed:
            while self._under_way and (left := end - self.clock()) > 0:
                self._changed.wait(left)

    def failures(self) -> list[str]:
        """See `Notifier`."""
        found = []
        while not self._failed.empty():
            found.append(self._failed.get())
        return found

    def _put(self, message: Message) -> None:
        with self._changed:
            self._under_way += 1
        self._waiting.put(message)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="runq-notify", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            message = self._waiting.get()
            try:
                failed = self.send(message) if self.send is not None else send_all(self.urls, message)
                if failed:
                    self._failed.put(f"{', '.join(failed)} did not take {message.title!r}")
            except Exception as error:  # whatever goes wrong here must not reach the night
                self._failed.put(f"{type(error).__name__} while sending {message.title!r}")
            finally:
                with self._changed:
                    self._under_way -= 1
                    self._changed.notify_all()


def send_all(urls: Sequence[str], message: Message) -> Sequence[str]:
    """Send to every URL, in a process of its own. Returns the kinds of those that did not take it."""
    given = {"urls": list(urls), **attrs.asdict(message)}
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "runq.notify.send"],
            input=json.dumps(given),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=SEND_S,
            start_new_session=True,  # Ctrl-C in the terminal is for the night; what is under way still arrives
            check=True,
        )
        return [str(kind) for kind in json.loads(ran.stdout)]
    except (OSError, ValueError, subprocess.SubprocessError):
        return [kind_of(url) for url in urls]
