"""What one screen of `runq watch` shows: values alone, so that drawing it is a pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs
from rich.text import Text

from runq.progress.living import Now


@attrs.frozen(kw_only=True)
class Level:
    """Memory as the first probe sees it, since the step that runs began.

    Args:
        probe: its name.
        mb: the latest figure in MB.
        peak_mb: the highest in MB.
        curve: the figures in MB, oldest first.
        baseline_mb: before the model loaded, in MB; ``None`` without one.
        proven: whether the baseline is proven.
    """

    probe: str
    mb: float
    peak_mb: float
    curve: Sequence[float]
    baseline_mb: float | None
    proven: bool


@attrs.frozen(kw_only=True)
class Log:
    """The end of a step's log.

    Args:
        title: whose it is.
        lines: its last lines, cleaned.
    """

    title: str
    lines: Sequence[str]


@attrs.frozen(kw_only=True)
class Frame:
    """One screen.

    Args:
        data: what `runq status --json` says: the summary, and the state, the runner and what goes on.
        now: what goes on, when a step or a settling does.
        doing: what goes on in words, when nothing else says it.
        level: memory; ``None`` before the first figure.
        log: the end of the log of the step that runs, or ran last; ``None`` before the first.
        happened: transitions with their local time, the oldest first.
        at: local time of this screen.
        keys: what the keys do now; a question, where one was asked.
        asks: whether ``keys`` is a question.
        message: what came of the last key; empty for nothing.
        log_only: whether the log has the screen to itself.
    """

    data: Mapping[str, Any]
    now: Now | None
    doing: str
    level: Level | None
    log: Log | None
    happened: Sequence[tuple[datetime, Text]]
    at: datetime
    keys: str
    asks: bool = False
    message: str = ""
    log_only: bool = False
