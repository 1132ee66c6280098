"""Ctrl-C and its like: the first one asks the night to stop, the second kills at once. Ctrl-Z and its end are noted."""

from __future__ import annotations

import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from runq.processes.foreign import inside

_LONGEST_POLL_S = 3600.0
"""poll(2) takes milliseconds in a C int; whoever waits longer waits again."""

LOOK_EVERY_S = 5.0
"""Whoever sleeps wakes so often to look around, where somebody asked for that: a machine that slept is to be noticed
before the next event, and a look costs microseconds."""

_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class Interrupted(BaseException):
    """A signal asked the night to stop.

    Not an `Exception`, as `KeyboardInterrupt` is none: a plugin that catches everything and tries again must
    not swallow it.
    """


class JobSignals:
    """What the signals of job control have come to: Ctrl-Z, and its end.

    Args:
        stop: whether SIGTSTP asked to stop, and nobody has yet.
        continued: how often SIGCONT came.
    """

    def __init__(self) -> None:
        self.stop = False
        self.continued = 0


class Stopper(Protocol):
    """What whoever waits must know about interruptions."""

    @property
    def requested(self) -> str | None:
        """The name of the first signal that asked to stop."""
        ...

    @property
    def kill_now(self) -> bool:
        """Whether it was asked twice: no more grace."""
        ...

    @property
    def hung_up(self) -> bool:
        """Whether the terminal was closed (SIGHUP), which does not end the night."""
        ...

    @property
    def wakeup_fd(self) -> int | None:
        """Becomes readable when a signal arrives; ``None`` when nothing can wake a wait."""
        ...

    @property
    def job_signals(self) -> JobSignals:
        """What Ctrl-Z and its end have come to so far."""
        ...

    def attend(self, look: Callable[[], None] | None) -> None:
        """Have ``look`` called whenever whoever waits wakes up; ``None`` ends that."""
        ...

    def request(self, name: str) -> None:
        """Ask to stop, as the signal of that name does."""
        ...

    def wake(self) -> None:
        """End whatever wait goes on, from any thread."""
        ...

    def drain(self) -> None:
        """Make ``wakeup_fd`` unreadable again; look at ``requested`` after it, never before."""
        ...

    def check(self) -> None:
        """Raise when it was asked to stop.

        Raises:
            Interrupted: it was.
        """
        ...

    def sleep(self, seconds: float) -> None:
        """Wait so many seconds.

        Raises:
            Interrupted: it was asked to stop, before or meanwhile.
        """
        ...


