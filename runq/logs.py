"""Reading logs, safely: they are written by programs we do not know."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

TAIL_LINES = 20
TAIL_BYTES = 64 * 1024
LINE_CHARS = 500

CHUNK_BYTES = 64 * 1024
LONGEST_LINE_BYTES = 1024 * 1024
"""A line that never ends is shown in pieces of this size rather than kept in memory."""

# ECMA-48: control sequences, control strings with their end, then every other escape (`ESC ( B` of `tput sgr0`).
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
# Control characters but tab and newline, and the marks that make a line read backwards.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """The text without terminal escapes and control characters, so that it can be shown anywhere."""
    if text.isprintable():
        return text
    return _CONTROL.sub("", _ESCAPE.sub("", text))


def one_line(text: str) -> str:
    """The same on one line: what a foreign program or file says must not add lines to ours."""
    return " ".join(clean(text.replace("\r", " ")).split())


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
    kept = [_shown(line) for line in data.split(b"\n")]
    while kept and not kept[-1]:
        kept.pop()
    return tuple(line[:LINE_CHARS] for line in kept[-lines:])


def follow(path: Path, *, ended: Callable[[], bool], wait: Callable[[], None]) -> Iterator[str]:
    """The lines of a log, cleaned, from its beginning until it has ended.

    A line is given once it is whole. Of a progress bar only the state at each look is.

    Args:
        ended: whether nothing more will be written; asked before each look, so that nothing is missed.
        wait: called between two looks.

    Raises:
        OSError: the log cannot be read.
    """
    rest = b""
    redraws = shown = False  # of the line that is not whole yet
    with path.open("rb") as stream:
        while True:
            last = ended()
            while chunk := stream.read(CHUNK_BYTES):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in map(_shown, lines):
                    if line or not shown:
                        yield line
                    redraws = shown = False
                redraws = redraws or b"\r" in rest
                rest = rest[rest.rfind(b"\r", 0, -1) + 1 :]
                if len(rest) > LONGEST_LINE_BYTES:
                    yield _shown(rest)
                    rest = b""
            if rest and (last or redraws):
                yield _shown(rest)
                rest, shown = b"", True
            if last:
                return
            wait()


def last_state(line: str) -> str:
    """A line as it stood on the screen at its end: of one that redraws itself only the last state, cleaned."""
    return clean(line.rstrip("\r").rsplit("\r", 1)[-1]).rstrip()


def _shown(line: bytes) -> str:
    return last_state(line.decode("utf-8", errors="replace"))
