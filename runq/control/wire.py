"""What goes over the socket: one JSON line in, one JSON line out, both small. Pure, but for reading a line."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast, get_args

import attrs

from runq.logs import one_line

MAX_LINE_BYTES = 4096
"""A question is a word and a name, an answer a few numbers more."""

MAX_NAME_CHARS = 100

What = Literal["status", "pause", "unpause", "stop", "stop_after_step", "stop_after_entry", "skip"]


class WireError(Exception):
    """What came is not what this protocol says."""


@attrs.frozen(kw_only=True)
class Ask:
    """A question; ``by`` is who asks, in words, as the other end says."""

    what: What
    by: str


def ask_line(ask: Ask) -> bytes:
    """A question as it is sent."""
    return _line({"ask": ask.what, "by": ask.by})


def parse_ask(line: bytes) -> Ask:
    """A question as it came, made harmless: it goes into the journal and onto terminals.

    Raises:
        WireError: it is none.
    """
    data = _parse(line)
    what, by = data.get("ask"), data.get("by", "")
    if what not in get_args(What):
        raise WireError(f"{one_line(str(what))[:40]!r} cannot be asked; this can: {', '.join(get_args(What))}")
    return Ask(what=cast("What", what), by=one_line(str(by))[:MAX_NAME_CHARS] or "somebody")


def answer_line(answer: Mapping[str, Any]) -> bytes:
    """An answer as it is sent."""
    return _line(answer)


def parse_answer(line: bytes) -> dict[str, Any]:
    """An answer as it came.

    Raises:
        WireError: it is none.
    """
    data = _parse(line)
    if not isinstance(data.get("ok"), bool):
        raise WireError("the answer has no `ok`")
    return data


def read_line(connection: socket.socket, timeout_s: float, clock: Callable[[], float] = time.monotonic) -> bytes:
    """A line from a connection, without its end; nobody can make it wait longer or keep more.

    Raises:
        WireError: it is too long, or the other end closed before it was whole.
        TimeoutError: it did not come in time.
        OSError: the connection broke.
    """
    deadline = clock() + timeout_s
    data = b""
    while b"\n" not in data:
        if len(data) >= MAX_LINE_BYTES:
            raise WireError(f"a line is longer than {MAX_LINE_BYTES} bytes")
        left_s = deadline - clock()
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        chunk = connection.recv(MAX_LINE_BYTES + 1)
        if not chunk:
            raise WireError("the connection was closed in mid-line")
        data += chunk
    line = data.partition(b"\n")[0]
    if len(line) > MAX_LINE_BYTES:
        raise WireError(f"a line is longer than {MAX_LINE_BYTES} bytes")
    return line


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode("ascii") + b"\n"


def _parse(line: bytes) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError("it is no JSON") from error
    if not isinstance(data, dict):
        raise WireError("it is no JSON object")
    return data
