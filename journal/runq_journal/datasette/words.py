"""Values in the words of a page: durations, memory, times, and which colour a word has."""

from __future__ import annotations

import json
import re

from markupsafe import Markup, escape

_TONES = {
    "good": "ok complete verified settled finished proven",
    "bad": "failed fail timeout stalled error died incomplete dirty",
    "odd": "interrupted unverified skipped warn empty reasoning_only",
    "busy": "running",
}
_TONE_OF = {word: tone for tone, words in _TONES.items() for word in words.split()}

_CODE = re.compile(r"`([^`]+)`")


def tone(word: object) -> str:
    """The colour of a status, verdict or state: good, bad, odd, busy, or quiet for any other."""
    return _TONE_OF.get(str(word), "quiet")


def badge(word: object) -> Markup:
    """A status, verdict or state as a coloured word; nothing for none."""
    return Markup('<span class="badge {}">{}</span>').format(tone(word), word) if word is not None else Markup("")


def proven(value: object) -> Markup:
    """Whether a baseline is proven."""
    if value is None:
        return Markup("")
    return Markup('<span class="badge {}">{}</span>').format(*(("good", "proven") if value else ("odd", "not proven")))


def unproven(value: object) -> Markup:
    """The mark of a figure that stands on a baseline which is not proven.

    Args:
        value: whether it is; nothing is known of a baseline that is not there.
    """
    return Markup("") if value is None or value else UNPROVEN


UNPROVEN = Markup('<abbr title="the baseline is not proven">*</abbr>')


def duration(seconds: float | None) -> str:
    """Seconds for people: ``42 s``, ``3:05 min``, ``4:00 h``; nothing for none."""
    if seconds is None:
        return ""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60}:{whole % 60:02} min" if whole < 3600 else f"{whole // 3600}:{whole % 3600 // 60:02} h"


def megabytes(mb: float | None) -> str:
    """Memory to the MB with thousands apart; nothing for none."""
    return "" if mb is None else f"{mb:,.0f}"


def moment(at: str | None) -> Markup:
    """An ISO 8601 time to the second; the whole of it where the pointer rests."""
    if not at:
        return Markup("")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(at, at[:19].replace("T", " "))


def prose(text: str) -> Markup:
    """A description: what stands in backticks is code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def pretty(value: object) -> str:
    """JSON over several lines; anything else as it is."""
    try:
        return json.dumps(json.loads(str(value)), indent=2, ensure_ascii=False)
    except ValueError:
        return str(value)


def points(values: list[float]) -> str:
    """A line for an SVG of 100 by 24: the highest value is at the top, the lowest at the bottom."""
    low, high = min(values), max(values)
    step, scale = 100 / max(1, len(values) - 1), 22 / ((high - low) or 1)
    return " ".join(f"{i * step:.1f},{23 - (value - low) * scale:.1f}" for i, value in enumerate(values))


FILTERS = {f.__name__: f for f in (badge, duration, megabytes, moment, points, pretty, prose, proven, tone, unproven)}
"""What the templates call these."""
