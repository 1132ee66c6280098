"""Progress on a terminal: the transitions scroll, one line below them lives."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from rich.console import Console
from rich.live import Live
from rich.text import Text

from runq.progress.living import Now, living_line, transition
from runq.text import duration
from runq_schemas.events import CheckStarted, Event, NightResumed, NightStarted, StepStarted

Usual = Callable[[str, str, str], float | None]
"""(step, model id, pack) -> median seconds of earlier nights, or ``None``."""


@attrs.define
class LiveView:
    """An observer for a terminal. Refreshed by the night's own ticks; no thread of its own."""

    console: Console
    live: Live
    usual: Usual
    plan: dict[int, tuple[str, str]] = attrs.field(factory=dict, init=False)
    position: dict[int, int] = attrs.field(factory=dict, init=False)
    timeout_s: float | None = attrs.field(default=None, init=False)
    curve: list[float] = attrs.field(factory=list, init=False)
    _curve_of: tuple[int, str] | None = attrs.field(default=None, init=False)

    def event(self, event: Event, *, entry: int | None, step: str | None, attempt: int | None) -> None:
        """Print the event's line above the living one."""
        if isinstance(event, NightStarted | NightResumed):
            self.plan = {p.id: (str(p.model["id"]), p.pack or "") for p in event.entries}
            running = [p.id for p in event.entries if any(s.run for s in p.steps)]
            self.position = {number: place for place, number in enumerate(running, start=1)}
        if isinstance(event, CheckStarted):
            self.plan = {number: (model, "") for number, model in enumerate(event.models)}
            self.position = {number: number + 1 for number in self.plan}
        if isinstance(event, StepStarted):
            self.timeout_s, self._curve_of = event.timeout_s, None
        names = {number: model for number, (model, _) in self.plan.items()}
        text = transition(event, entry=entry, step=step, names=names)
        if text is None:
            return
        self.console.print(text, highlight=False)
        self.live.update(Text(""), refresh=True)

    def waiting(self, until: str, seconds: float) -> None:
        """Redraw the living line."""
        self.live.update(Text(f"starts at {until}, in {duration(seconds)}", style="bold"), refresh=True)

    def notice(self, text: str) -> None:
        """Print it above the living line."""
        self.console.print(Text(text, style="yellow"), highlight=False)

    def tick(self, *, entry: int, step: str, seconds: float, memory_mb: float | None) -> None:
        """Redraw the living line."""
        if self._curve_of != (entry, step):
            self.curve, self._curve_of = [], (entry, step)
        if memory_mb is not None:
            self.curve.append(memory_mb)
        model, pack = self.plan.get(entry, ("", ""))
        now = Now(
            entry=entry,
            model=model,
            place=self.position.get(entry, 0),
            of=len(self.position),
            step=step,
            seconds=seconds,
            timeout_s=self.timeout_s,
            usual_s=self.usual(step, model, pack),
            memory_mb=memory_mb,
            curve=self.curve,
        )
        # Two columns stay free for the `^C` that a terminal echoes there: it would make the line wrap and stay.
        width = max(self.console.width - 2, 1)
        self.live.update(living_line(now, width, ascii_only=self.console.options.ascii_only), refresh=True)