class Interrupts:
    """Counts SIGINT and SIGTERM and notes SIGHUP while it is entered.

    In the main thread it takes the handlers over and gives them back on the way out, whatever happens. In
    any other thread it installs nothing (only the main thread may) and everything else works. SIGINT is
    handled even where a shell started us with it ignored, as scripts do for ``runq night ... &``: who sends
    it means it. Nothing is printed here, so that a terminal that is gone does not matter.

    SIGTSTP is taken over only while somebody attends, who then has to stop the process: nobody else would.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._count = 0
        self._requested: str | None = None
        self._hung_up = False
        self._jobs = JobSignals()
        self._look: Callable[[], None] | None = None
        self._looking = False
        self._old: dict[int, Any] = {}
        self._old_fd: int | None = None
        self._reader: socket.socket | None = None
        self._writer: socket.socket | None = None

    @property
    def requested(self) -> str | None:
        """The name of the first signal that asked to stop, as ``SIGINT``."""
        return self._requested

    @property
    def count(self) -> int:
        """How often it was asked to stop."""
        return self._count

    @property
    def kill_now(self) -> bool:
        """Whether it was asked twice: no more grace."""
        return self._count >= 2

    @property
    def hung_up(self) -> bool:
        """Whether the terminal was closed (SIGHUP), which does not end the night."""
        return self._hung_up

    @property
    def wakeup_fd(self) -> int | None:
        """Becomes readable when a signal arrives; ``None`` outside the ``with`` block."""
        return self._reader.fileno() if self._reader else None

    def request(self, name: str) -> None:
        """Ask to stop, as the signal of that name does."""
        self._count += 1
        self._requested = self._requested or name
        self.wake()  # Python runs handlers in the main thread some time after the signal woke a wait in another one

    def wake(self) -> None:
        """End whatever wait goes on, from any thread."""
        if self._writer is not None:
            with suppress(OSError):
                self._writer.send(b"\0")

    @property
    def job_signals(self) -> JobSignals:
        """What Ctrl-Z and its end have come to so far."""
        return self._jobs

    def attend(self, look: Callable[[], None] | None) -> None:
        """Have ``look`` called whenever whoever waits wakes up, every 5 s of a sleep at least; ``None`` ends that.

        It is called in the main thread only, and never while it is being called.
        """
        self._look = look
        if threading.current_thread() is not threading.main_thread() or self._reader is None:
            return
        if look is None:
            self._give_back("SIGTSTP", "SIGCONT")
        else:
            self._take({"SIGTSTP": self._job_stop, "SIGCONT": self._job_continue})

    def drain(self) -> None:
        """Make ``wakeup_fd`` unreadable again; look at ``requested`` after it, never before."""
        if self._reader is not None:
            with suppress(BlockingIOError):
                while self._reader.recv(4096):
                    pass
        if self._look is None or self._looking or threading.current_thread() is not threading.main_thread():
            return
        self._looking = True
        try:
            self._look()
        finally:
            self._looking = False

    def check(self) -> None:
        """Raise when it was asked to stop.

        Raises:
            Interrupted: it was.
        """
        if self._requested is not None:
            raise Interrupted(self._requested)

    def sleep(self, seconds: float) -> None:
        """Wait so many seconds.

        Raises:
            Interrupted: it was asked to stop, before or meanwhile.
        """
        end = self._clock() + seconds
        while True:
            self.drain()
            self.check()
            left_s = end - self._clock()
            if left_s <= 0:
                return
            wait_readable(left_s if self._look is None else min(left_s, LOOK_EVERY_S), self.wakeup_fd)

    def __enter__(self) -> Self:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        if threading.current_thread() is threading.main_thread():
            try:
                # The C handler writes to it, so a signal that lands just before a wait ends that wait too;
                # a flag set by the Python handler would be seen only after it.
                self._old_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
                self._take({"SIGINT": self._stop, "SIGTERM": self._stop, "SIGHUP": self._hang_up})
            except BaseException:
                self._restore()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _take(self, handlers: Mapping[str, Callable[[int, FrameType | None], None]]) -> None:
        for name, handler in handlers.items():
            number = getattr(signal, name, None)  # Windows knows neither SIGHUP nor job control
            if number is not None and number not in self._old:
                self._old[number] = signal.signal(number, handler)

    def _give_back(self, *names: str) -> None:
        for number in [getattr(signal, name, None) for name in names]:
            if number in self._old:
                handler = self._old.pop(number)
                # None: the handler was not installed by Python and cannot be put back.
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _restore(self) -> None:
        self._look = None
        self._give_back(*[signal.Signals(number).name for number in reversed(self._old)])
        if self._old_fd is not None:
            signal.set_wakeup_fd(self._old_fd)
            self._old_fd = None
        for end in (self._reader, self._writer):
            if end is not None:
                end.close()
        self._reader = self._writer = None

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        self.request(name)
        if self.kill_now and inside():
            raise Interrupted(self._requested)

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        self._hung_up = True

    def _job_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._jobs.stop = True

    def _job_continue(self, _number: int, _frame: FrameType | None) -> None:
        self._jobs.stop = False  # who says `stop` and at once `go on` wants it to go on
        self._jobs.continued += 1


class FakeInterrupts:
    """A `Stopper` that is told in advance: it asks to stop once so many seconds have been slept.

    Args:
        stop_after_s: seconds of `sleep` until it asks; ``None`` never.
        advance: called with the seconds of each sleep, to move a clock.
    """

    def __init__(
        self, stop_after_s: float | None = None, advance: Callable[[float], None] = lambda _seconds: None
    ) -> None:
        self._left_s = stop_after_s
        self._advance = advance
        self.requested: str | None = "SIGINT" if stop_after_s == 0 else None
        self.kill_now = False
        self.hung_up = False
        self.wakeup_fd: int | None = None
        self.slept_s: list[float] = []
        self.job_signals = JobSignals()
        self._look: Callable[[], None] = lambda: None

    def attend(self, look: Callable[[], None] | None) -> None:
        """Have ``look`` called at each drain, and before each sleep ends."""
        self._look = look or (lambda: None)

    def request(self, name: str) -> None:
        """Ask to stop."""
        self.requested = self.requested or name

    def wake(self) -> None:
        """Nothing waits here."""

    def drain(self) -> None:
        """There is nothing to drain."""
        self._look()

    def check(self) -> None:
        """Raise when it was asked to stop.

        Raises:
            Interrupted: it was.
        """
        if self.requested is not None:
            raise Interrupted(self.requested)

    def sleep(self, seconds: float) -> None:
        """Note the seconds and return at once.

        Raises:
            Interrupted: it was asked to stop, before or meanwhile.
        """
        self.check()
        if self._left_s is not None and self._left_s <= seconds:
            seconds, self.requested = self._left_s, "SIGINT"
        if self._left_s is not None:
            self._left_s -= seconds
        self.slept_s.append(seconds)
        self._advance(seconds)
        self._look()
        self.check()


def wait_readable(timeout_s: float, *fds: int | None) -> set[int]:
    """Wait until one of the descriptors is readable, an hour at most. Returns those that are."""
    timeout_s = min(max(timeout_s, 0.0), _LONGEST_POLL_S)
    wanted = [fd for fd in fds if fd is not None]
    if not wanted:
        time.sleep(timeout_s)  # Windows' select() refuses an empty list
        return set()
    with _Selector() as selector:
        for fd in wanted:
            selector.register(fd, selectors.EVENT_READ)
        return {key.fd for key, _ in selector.select(timeout_s)}
