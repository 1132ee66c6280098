"""What the journal tells of a night that runs, read as it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runq.logs import TAIL_LINES, tail
from runq.progress.living import Now, transition
from runq.status import doing_text, status_of
from runq.watching.frame import Level, Log
from runq.watching.typed import typed
from runq_schemas.events import NightResumed, NightStarted

if TYPE_CHECKING:
    from rich.text import Text

    from runq_journal.reader import JournalReader
    from runq_journal.stored import StoredEvent

ENDED = ("finished", "interrupted", "died")
"""States of a night that nobody runs."""

KEPT = 200
"""Transitions kept for the screen: more than a terminal has lines."""

LOOK_EVERY_S = 5.0
"""Without an event the state is still read so often: a runner that was killed writes none."""

LOG_LINES = TAIL_LINES * 10

Usual = Mapping[tuple[str, str, str], float]
"""(step, model id, pack) to the median seconds of earlier nights."""


@attrs.define
class Following:
    """One night, followed.

    Args:
        reader: of its journal; open as long as this is used.
        journal: the file.
        night: its id.
        usual: how long steps take.
        utc: the time in UTC, aware.
        clock: monotonic seconds.
    """

    reader: JournalReader
    journal: Path
    night: str
    usual: Usual
    utc: Callable[[], datetime]
    clock: Callable[[], float]
    data: dict[str, Any] = attrs.field(factory=dict, init=False)
    happened: list[tuple[datetime, Text]] = attrs.field(factory=list, init=False)
    _last: int = attrs.field(default=0, init=False)
    _read_at: float = attrs.field(default=0.0, init=False)
    _plan: dict[int, tuple[str, str]] = attrs.field(factory=dict, init=False)
    _place: dict[int, int] = attrs.field(factory=dict, init=False)
    _started: StoredEvent | None = attrs.field(default=None, init=False)
    _ended_with: str = attrs.field(default="", init=False)
    _attempt: Mapping[str, Any] | None = attrs.field(default=None, init=False)
    _sample: int = attrs.field(default=0, init=False)
    _readings: list[tuple[datetime, float]] = attrs.field(factory=list, init=False)
    _probe: str = attrs.field(default="", init=False)
    _ticks: list[tuple[datetime, float]] = attrs.field(factory=list, init=False)

    def look(self) -> list[StoredEvent]:
        """Read what is new. Returns the new events.

        Raises:
            JournalError: the journal cannot be read.
        """
        with self.reader.snapshot():
            new = list(self.reader.events(self.night, after=self._last))
            for event in new:
                self._take(event)
            if new or not self.data or self.clock() - self._read_at >= LOOK_EVERY_S:
                self.data = status_of(self.reader, self.journal, self.night)
                self._read_at = self.clock()
            self._read_samples()
        return new

    @property
    def over(self) -> bool:
        """Whether nobody runs the night any more."""
        return self.data["state"] in ENDED

    def now(self, tick: Mapping[str, Any] | None) -> Now | None:
        """What goes on, when a step or a settling does.

        Args:
            tick: what the runner says of it; ``None`` when it was not asked.
        """
        doing = self.data["now"]
        if self.over or doing is None or doing["entry"] is None:
            return None
        step = {"settle.started": "settle", "restart.started": "restart"}.get(doing["kind"]) or doing["step"]
        if doing["kind"] not in ("settle.started", "restart.started", "step.started", "step.spawned"):
            return None
        told = tick if tick is not None and (tick["entry"], tick["step"]) == (doing["entry"], step) else None
        if told is not None and told["memory_mb"] is not None:
            self._ticks.append((self.utc(), told["memory_mb"]))
        model, pack = self._plan.get(doing["entry"], ("", ""))
        level = self.level()
        since = (self.utc() - datetime.fromisoformat(self._began(doing))).total_seconds()
        return Now(
            entry=doing["entry"],
            model=model,
            place=self._place.get(doing["entry"], 0),
            of=len(self._place),
            step=step,
            seconds=told["seconds"] if told else max(0.0, since),
            timeout_s=self._started.data["timeout_s"] if self._started and doing["kind"].startswith("step.") else None,
            usual_s=self.usual.get((step, model, pack)) if doing["kind"].startswith("step.") else None,
            memory_mb=told["memory_mb"] if told else level.mb if level else None,
        )

    def doing(self) -> str:
        """What goes on in words, a pause included."""
        return "" if self.over or self.data["now"] is None else doing_text(self.data)

    def level(self) -> Level | None:
        """Memory since the step began: the journal's figures, which come in batches, and the runner's after them."""
        newest = self._readings[-1][0] if self._readings else None
        live = [(at, mb) for at, mb in self._ticks if newest is None or at > newest]
        self._ticks = live
        curve = [mb for _, mb in (*self._readings, *live)]
        if not curve:
            return None
        attempt = self._attempt or {"baseline_mb": None, "baseline_proven": False}
        return Level(
            probe=self._probe,
            mb=curve[-1],
            peak_mb=max(curve),
            curve=curve,
            baseline_mb=attempt["baseline_mb"],
            proven=bool(attempt["baseline_proven"]),
        )

    def log(self) -> Log | None:
        """The end of the log of the step that runs, or ran last."""
        if self._started is None:
            return None
        path = Path(self._started.data["log"])
        ended = f", {self._ended_with}" if self._ended_with else ""
        title = f"log of e{self._started.entry} {self._started.step}, attempt {self._started.attempt}{ended}"
        return Log(title=title, lines=tail(path, LOG_LINES))

    def _began(self, doing: Mapping[str, Any]) -> str:
        """When what goes on began: of a step its start, not the spawn after it."""
        if doing["kind"] == "step.spawned" and self._started is not None:
            return self._started.at
        return str(doing["at"])

    def _take(self, stored: StoredEvent) -> None:
        self._last = stored.id
        event = typed(stored)
        if isinstance(event, NightStarted | NightResumed):
            self._plan = {p.id: (str(p.model["id"]), p.pack or "") for p in event.entries}
            with_work = [p.id for p in event.entries if any(step.run for step in p.steps)]
            self._place = {number: place for place, number in enumerate(with_work, start=1)}
        if stored.kind == "step.started":
            self._started, self._ended_with = stored, ""
            self._forget_level()
            self._attempt = self._attempt_of(stored)
            self._probe = (self._attempt or {}).get("probe") or ""
        if stored.kind == "step.finished":
            self._ended_with = str(stored.data["status"])
        if stored.kind in ("reset.started", "settle.started"):
            self._forget_level()
        names = {number: model for number, (model, _) in self._plan.items()}
        text = transition(event, entry=stored.entry, step=stored.step, names=names)
        if text is not None:
            self.happened = [*self.happened[-KEPT + 1 :], (datetime.fromisoformat(stored.at).astimezone(), text)]

    def _attempt_of(self, started: StoredEvent) -> Mapping[str, Any] | None:
        """The attempt's row of the view `attempt`: its first probe and baseline."""
        if started.entry is None or started.step is None:
            return None
        rows = self.reader.attempts_of(self.night, started.entry, started.step)
        return next((row for row in rows if row["attempt"] == started.attempt), None)

    def _forget_level(self) -> None:
        self._readings, self._ticks, self._attempt, self._probe = [], [], None, ""

    def _read_samples(self) -> None:
        started = self._started
        if self._attempt is None or started is None or started.entry is None or started.step is None:
            return
        self._sample, new = self.reader.newer_samples(self.night, started.entry, started.step, after=self._sample)
        since = datetime.fromisoformat(started.at)
        for sample in new:
            self._probe = self._probe or sample.probe
            if sample.probe == self._probe and sample.at >= since:
                self._readings.append((sample.at, sample.mb))
