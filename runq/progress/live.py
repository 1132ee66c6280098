"""Progress on a terminal: the transitions scroll, one line below them lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.text import Text

from runq.logs import one_line
from runq.progress.words import words
from runq.text import duration
from runq_schemas.events import CheckStarted, Event, NightResumed, NightStarted, StepFinished, StepStarted, Warned

Usual = Callable[[str, str, str], float | None]
"""(step, model id, pack) -> median seconds of earlier nights, or ``None``."""

SHORTEST_MODEL = 12
"""Characters of a model id by which one still knows it."""

_STYLES = {"ok": "green", "failed": "red", "timeout": "red", "stalled": "red", "interrupted": "yellow"}


@attrs.define
class LiveView:
    """An observer for a terminal. Refreshed by the night's own ticks; no thread of its own."""

    console: Console
    live: Live
    usual: Usual
    plan: dict[int, tuple[str, str]] = attrs.field(factory=dict, init=False)
    position: dict[int, int] = attrs.field(factory=dict, init=False)
    timeout_s: float | None = attrs.field(default=None, init=False)

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
            self.timeout_s = event.timeout_s
        names = {number: model for number, (model, _) in self.plan.items()}
        # Without the log's path, which takes a line of its own on a terminal: `runq log` finds it.
        text = words(event, entry=entry, step=step, names=names, with_log=False)
        if text is None:
            return
        style = ""
        if isinstance(event, StepFinished):
            style = _STYLES.get(event.status, "")
        elif isinstance(event, Warned):
            style = "yellow"
        self.console.print(Text(text, style=style), highlight=False)
        self.live.update(Text(""), refresh=True)

    def waiting(self, until: str, seconds: float) -> None:
        """Redraw the living line."""
        self.live.update(Text(f"starts at {until}, in {duration(seconds)}", style="bold"), refresh=True)

    def notice(self, text: str) -> None:
        """Print it above the living line."""
        self.console.print(Text(text, style="yellow"), highlight=False)

    def tick(self, *, entry: int, step: str, seconds: float, memory_mb: float | None) -> None:
        """Redraw the living line."""
        model, pack = self.plan.get(entry, ("", ""))
        parts = [step, duration(seconds)]
        if step not in ("settle", "restart"):
            if self.timeout_s is not None:
                parts[-1] += f" of {duration(self.timeout_s)}"
            usual = self.usual(step, model, pack)
            if usual is not None:
                parts.append(f"usually {duration(usual)}")
        if memory_mb is not None:
            parts.append(f"memory {memory_mb:,.0f} MB")
        head = f"[{self.position.get(entry, 0)}/{len(self.position)}] e{entry} "
        # Two columns stay free for the `^C` that a terminal echoes there: it would make the line wrap and stay.
        width = max(self.console.width - 2, 1)
        line = Text(fitted(head, one_line(model), parts, width), style="bold", no_wrap=True)
        line.truncate(width, overflow="ellipsis")
        self.live.update(line, refresh=True)


def fitted(head: str, model: str, parts: Sequence[str], width: int) -> str:
    """The living line within a width: a long model id gives way first, then the last parts; step and time stay."""
    kept = list(parts)
    while True:
        tail = "".join(f" · {part}" for part in kept)
        room = width - cell_len(head) - cell_len(tail)
        if room >= min(cell_len(model), SHORTEST_MODEL) or len(kept) <= 2:
            break
        kept.pop()
    shortened = Text(model)
    shortened.truncate(max(room, 1), overflow="ellipsis")
    return f"{head}{shortened.plain}{tail}"
