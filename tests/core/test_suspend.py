"""Noticing that the machine slept, and clocks that leave it out."""

from __future__ import annotations

import sys
import time

import pytest

from runq.suspend import EXACT_LEAST_S, GUESSED_LEAST_S, MachineClock, SleepWatch, WorkClock, machine_clock


def watch(readings: list[float], least_s: float) -> list[float | None]:
    """What is told after each reading of the time asleep but the first."""
    values = iter(readings)
    clock = MachineClock(awake=lambda: 0.0, asleep=lambda: next(values), least_s=least_s, how="told")
    watched = SleepWatch(clock)
    return [watched.slept() for _ in readings[1:]]


@pytest.mark.parametrize(
    ("readings", "least_s", "told"),
    [
        ([100.0, 100.0, 100.4], 1.0, [None, None]),
        ([100.0, 3700.0, 3700.0], 1.0, [3600.0, None]),
        ([0.0, 2.0, 5.0], 1.0, [2.0, 3.0]),
        # The wall clock: corrected by seconds and back again, then a sleep.
        ([0.0, 5.0, 0.0, 45.0], 30.0, [None, None, 45.0]),
        # Set back by an hour, as in autumn by a machine that keeps local time: what comes after counts from there.
        ([0.0, -3600.0, -3540.0], 30.0, [None, 60.0]),
    ],
)
def test_each_sleep_is_told_once(readings: list[float], least_s: float, told: list[float | None]) -> None:
    assert watch(readings, least_s) == told


def test_time_held_is_left_out() -> None:
    now = 100.0
    work = WorkClock(lambda: now)
    began = work()
    now += 10
    work.hold(7)
    assert work() - began == 3
    now += 2
    assert work() - began == 5


def test_the_machines_own_clock_runs_and_has_not_slept() -> None:
    clock = machine_clock()
    exact = sys.platform.startswith("linux") or sys.platform == "darwin"
    assert clock.least_s == (EXACT_LEAST_S if exact else GUESSED_LEAST_S)
    before, watched = clock.awake(), SleepWatch(clock)
    time.sleep(0.05)
    assert 0.05 <= clock.awake() - before < 5
    assert watched.slept() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="these clocks are Linux's")
def test_on_linux_the_time_asleep_is_what_the_boot_clock_is_ahead() -> None:
    ahead = time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
    assert machine_clock().asleep() == pytest.approx(ahead, abs=0.5)
    assert machine_clock().how == "CLOCK_BOOTTIME"
