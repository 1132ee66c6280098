"""What a plan, a reset and a harness say in events; apart, because a plan is made without any of the events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs

__all__ = ["RUNNER_DIED", "Host", "Metric", "PlannedEntry", "PlannedStep", "UsedPlugin", "Verdict", "Window"]

RUNNER_DIED = "the runner died"
"""The reason of a `night.interrupted` that a later start wrote for a runner that could not."""

Verdict = Literal["verified", "unverified", "failed"]
"""A reset's: proven; not to be told; something is still loaded, or nobody could be asked."""


@attrs.frozen(kw_only=True)
class Host:
    """The machine a night ran on."""

    name: str
    system: str
    machine: str
    cpus: int
    memory_mb: float


@attrs.frozen(kw_only=True)
class PlannedStep:
    """A step the night intends, with its identity as the files were then."""

    name: str
    identity: str
    run: bool
    why: str


@attrs.frozen(kw_only=True)
class PlannedEntry:
    """An entry of the queue file as the night sees it.

    ``id`` never changes within a night; ``index`` is the position in the file now. ``settings`` is every
    resolved setting with secrets removed.
    """

    id: int
    index: int
    model: Mapping[str, Any]
    config: str | None
    pack: str | None
    judge_config: str | None
    judge_model: str | None
    steps: tuple[PlannedStep, ...]
    settings: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Window:
    """When a night may work, as local times with their offset from UTC (ISO 8601).

    ``start_at`` is when its first step may start, ``until`` when its last one has to be over; ``None``: no such limit.
    ``hard`` tells whether a step that still runs then is ended.
    """

    start_at: str | None = None
    until: str | None = None
    hard: bool = False


@attrs.frozen(kw_only=True)
class UsedPlugin:
    """A plugin the night uses, and the distribution that brought it."""

    group: str
    name: str
    distribution: str
    version: str


def _finite(_: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
    """A journal holds JSON, which has neither NaN nor infinity."""
    if value is not None and (isinstance(value, bool) or not math.isfinite(value)):
        raise ValueError(f"{attribute.name} must be a finite number, not {value!r}")


@attrs.frozen(kw_only=True)
class Metric:
    """A score of a step.

    ``name`` tells it from the step's other scores, such as ``match/accuracy``; ``value`` is the figure as the harness
    itself writes it; ``stderr`` its standard error, ``n`` how many samples it is over, each ``None`` when not told.
    """

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    value: float = attrs.field(validator=_finite)
    stderr: float | None = attrs.field(default=None, validator=_finite)
    n: int | None = None


@attrs.frozen(kw_only=True)
class ImportedStep:
    """A step that ran elsewhere. ``seconds`` is ``None`` where it is not told."""

    name: str
    status: str
    seconds: float | None = None
    reason: str = ""
    metrics: tuple[Metric, ...] = ()


@attrs.frozen(kw_only=True)
class ImportedEntry:
    """One model on one pack that ran elsewhere; names and paths as they are written there."""

    model_id: str
    config: str | None
    pack: str | None
    steps: tuple[ImportedStep, ...]
