"""Noticing after the fact that the machine slept, and how long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import attrs

EXACT_LEAST_S = 1.0
"""Where the system counts the sleep itself. Two clocks read one after the other differ by microseconds."""

GUESSED_LEAST_S = 30.0
"""Where only the wall clock tells: NTP corrects it by less, apart from its first correction after a boot."""


@attrs.frozen(kw_only=True)
class MachineClock:
    """Time as a machine spends it.

    Args:
        awake: monotonic seconds that stand still while the machine sleeps.
        asleep: seconds it has slept, counted from an arbitrary moment.
        least_s: a rise of ``asleep`` below this is no sleep.
        how: where ``asleep`` comes from, for the journal.
    """

    awake: Callable[[], float]
    asleep: Callable[[], float]
    least_s: float
    how: str


def machine_clock() -> MachineClock:
    """The clock of this machine.

    Linux: CLOCK_BOOTTIME counts the time asleep, CLOCK_MONOTONIC does not (clock_gettime(2)). macOS: the same with
    CLOCK_MONOTONIC_RAW and CLOCK_UPTIME_RAW (clock_gettime(3) there), of which the latter is `time.monotonic`.
    Elsewhere the wall clock is all there is, and a sleep is seen only where `time.monotonic` stands still in it.
    """
    clocks: Any = time  # which clocks it has differs by platform
    if sys.platform.startswith("linux") and hasattr(time, "CLOCK_BOOTTIME"):
        return _difference(clocks.CLOCK_BOOTTIME, clocks.CLOCK_MONOTONIC, "CLOCK_BOOTTIME")
    if sys.platform == "darwin" and hasattr(time, "CLOCK_UPTIME_RAW"):
        return _difference(clocks.CLOCK_MONOTONIC_RAW, clocks.CLOCK_UPTIME_RAW, "CLOCK_MONOTONIC_RAW")
    return MachineClock(
        awake=time.monotonic,
        asleep=lambda: time.time() - time.monotonic(),
        least_s=GUESSED_LEAST_S,
        how="wall clock",
    )


def _difference(always: int, awake: int, how: str) -> MachineClock:
    def asleep() -> float:
        while True:
            before, now = time.clock_gettime(awake), time.clock_gettime(always)
            if time.clock_gettime(awake) - before < EXACT_LEAST_S / 10:
                return now - before
            # The process was stopped between the two readings: that is no sleep of the machine.

    return MachineClock(awake=time.monotonic, asleep=asleep, least_s=EXACT_LEAST_S, how=how)


@attrs.define
class SleepWatch:
    """Tells each sleep of the machine once."""

    clock: MachineClock
    _asleep: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._asleep = self.clock.asleep()

    def slept(self) -> float | None:
        """Seconds slept since the last call; ``None`` when it did not sleep."""
        now = self.clock.asleep()
        rise = now - self._asleep
        if self.clock.least_s <= rise:
            self._asleep = now
            return rise
        if rise < 0:  # the wall clock was set back: what comes counts from here
            self._asleep = now
        return None


@attrs.define
class WorkClock:
    """Seconds of work: monotonic, and standing still while the machine sleeps or the night is frozen.

    Timeouts, waits and durations are measured by it, so that neither counts against a step.
    """

    awake: Callable[[], float]
    _held_s: float = attrs.field(default=0.0, init=False)

    def __call__(self) -> float:
        """The seconds now, from an arbitrary moment."""
        return self.awake() - self._held_s

    def hold(self, seconds: float) -> None:
        """Leave out so many seconds that lie just behind us."""
        self._held_s += seconds
