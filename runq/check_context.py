"""What a check hands down: a night's context with a folder of its own, and patience after the first Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import attrs

from runq.night_context import NightContext
from runq.processes import Interrupted, Stopper
from runq.processes.interrupts import JobSignals, wait_readable


@attrs.define(kw_only=True)
class CheckContext(NightContext):
    """The effects of a check."""

    @property
    def queue_dir(self) -> Path:
        """Where the check's report and its servers' logs are."""
        return self.runs / self.recorder.night


@attrs.frozen
class UntilKilled:
    """A `Stopper` for what has to be tidied up after the first request to stop: only the second one ends it."""

    stopper: Stopper

    @property
    def requested(self) -> str | None:
        """The signal, once it came twice."""
        return self.stopper.requested if self.stopper.kill_now else None

    @property
    def kill_now(self) -> bool:
        """Whether it was asked twice."""
        return self.stopper.kill_now

    @property
    def hung_up(self) -> bool:
        """Whether the terminal was closed."""
        return self.stopper.hung_up

    @property
    def wakeup_fd(self) -> int | None:
        """Becomes readable when a signal arrives."""
        return self.stopper.wakeup_fd

    @property
    def job_signals(self) -> JobSignals:
        """What Ctrl-Z and its end have come to so far."""
        return self.stopper.job_signals

    def attend(self, look: Callable[[], None] | None) -> None:
        """Have ``look`` called whenever whoever waits wakes up."""
        self.stopper.attend(look)

    def request(self, name: str) -> None:
        """Ask to stop."""
        self.stopper.request(name)

    def wake(self) -> None:
        """End whatever wait goes on."""
        self.stopper.wake()

    def drain(self) -> None:
        """Make ``wakeup_fd`` unreadable again."""
        self.stopper.drain()

    def check(self) -> None:
        """Raise when it was asked to stop twice.

        Raises:
            Interrupted: it was.
        """
        if self.stopper.kill_now:
            raise Interrupted(self.stopper.requested or "")

    def sleep(self, seconds: float) -> None:
        """Wait so many seconds.

        Raises:
            Interrupted: it was asked to stop twice.
        """
        end = time.monotonic() + seconds
        while True:
            self.drain()
            self.check()
            left_s = end - time.monotonic()
            if left_s <= 0:
                return
            wait_readable(left_s, self.wakeup_fd)
