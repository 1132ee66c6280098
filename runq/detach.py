"""A night that goes on without its terminal: forked off, in a session of its own, its output in a file.

The part that is forked off works in the caller's terminal until the night has begun, so that whatever refuses it is
told there, with the exit code that it always has. Only then the terminal is let go.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runq_schemas.errors import UsageError
from runq_schemas.events import Event, NightResumed, NightStarted

if TYPE_CHECKING:
    from runq.record import Observer

OUTPUT_NAME = "night.log"
"""In the queue folder: what a detached night would have shown."""


@attrs.frozen(kw_only=True)
class Begun:
    """A detached night that has begun; ``output`` is the file with what it shows."""

    night: str
    pid: int
    runs: str
    output: str


def detach(work: Callable[[Callable[[Begun], None]], int], told: Callable[[Begun], None]) -> int:
    """Do ``work`` in a process of its own. Returns, in the caller's process, once its night has begun or it ended.

    Args:
        work: runs the night, calls its argument once it has begun, and returns the exit code. It runs in the new
            process, and what it returns or raises goes the way of every command there.
        told: called in the caller's process with what has begun.

    Returns:
        In the caller's process 0, or the exit code of a night that has not begun. In the new one, ``work``'s.

    Raises:
        UsageError: this system cannot do that.
    """
    if not hasattr(os, "fork"):
        raise UsageError(
            "--detach needs a system with fork()", remedy="start the night without it, in a window kept open"
        )
    reader, writer = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # else both processes would write what waits in there
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.setsid()  # no terminal any more: its end reaches nobody, and Ctrl-C neither
        return work(lambda begun: _report(writer, begun))
    os.close(writer)
    begun = _wait(reader, pid)
    if begun is None:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) % 256
    told(begun)
    return 0


def _report(writer: int, begun: Begun) -> None:
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        json.dump(attrs.asdict(begun), stream)


def _wait(reader: int, pid: int) -> Begun | None:
    """What the new process reports; ``None`` when it ended without."""
    with os.fdopen(reader, encoding="utf-8") as stream:
        while True:
            try:
                text = stream.read()
                break
            except KeyboardInterrupt:
                os.kill(pid, signal.SIGINT)  # it has left our terminal, and so has not heard it
    return Begun(**json.loads(text)) if text else None


@attrs.define
class LettingGo:
    """An observer that lets the terminal go once the night has begun, and is the given one otherwise."""

    shown: Observer
    report: Callable[[Begun], None]

    def event(self, event: Event, *, entry: int | None, step: str | None, attempt: int | None) -> None:
        """Show it; at the night's first event everything goes to a file from then on."""
        if isinstance(event, NightStarted | NightResumed):
            output = Path(event.queue_dir) / OUTPUT_NAME
            _to_file(output)
            night = Path(event.queue_dir).name.removesuffix("_queue")
            self.report(Begun(night=night, pid=os.getpid(), runs=event.runs_dir, output=str(output)))
        self.shown.event(event, entry=entry, step=step, attempt=attempt)

    def tick(self, **values: Any) -> None:
        """Show it."""
        self.shown.tick(**values)

    def waiting(self, until: str, seconds: float) -> None:
        """Show it."""
        self.shown.waiting(until, seconds)

    def notice(self, text: str) -> None:
        """Show it."""
        self.shown.notice(text)


def _to_file(path: Path) -> None:
    """Turn standard output and error to a file, which only its owner can read, and input to nothing."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:  # the journal has it all; who waits for the night to begin must not wait until it ends
        output = os.open(os.devnull, os.O_WRONLY)
    for descriptor, number in ((null, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, number)
    os.close(null)
    os.close(output)
