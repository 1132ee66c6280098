"""What a terminal shows of a night, for whoever runs it and for whoever watches it: one transition, and what goes on
now in one line of any width. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from rich.cells import cell_len
from rich.text import Text

from runq.logs import one_line
from runq.progress.sparkline import sparkline
from runq.progress.words import words
from runq.text import duration
from runq_schemas.events import Event, StepFinished, Warned

SHORTEST_MODEL = 12
"""Characters of a model id by which one still knows it."""

CURVE_COLUMNS = 12
"""As wide as the living line draws memory: enough for a model's load, and the line stays one for reading."""

FEWEST_READINGS = 3
"""Below that a curve says nothing that the figure does not."""

_WITHOUT_TIMEOUT = ("settle", "restart")
"""Ticks that are no steps of the harness: no step's timeout or usual duration is theirs."""

STYLES = {
    "ok": "green",
    "complete": "green",
    "failed": "red",
    "timeout": "red",
    "stalled": "red",
    "gave_up": "red",
    "interrupted": "yellow",
    "skipped": "yellow",
    "running": "bold",
}
"""The colour of a status."""


@attrs.frozen(kw_only=True)
class Now:
    """What goes on now.

    Args:
        entry: entry id.
        model: its model's id.
        place: which of the entries with work it is, from 1; 0 when that is not known.
        of: how many entries have work.
        step: the step's name; ``settle`` or ``restart`` for those.
        seconds: how long it goes on.
        timeout_s: the step's time limit; ``None`` when it is not known.
        usual_s: its median duration in earlier nights; ``None`` without any.
        memory_mb: the first probe's latest figure in MB; ``None`` without one.
        curve: that probe's figures since the step began, in MB, evenly spaced.
    """

    entry: int
    model: str
    place: int
    of: int
    step: str
    seconds: float
    timeout_s: float | None = None
    usual_s: float | None = None
    memory_mb: float | None = None
    curve: Sequence[float] = ()


def transition(event: Event, *, entry: int | None, step: str | None, names: Mapping[int, str]) -> Text | None:
    """An event as a line with its colour; ``None`` when it is not worth one.

    Args:
        names: the model id of each entry.
    """
    # Without the log's path, which takes a line of its own on a terminal: `runq log` finds it.
    text = words(event, entry=entry, step=step, names=dict(names), with_log=False)
    if text is None:
        return None
    style = ""
    if isinstance(event, StepFinished):
        style = STYLES.get(event.status, "")
    elif isinstance(event, Warned):
        style = "yellow"
    return Text(text, style=style)


def living_line(now: Now, width: int, *, ascii_only: bool = False) -> Text:
    """What goes on now, in one line.

    Args:
        width: columns it may take.
        ascii_only: for a terminal that shows no others.
    """
    parts = [one_line(now.step), duration(now.seconds)]
    if now.step not in _WITHOUT_TIMEOUT:
        if now.timeout_s is not None:
            parts[-1] += f" of {duration(now.timeout_s)}"
        if now.usual_s is not None:
            parts.append(f"usually {duration(now.usual_s)}")
    if now.memory_mb is not None:
        parts.append(f"memory {now.memory_mb:,.0f} MB")
    if len(now.curve) >= FEWEST_READINGS:
        parts.append(sparkline(now.curve, CURVE_COLUMNS, ascii_only=ascii_only))
    head = f"[{now.place}/{now.of}] e{now.entry} "
    line = Text(fitted(head, one_line(now.model), parts, width), style="bold", no_wrap=True)
    line.truncate(width, overflow="ellipsis")
    return line


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
