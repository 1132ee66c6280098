"""A runner's answer in a sentence for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Answer = Mapping[str, Any]


def answer_text(answer: Answer) -> str:
    """What came of a question, by what it asked: pause, unpause, skip, or one of the three stops."""
    if "night" not in answer:
        return str(answer.get("message", "asked"))
    match answer["asked"]:
        case "pause":
            return _pause(answer)
        case "unpause":
            return f"night {answer['night']} " + ("goes on" if answer["taken"] else "is not paused")
        case "skip":
            step = running(answer)
            ended = f"; {step} is ended" if step else ""
            return f"night {answer['night']} skips the rest of e{answer['entry']}{ended}"
        case "stop":
            return f"night {answer['night']} stops: what runs is ended, the summary written"
        case "stop_after_step":
            step = running(answer)
            return f"night {answer['night']} ends {_as_soon_as(step) if step else 'before the next step'}"
        case "stop_after_entry":
            entry = answer.get("entry")
            return f"night {answer['night']} ends " + (
                f"after e{entry}" if entry is not None else "before the next entry"
            )
        case _:
            return f"night {answer['night']} answers"


def running(answer: Answer) -> str:
    """What runs, as ``e1 judge``; empty when no step does."""
    return "" if answer.get("step") is None else f"e{answer['entry']} {answer['step']}"


def _pause(answer: Answer) -> str:
    night, step = answer["night"], running(answer)
    if answer["paused"]:
        return f"night {night} is paused already; `runq unpause` goes on"
    already = "" if answer["taken"] else ", as asked before"
    return f"night {night} pauses {_as_soon_as(step)}{already}; `runq unpause` goes on"


def _as_soon_as(step: str) -> str:
    return f"as soon as {step} has finished" if step else "as soon as nothing runs"
