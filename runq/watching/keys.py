"""Keys from a terminal, one by one and without Enter; and being woken by its signals."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

ESCAPE_S = 0.05
"""Seconds within which a terminal sends the rest of a key that begins with Escape; Escape alone has no rest."""


def input_terminal() -> int | None:
    """The descriptor of standard input when it is a terminal that can give keys; else ``None``."""
    try:
        import termios  # noqa: F401 - not on Windows

        stream = sys.stdin
        return stream.fileno() if stream is not None and stream.isatty() else None
    except (ImportError, OSError, ValueError):
        return None


class Keys:
    """Keys and signals while it is entered; afterwards the terminal is as it was.

    Args:
        fd: the terminal, or ``None`` for none: then there are signals only.
        suspend: called around a stop by Ctrl-Z; gives the terminal back and takes it again.
    """

    def __init__(self, fd: int | None, suspend: Callable[[Callable[[], None]], None]) -> None:
        self._fd = fd
        self._suspend = suspend
        self._saved: list[Any] | None = None
        self._stop_asked = False
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Keys:
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        for name in ("SIGWINCH", "SIGTSTP"):
            number = getattr(signal, name, None)
            if number is not None:
                self._old[number] = signal.signal(number, self._signalled)
        self._old[signal.SIGTERM] = signal.signal(signal.SIGTERM, _terminated)
        self._raw()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._cooked()
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._reader.close()
        self._writer.close()

    def wake(self) -> None:
        """End the wait, from any thread."""
        with contextlib.suppress(OSError):  # full: it is awake already
            self._writer.send(b"w")

    def wait(self, seconds: float) -> list[str]:
        """The keys that came, after so many seconds at most; none after a signal or a wake.

        Printable keys are themselves; Escape is ``escape``, the end of the input ``end``, and any other key that sends
        more than one character, such as an arrow, is ``other``.
        """
        watched = [self._reader.fileno(), *([] if self._fd is None else [self._fd])]
        ready, _, _ = select.select(watched, [], [], max(seconds, 0.0))
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(512):
                pass
        if self._stop_asked:
            self._stop_asked = False
            self._stop()
            return []
        return self._read() if self._fd in ready else []

    def _read(self) -> list[str]:
        assert self._fd is not None  # noqa: S101 - for the type checker
        try:
            data = os.read(self._fd, 1024)
            while data.endswith(b"\x1b") and select.select([self._fd], [], [], ESCAPE_S)[0]:
                more = os.read(self._fd, 1024)
                data += more
                if not more:
                    break
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._fd = None  # nothing more will come, and select would not wait any longer
            return ["end"]
        return list(parsed(data))

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        self._stop_asked = self._stop_asked or number == getattr(signal, "SIGTSTP", None)
        self.wake()

    def _stop(self) -> None:
        """Stop as Ctrl-Z is meant to, with the terminal in order meanwhile."""

        def stop() -> None:
            self._cooked()
            os.kill(os.getpid(), signal.SIGSTOP)
            self._raw()

        self._suspend(stop)

    def _raw(self) -> None:
        if self._fd is None:
            return
        import termios
        import tty

        self._saved = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSADRAIN)

    def _cooked(self) -> None:
        if self._saved is None or self._fd is None:
            return
        import termios

        with contextlib.suppress(termios.error, OSError):  # the terminal is gone
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._saved)
        self._saved = None


def parsed(data: bytes) -> Iterator[str]:
    """The keys in what a terminal sent (ECMA-48 control sequences, xterm's and the console's function keys)."""
    text = data.decode("utf-8", errors="ignore")
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\x04":
            yield "end"
        elif char != "\x1b":
            yield char
        elif at >= len(text) or text[at] == "\x1b":
            yield "escape"
        else:
            at = _after_sequence(text, at)
            yield "other"


def _after_sequence(text: str, at: int) -> int:
    """Where the control sequence ends whose second character is at ``at``."""
    if text[at] not in "[O":
        return at + 1  # Alt and a key
    at += 1
    while at < len(text) and not "@" <= text[at] <= "~":
        at += 1
    return at + 1


def _terminated(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # on the way out the terminal is given back
