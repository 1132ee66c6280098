"""Figures and texts as people read them."""

from __future__ import annotations

import json
import re
from typing import Any

from runq.logs import clean

_OBEYED = re.compile(r"[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

__all__ = ["clean_lines", "duration", "harmless_json", "json_text", "left_text"]


def clean_lines(text: str) -> str:
    """Text without terminal escapes, its lines kept."""
    return "\n".join(clean(line) for line in text.split("\n"))


def json_text(data: Any, *, indent: int | None = 2) -> str:
    """JSON with its letters as they are, and nothing in it that a terminal obeys or that turns a line around."""
    return harmless_json(json.dumps(data, indent=indent, ensure_ascii=False))


def harmless_json(text: str) -> str:
    """JSON that says the same, with what a terminal obeys or what turns a line around written as an escape.

    JSON itself escapes the control characters below the space only.
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def duration(seconds: float | None) -> str:
    """Seconds for people: ``42 s``, ``3:05 min``, ``4:00 h``."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h"


def left_text(steps: int, seconds: float, unknown: int) -> str:
    """Steps that were left, and how long they need: ``3 steps, which need about 4:00 h and 1 without history``."""
    count = "1 step" if steps == 1 else f"{steps} steps"
    blind = f"{unknown} without history" if unknown else ""
    if unknown == steps:
        return f"{count} without history"
    need = "needs" if steps == 1 else "need"
    return f"{count}, which {need} about {duration(seconds)}" + (f" and what {blind} takes" if blind else "")
