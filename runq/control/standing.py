"""How a night stands between pause and stop, as its journal tells it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import attrs


class Told(Protocol):
    """An event of the journal, of any kind."""

    @property
    def kind(self) -> str:
        """Its kind."""
        ...

    @property
    def at(self) -> str:
        """When, UTC, ISO 8601."""
        ...

    @property
    def data(self) -> Mapping[str, Any]:
        """What it says."""
        ...


BESIDE = (
    "warning",
    "night.asked",
    "night.paused",
    "night.unpaused",
    "night.frozen",
    "night.continued",
    "night.slept",
    "night.kept_awake",
    "host.joined",
    "host.lost",
    "lease.granted",
    "lease.renewed",
    "lease.ended",
    "delivery.late",
)
"""Kinds that say nothing about what the night does now: it did the same before and after."""

KINDS = (
    "night.started",
    "night.resumed",
    "night.asked",
    "night.paused",
    "night.unpaused",
    "night.frozen",
    "night.continued",
)
"""Kinds that `standing` reads."""


@attrs.frozen(kw_only=True)
class Standing:
    """What somebody asked for and how far that is.

    ``paused`` and ``frozen`` are since when (UTC, ISO 8601), ``None`` while it is not; ``by`` is who asked for the
    pause. ``asked`` is what is still to come: ``pause``, ``stop``, ``stop_after_step``, ``stop_after_entry``.
    """

    paused: str | None = None
    by: str | None = None
    frozen: str | None = None
    asked: tuple[str, ...] = ()


def standing(events: Iterable[Told]) -> Standing:
    """How a night stands after these events, of `KINDS` at least, in their order. A resume begins anew."""
    now = Standing()
    for event in events:
        what = event.data.get("what")
        match event.kind:
            case "night.started" | "night.resumed":
                now = Standing()
            case "night.asked" if what == "unpause":
                now = attrs.evolve(now, asked=_without(now.asked, "pause"))
            case "night.asked" if what not in ("skip", None):
                now = attrs.evolve(now, asked=(*_without(now.asked, what), what))
            case "night.paused":
                by = event.data.get("by")
                now = attrs.evolve(now, paused=event.at, by=by, asked=_without(now.asked, "pause"))
            case "night.unpaused":
                now = attrs.evolve(now, paused=None, by=None)
            case "night.frozen":
                now = attrs.evolve(now, frozen=event.at)
            case "night.continued":
                now = attrs.evolve(now, frozen=None)
    return now


def _without(asked: tuple[str, ...], what: str) -> tuple[str, ...]:
    return tuple(one for one in asked if one != what)
