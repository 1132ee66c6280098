"""A page's words: what its templates call, and how times read on the night's own clock."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from runq.logs import one_line
from runq.paths import shown
from runq.text import clean_lines, duration

_TONES = {
    "good": "ok complete verified settled finished proven better",
    "bad": "failed timeout stalled died dirty worse",
    "odd": "interrupted unverified skipped gave_up paused frozen",
    "busy": "running",
}
_TONE_OF = {word: tone for tone, words in _TONES.items() for word in words.split()}

_CODE = re.compile(r"`([^`]+)`")


def tone(word: str) -> str:
    """The colour of a status, verdict or state: good, bad, odd, busy, or quiet for any other."""
    return _TONE_OF.get(word, "quiet")


def prose(text: str) -> Markup:
    """A sentence of ours: what stands in backticks is code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def quoted(text: str) -> str:
    """Text from outside for the middle of a sentence of ours: it makes no code, and has no end of its own."""
    return one_line(text).replace("`", "'").rstrip(".")


def sentence(text: str) -> str:
    """The same with a capital letter and a full stop."""
    end = "" if not text or text.endswith((".", "!", "?")) else "."
    return text[:1].upper() + text[1:] + end


def local(at: datetime | str, offset: timedelta) -> datetime:
    """A moment on the night's own clock, without a zone.

    Args:
        at: aware, or as the journal has it.
        offset: how far that clock is ahead of UTC.
    """
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return (moment + offset).replace(tzinfo=None)


def zone(offset: timedelta) -> str:
    """That clock's distance from UTC: ``UTC+1``, ``UTC-3:30``."""
    minutes = round(offset / timedelta(minutes=1))
    if minutes == 0:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'+' if minutes > 0 else '-'}{hours}" + (f":{rest:02}" if rest else "")


def day(moment: datetime) -> str:
    """A date and time in words, without the locale's: ``1 December 2026, 22:05``."""
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}, {moment:%H:%M}"


_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def filters(offset: timedelta, base: Path) -> dict[str, Callable[..., Any]]:
    """What the templates call these."""
    return {
        "clock": lambda at: f"{local(at, offset):%H:%M:%S}",
        "duration": duration,
        "line": lambda text: one_line(text or ""),
        "lines": clean_lines,
        "moment": lambda at: f"{day(local(at, offset))} {zone(offset)}",
        "place": lambda path: one_line(shown(path, base)),
        "prose": prose,
        "sentence": sentence,
        "tone": tone,
    }
