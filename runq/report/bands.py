"""What a night did when: its events as spans of time. Pure; the journal's events in, values out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import attrs

from runq_schemas.event_parts import RUNNER_DIED

OPENS = {
    "reset.started": "reset",
    "settle.started": "settle",
    "cooldown.started": "cooldown",
    "restart.started": "restart",
    "retry.waiting": "wait",
    "server.started": "server",
    "step.started": "step",
}
"""The event that begins a span, and what the span is."""

_CLOSES = {
    "reset.finished": "reset",
    "settle.finished": "settle",
    "restart.finished": "restart",
    "step.finished": "step",
}

_LASTS_UNTIL_NEXT = frozenset({"cooldown", "wait", "server"})
"""These have no end of their own: whatever the night does next ends them."""

_BOUNDS = frozenset({"night.started", "night.resumed", "night.interrupted", "night.finished"})

KINDS = (*OPENS, *_CLOSES, *_BOUNDS, "entry.started", "entry.finished")
"""Every kind of event that `spans` needs to see; others may be among them."""


@attrs.frozen(kw_only=True)
class Band:
    """One span of the night.

    Args:
        what: reset, settle, cooldown, restart, wait (before a retry), server (until the step it serves) or step.
        entry: entry id.
        step: the step's name; of a reset the step it came before; empty for none.
        attempt: of a step, from 1.
        start: when it began, UTC.
        end: when it ended, UTC; of what still runs the last event's time.
        status: how it ended: a step's status, a reset's verdict, a settling's status; empty when it did not.
        levels: per probe, memory in MB at its start and end; a settling's.
        proven: per probe, whether the level at its end is proven; a settling's.
    """

    what: str
    entry: int
    step: str = ""
    attempt: int | None = None
    start: datetime
    end: datetime
    status: str = ""
    levels: dict[str, tuple[float, float]] = attrs.field(factory=dict)
    proven: dict[str, bool] = attrs.field(factory=dict)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start).total_seconds()


@attrs.frozen(kw_only=True)
class Stretch:
    """A time in which a runner was at work, from the start or a resume to its end; times are UTC."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return (self.end - self.start).total_seconds()


LastSign = Callable[[int, str, str | None], datetime | None]
"""Asks when the last reading of memory was taken while a step of an entry ran, before a moment (as events have it)."""


def spans(events: Iterable[Any], last_sign: LastSign) -> tuple[list[Band], list[Stretch]]:
    """The spans of a night and the stretches of work, in their order.

    What a runner that died left open ends with its last sign of life, not with the resume that found it.

    Args:
        events: the night's, in their order: `StoredEvent`, or anything with its columns.
        last_sign: for a step that has no end.
    """
    night = _Night(last_sign)
    for event in events:
        night.take(event)
    night.close_all("", before=None)
    night.end_stretch()
    return sorted(night.bands, key=lambda band: band.start), night.stretches


@attrs.define
class _Night:
    last_sign: LastSign
    bands: list[Band] = attrs.field(factory=list)
    stretches: list[Stretch] = attrs.field(factory=list)
    last: datetime | None = None
    _began: datetime | None = None
    _open: dict[tuple[str, int, str, int | None], Band] = attrs.field(factory=dict)

    def take(self, event: Any) -> None:
        at = datetime.fromisoformat(event.at)
        if event.kind in ("night.started", "night.resumed"):
            self.close_all("interrupted", before=event.at)
            self.end_stretch()
            self._began = at
        elif _told_later(event):
            self.close_all("interrupted", before=event.at)
            return
        self._end_waiting(at)
        if event.kind in OPENS and event.entry is not None:
            self._begin(event, at)
        elif event.kind in _CLOSES and event.entry is not None:
            self._finish(event, at)
        if self._began is not None:
            self.last = at

    def _begin(self, event: Any, at: datetime) -> None:
        what = OPENS[event.kind]
        step = event.step or event.data.get("before_step") or ""
        band = Band(what=what, entry=event.entry, step=step, attempt=event.attempt, start=at, end=at)
        self._open[self._key(what, event)] = band

    def _finish(self, event: Any, at: datetime) -> None:
        what = _CLOSES[event.kind]
        band = self._open.pop(self._key(what, event), None)
        if band is None:
            return
        if what == "settle":
            band = attrs.evolve(band, levels=_levels(event.data), proven=_proven(event.data))
        status = event.data.get("status") or event.data.get("verdict") or ""
        self.bands.append(attrs.evolve(band, end=at, status=status))

    def _key(self, what: str, event: Any) -> tuple[str, int, str, int | None]:
        return (what, event.entry, event.step or "", event.attempt) if what == "step" else (what, event.entry, "", None)

    def _end_waiting(self, at: datetime) -> None:
        for key in [key for key in self._open if key[0] in _LASTS_UNTIL_NEXT]:
            self.bands.append(attrs.evolve(self._open.pop(key), end=at))

    def close_all(self, status: str, *, before: str | None) -> None:
        """End what is open, with its last sign of life: it still runs, or its runner died."""
        for band in self._open.values():
            end = max(self.last or band.start, band.start)
            if band.what == "step":
                end = max(end, self.last_sign(band.entry, band.step, before) or end)
            self.last = max(self.last or end, end)
            self.bands.append(attrs.evolve(band, end=end, status=status))
        self._open.clear()

    def end_stretch(self) -> None:
        """End the stretch of work that is open."""
        if self._began is not None and self.last is not None:
            self.stretches.append(Stretch(start=self._began, end=max(self._began, self.last)))
        self._began = None


def _levels(settled: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    levels = {probe: (mb, mb) for probe, mb in settled["baseline_mb"].items()}
    return levels | {one["probe"]: (one["start_mb"], one["final_mb"]) for one in settled.get("probes") or ()}


def _proven(settled: Mapping[str, Any]) -> dict[str, bool]:
    """Each probe's own word; the event's is that of the worst."""
    proven = dict.fromkeys(settled["baseline_mb"], bool(settled["proven"]))
    return proven | {one["probe"]: bool(one["proven"]) for one in settled.get("probes") or ()}


def _told_later(event: Any) -> bool:
    """Whether a later start wrote it for a runner that had died: it knows nothing of the time in between."""
    if event.kind == "night.interrupted":
        return bool(event.data.get("reason") == RUNNER_DIED)
    return event.kind == "step.finished" and event.data["status"] == "interrupted" and event.data.get("seconds") is None
