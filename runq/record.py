"""The one way an event goes: into the journal first, then to whoever shows the night."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from runq.notify.notifier import Notifier
from runq_schemas.events import Event, UnknownEvent, Warned, from_data

if TYPE_CHECKING:
    from runq_journal.journal import Journal
    from runq_journal.stored import StoredEvent


class Observer(Protocol):
    """Shows a night. What it raises never disturbs the night: it is switched off."""

    def event(self, event: Event, *, entry: int | None, step: str | None, attempt: int | None) -> None:
        """An event is in the journal."""
        ...

    def tick(self, *, entry: int, step: str, seconds: float, memory_mb: float | None) -> None:
        """A step or a wait goes on: so many seconds so far, the first probe's figure now."""
        ...

    def waiting(self, until: str, seconds: float) -> None:
        """The night waits for a time; so many seconds are left."""
        ...

    def notice(self, text: str) -> None:
        """Something that matters only to whoever is watching now, and so stands in no journal."""
        ...


class Silent:
    """An observer that shows nothing."""

    def event(self, event: Event, *, entry: int | None, step: str | None, attempt: int | None) -> None:
        """Show nothing."""

    def tick(self, *, entry: int, step: str, seconds: float, memory_mb: float | None) -> None:
        """Show nothing."""

    def waiting(self, until: str, seconds: float) -> None:
        """Show nothing."""

    def notice(self, text: str) -> None:
        """Show nothing."""


@attrs.frozen(kw_only=True)
class Tick:
    """How far a step or a wait was when it was last looked at: seconds so far, and the first probe's figure in MB."""

    entry: int
    step: str
    seconds: float
    memory_mb: float | None


@attrs.define
class Recorder:
    """Appends events of one night.

    ``last_tick`` is what was last ticked since the last event; ``None`` after an event.
    """

    journal: Journal
    night: str
    observer: Observer = attrs.field(factory=Silent)
    notifier: Notifier = attrs.field(factory=Notifier)
    last_tick: Tick | None = attrs.field(default=None, init=False)

    def event(
        self, event: Event, *, entry: int | None = None, step: str | None = None, attempt: int | None = None
    ) -> int:
        """Append an event, on disk when this returns. Returns its id.

        Raises:
            JournalError: the journal cannot be written; the night has to end.
        """
        stored = self.journal.append(event, night=self.night, entry=entry, step=step, attempt=attempt)
        self._tell(event, stored)
        return stored.id

    def relayed(
        self, kind: str, data: Mapping[str, Any], *, entry: int | None, step: str | None, attempt: int | None
    ) -> int:
        """Append an event that another machine wrote, word for word. Returns its id.

        Raises:
            JournalError: as in `event`.
        """
        event = UnknownEvent(name=kind, data=data)
        stored = self.journal.append(event, night=self.night, entry=entry, step=step, attempt=attempt)
        self._tell(from_data(kind, stored.data), stored)
        return stored.id

    def _tell(self, event: Event, stored: StoredEvent) -> None:
        entry, step, attempt = stored.entry, stored.step, stored.attempt
        self.last_tick = None
        try:
            self.observer.event(event, entry=entry, step=step, attempt=attempt)
        except Exception as error:  # a closed terminal must not cost the night
            self._switch_off(error)
        try:
            self.notifier.event(stored)
        except Exception as error:  # nor must a notification
            self.notifier = Notifier()
            self.warn(f"notifications failed and are off: {type(error).__name__}: {error}", "try `runq notify --test`")

    def tell_over(self, summary: Callable[[], Mapping[str, Any]], stopped: str) -> None:
        """Notify whoever wants to know that the night ends; what could not be sent is a warning."""
        try:
            self.notifier.night_over(summary, stopped)
        except Exception as error:  # a notification is no reason to lose the night's last words
            self.warn(f"the night's end could not be notified: {type(error).__name__}: {error}")
        self.tell_unsent()

    def tell_unsent(self) -> None:
        """Record what could not be sent so far."""
        for what in self.notifier.failures():
            self.warn(f"a notification failed: {what}", "try `runq notify --test`")

    def warn(self, message: str, remedy: str = "", *, entry: int | None = None, step: str | None = None) -> None:
        """Append a warning."""
        self.event(Warned(message=message, remedy=remedy), entry=entry, step=step)

    def tick(self, *, entry: int, step: str, seconds: float, memory_mb: float | None) -> None:
        """Tell the observer that something goes on."""
        self.last_tick = Tick(entry=entry, step=step, seconds=seconds, memory_mb=memory_mb)
        try:
            self.observer.tick(entry=entry, step=step, seconds=seconds, memory_mb=memory_mb)
        except Exception as error:  # as above
            self._switch_off(error)

    def waiting(self, until: str, seconds: float) -> None:
        """Tell the observer that the night waits."""
        try:
            self.observer.waiting(until, seconds)
        except Exception as error:  # as above
            self._switch_off(error)

    def notice(self, text: str) -> None:
        """Tell the observer something that is not an event."""
        try:
            self.observer.notice(text)
        except Exception as error:  # as above
            self._switch_off(error)

    def _switch_off(self, error: Exception) -> None:
        self.observer = Silent()
        self.warn(f"the display failed and is off: {type(error).__name__}: {error}", "the night goes on without it")
