"""What a plan and a reset say in events; apart from the events, because a plan is made without any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

__all__ = ["Host", "PlannedEntry", "PlannedStep", "UsedPlugin", "Verdict"]

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
class UsedPlugin:
    """A plugin the night uses, and the distribution that brought it."""

    group: str
    name: str
    distribution: str
    version: str
