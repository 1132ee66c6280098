"""Reading the end of a log, safely: logs are written by programs we do not know."""

from __future__ import annotations

import os
import re
from pathlib import Path

TAIL_LINES = 20
TAIL_BYTES = 64 * 1024
LINE_CHARS = 500

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    """The text without terminal escapes and control characters, so that it can be shown anywhere."""
    return _CONTROL.sub("", _ESCAPE.sub("", text))


def tail(path: Path, lines: int = TAIL_LINES) -> tuple[str, ...]:
    """The last lines of a log, cleaned, each at most 500 characters; empty when there is no log.

    Of a line that redraws itself by carriage returns, a progress bar, only the last state is kept.
    """
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - TAIL_BYTES))
            data = stream.read()
    except OSError:
        return ()
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n")
    kept = [clean(line.rstrip("\r").rsplit("\r", 1)[-1]).rstrip() for line in text.split("\n")]
    while kept and not kept[-1]:
        kept.pop()
    return tuple(line[:LINE_CHARS] for line in kept[-lines:])
