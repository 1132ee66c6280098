"""Code that is not ours and may block for ever: only an exception that a signal's handler raises gets through to it.

A plugin that waits properly is ended by `Interrupts.sleep`, which it is handed. One that sits in a call of its own,
such as `time.sleep` or a read from a socket, sees neither Ctrl-C nor any limit: Python takes such a call up again after
each signal whose handler returned (PEP 475). So inside `foreign` a second Ctrl-C raises, and so does a limit.

Both need the main thread, and the limit a timer that the system has (setitimer(2)); elsewhere they do nothing.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

LIMIT_S = 1800.0
"""What has not come back by then hangs, unless it was given longer: a reset asks a few questions of 120 s each, a check
of artifacts reads some files. Losing half an hour of a night is bad, losing the night is worse."""

AGAIN_S = 1.0
"""Once its limit has passed, so often is it told to code that catches what it is told, or that called us meanwhile."""

_inside = False


def inside() -> bool:
    """Whether the main thread is in code that is not ours."""
    return _inside


@contextmanager
def foreign(limit_s: float | None = None, hung: Callable[[], Exception] = TimeoutError) -> Iterator[None]:
    """Code that is not ours runs until the block ends.

    Args:
        limit_s: seconds after which ``hung()`` is raised in it; ``None``: no limit.
        hung: makes the exception.
    """
    global _inside  # noqa: PLW0603 - a signal's handler belongs to the process too
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _inside = _inside, True
    try:
        if limit_s is None or not hasattr(signal, "setitimer"):
            yield
        else:
            with _limited(limit_s, hung):
                yield
    finally:
        _inside = before


@contextmanager
def ours() -> Iterator[None]:
    """Code of ours that foreign code has called: nothing is raised in it."""
    global _inside  # noqa: PLW0603 - as above
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _inside = _inside, False
    try:
        yield
    finally:
        _inside = before


@contextmanager
def _limited(limit_s: float, hung: Callable[[], Exception]) -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        if _inside:
            raise hung()

    handler: Any = signal.signal(signal.SIGALRM, ring)
    began = time.monotonic()
    left_s, every_s = signal.setitimer(signal.ITIMER_REAL, limit_s, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler if handler is not None else signal.SIG_DFL)
        if left_s:  # somebody else's alarm goes on
            signal.setitimer(signal.ITIMER_REAL, max(0.001, left_s - (time.monotonic() - began)), every_s)
