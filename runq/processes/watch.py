"""Watching a step: it ends, runs too long, stalls, or the night is interrupted."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Protocol

from runq.processes.interrupts import Stopper, wait_readable
from runq.processes.spawn import ExitStatus

End = Literal["exited", "timeout", "stalled", "interrupted", "deadline", "dead", "full", "skipped"]
"""Why a watch stopped; only after ``exited`` has the process ended."""

_POLL_FIRST_S, _POLL_LONGEST_S = 0.0005, 0.004
"""Where nothing tells the end of a child it is asked for: the end is known within 5 ms all the same."""


class Watched(Protocol):
    """What is watched: a `Child`."""

    @property
    def pid(self) -> int:
        """The process id."""
        ...

    def poll(self) -> ExitStatus | None:
        """How it ended; ``None`` while it runs."""
        ...


Wait = Callable[[Watched, float, "int | None"], bool]


def wait_for_end(child: Watched, timeout_s: float, wakeup_fd: int | None = None) -> bool:
    """Wait until the child has ended, the time is over, or the descriptor is readable.

    Linux: poll(2) on a pidfd. macOS: kqueue(2). Elsewhere the child is asked every few milliseconds.

    Args:
        child: the process; must be a child of ours not reaped by anyone else.
        timeout_s: seconds to wait at most; may return early, so the caller looks at its clock.
        wakeup_fd: ends the wait when it becomes readable; it is not read from.

    Returns:
        Whether the child has ended (and is reaped).
    """
    if child.poll() is not None:
        return True
    if timeout_s > 0 and not _wait_pidfd(child.pid, timeout_s, wakeup_fd):
        kqueue = getattr(select, "kqueue", None)
        if kqueue is not None:
            _wait_kqueue(kqueue, child.pid, timeout_s, wakeup_fd)
        else:
            _wait_asking(child, timeout_s, wakeup_fd)
    return child.poll() is not None


def _wait_pidfd(pid: int, timeout_s: float, wakeup_fd: int | None) -> bool:
    """Wait by pidfd (pidfd_open(2), Linux 5.3). Returns whether that was possible."""
    try:
        fd = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return False
    try:
        wait_readable(timeout_s, fd, wakeup_fd)
    finally:
        os.close(fd)
    return True


def _wait_kqueue(kqueue: Any, pid: int, timeout_s: float, wakeup_fd: int | None) -> None:
    """Wait by kqueue: EVFILT_PROC with NOTE_EXIT (kqueue(2))."""
    module: Any = select
    events = [module.kevent(pid, module.KQ_FILTER_PROC, module.KQ_EV_ADD, module.KQ_NOTE_EXIT)]
    if wakeup_fd is not None:
        events.append(module.kevent(wakeup_fd, module.KQ_FILTER_READ, module.KQ_EV_ADD))
    queue = kqueue()
    try:
        queue.control(events, 1, timeout_s)
    except ProcessLookupError:
        pass  # it ended before it could be registered
    finally:
        queue.close()


def _wait_asking(child: Watched, timeout_s: float, wakeup_fd: int | None) -> None:
    """Wait by asking, ever more slowly."""
    end = time.monotonic() + timeout_s
    pause_s = _POLL_FIRST_S
    while child.poll() is None and (left_s := end - time.monotonic()) > 0:
        if wait_readable(min(pause_s, left_s), wakeup_fd):
            return
        pause_s = min(pause_s * 2, _POLL_LONGEST_S)


class _Stall:
    """Whether nothing has changed for so long. Looks ten times per limit: a bundle may hold many files."""

    def __init__(self, limit_s: float, activity: Callable[[], object], now: float) -> None:
        self._limit_s = limit_s
        self._activity = activity
        self._seen = activity()
        self._changed = now
        self.next_look = now + limit_s / 10

    def reached(self, now: float) -> bool:
        """Look if it is time to. Never true early; late by a tenth of the limit at most."""
        if now < self.next_look:
            return False
        latest = self._activity()
        if latest != self._seen:
            self._seen, self._changed = latest, now
        self.next_look = min(now + self._limit_s / 10, self._changed + self._limit_s)
        return now >= self._changed + self._limit_s


def watch(
    child: Watched,
    *,
    timeout_s: float,
    stall_timeout_s: float | None,
    activity: Callable[[], object],
    every_s: float,
    on_tick: Callable[[float], None],
    verdict: Callable[[], End | None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
    interrupts: Stopper,
    wait: Wait = wait_for_end,
) -> End:
    """Watch a child until there is a reason to stop; the caller then ends the tree, also after a raise.

    Ticks keep to their times by the clock: a slow one delays none after it, and one that overslept its
    successors does not make up for them. The end of the child is noticed within 5 ms, or when a running tick
    returns. Time that the machine slept through counts only if the clock says so; `time.monotonic` stands
    still on Linux and macOS.

    Args:
        child: the process.
        timeout_s: seconds from now until ``timeout``.
        stall_timeout_s: seconds without a change of ``activity`` until ``stalled``, at the earliest;
            ``None``: never.
        activity: a value that differs from the one before when the child has done something; see `growth`.
        every_s: seconds between ticks; the first comes after so many.
        on_tick: called with the seconds since the start. What it raises is passed on, and the child still
            runs.
        verdict: asked after each tick for a further reason to stop; ``None``: there is none.
        clock: monotonic seconds.
        interrupts: who may ask to stop.
        wait: the primitive that waits.
    """
    start = clock()
    deadline = start + timeout_s
    next_tick = start + every_s
    stall = _Stall(stall_timeout_s, activity, start) if stall_timeout_s is not None else None
    while True:
        interrupts.drain()
        if child.poll() is not None:
            return "exited"
        if interrupts.requested is not None:
            return "interrupted"
        now = clock()
        if now >= deadline:
            return "timeout"
        if stall is not None and stall.reached(now):
            return "stalled"
        if now >= next_tick:
            next_tick += every_s * (1 + (now - next_tick) // every_s)
            on_tick(now - start)
            if (found := verdict()) is not None:
                return found
        until = min(deadline, next_tick)
        if stall is not None:
            until = min(until, stall.next_look)
        wait(child, until - clock(), interrupts.wakeup_fd)


def growth(log_path: Path, bundle: Path) -> tuple[int, int, int]:
    """What a step has written so far: bytes in all, number of files, newest change in ns since the epoch.

    Files that vanish meanwhile and folders that cannot be read count nothing; links are not followed.
    """
    total = files = newest = 0
    folders = [str(bundle)]
    stats = []
    with suppress(OSError):
        stats.append(log_path.stat())
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    try:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        else:
                            stats.append(entry.stat(follow_symlinks=False))
                    except OSError:
                        continue
        except OSError:
            continue
    for stat in stats:
        total += stat.st_size
        files += 1
        newest = max(newest, stat.st_mtime_ns)
    return total, files, newest
