"""A night held to its deadline: asked before each step, and what is left is written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import attrs

from runq.deadline import BEHIND, History, Ruling, TimeWindow, Usual, in_words, ruling

if TYPE_CHECKING:
    from runq.night_context import NightContext
    from runq.prepared import PreparedEntry
    from runq_journal.reader import JournalReader


class Deferred(Exception):
    """A step is left for another time, because of the deadline."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def history_of(reader: JournalReader) -> dict[tuple[str, str, str], Usual]:
    """How long every step usually takes, by all nights of the journal."""
    return {
        (row["step"], row["model_id"], row["pack"] or ""): Usual(seconds=row["seconds"], n=row["n"])
        for row in reader.durations()
    }


@attrs.frozen(kw_only=True)
class Pace:
    """The window of a night, the history that its steps are judged by, and the wall clock."""

    window: TimeWindow = attrs.field(factory=TimeWindow)
    history: History = attrs.field(factory=dict)
    now: Callable[[], datetime] = lambda: datetime.now().astimezone()

    def left_s(self) -> float | None:
        """Seconds until the deadline, negative behind it; ``None`` without one."""
        until = self.window.until
        return None if until is None else (until - self.now()).total_seconds()

    def usual(self, prepared: PreparedEntry, step: str) -> Usual | None:
        """How long a step of an entry usually takes."""
        return self.history.get((step, prepared.spec.model.id, prepared.spec.pack or ""))

    def ruling(self, prepared: PreparedEntry, step: str, *, after_s: float = 0.0) -> Ruling:
        """Whether a step may start now, or when so many seconds have been waited."""
        left_s = self.left_s()
        if left_s is None or self.window.until is None:
            return Ruling(starts=True)
        usual, until = self.usual(prepared, step), in_words(self.window.until)
        if 0 < left_s <= after_s:
            return Ruling(starts=False, reason=f"its retry would come after the deadline {until}", usual=usual)
        return ruling(left_s - max(0.0, after_s), usual, until)

    def over(self) -> bool:
        """Whether a step that runs has to end now."""
        left_s = self.left_s()
        return self.window.hard and left_s is not None and left_s <= 0


def hold_to(context: NightContext, prepared: PreparedEntry, step: str, *, after_s: float = 0.0) -> None:
    """Let a step start, or not; ``after_s`` seconds are still to be waited.

    Raises:
        Deferred: by its history it would not end before the deadline, or that has passed.
    """
    found = context.pace.ruling(prepared, step, after_s=after_s)
    if not found.starts:
        raise Deferred(found.reason)
    where = (prepared.entry.id, step)
    if found.blind and where not in context.warned_blind:
        context.warned_blind.add(where)
        hard = context.pace.window.hard
        context.recorder.warn(
            f"{step} has no history with this model and pack: it starts, and "
            + ("is ended at the deadline" if hard else "may run past the deadline"),
            "" if hard else "--hard ends it at the deadline",
            entry=prepared.entry.id,
            step=step,
        )


def defer(context: NightContext, prepared: PreparedEntry, steps: Sequence[str], reason: str) -> None:
    """Record that the deadline leaves these steps of an entry for another time, the first one for this reason."""
    from runq_schemas.events import StepDeferred

    until, left_s = context.pace.window.until, context.pace.left_s()
    if until is None or left_s is None:
        return
    for number, step in enumerate(steps):
        usual = context.pace.usual(prepared, step)
        if number:  # behind a step that does not start, no other of its entry does
            reason = ruling(left_s, None, in_words(until)).reason or BEHIND
        event = StepDeferred(
            reason=reason,
            until=until.isoformat(timespec="seconds"),
            left_s=round(left_s, 3),
            usual_s=usual.seconds if usual else None,
            usual_n=usual.n if usual else 0,
        )
        context.recorder.event(event, entry=prepared.entry.id, step=step)
