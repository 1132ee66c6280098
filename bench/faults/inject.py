"""Faults inside a runner: hooks at its events and at its calls to the system, set before its command line begins.

Nothing here is a mock: the process is killed, the signal is sent, SQLite really meets its page limit or a write that
the kernel refuses. Only full disks and errors of files are told to Python instead of made: mounting takes a superuser.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bench.faults.scenario import Fault

CALLS = {
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.chmod",
    "os.posix_spawn",
    "os.kill",
    "os.listdir",
    "fcntl.flock",
    "socket.bind",
    "sqlite3.connect",
    "subprocess.Popen",
}
"""The audit events of CPython (docs.python.org, "Audit events table") that stand for calls to the system."""

GRACE_S = 0.3
"""Between SIGTERM and SIGKILL, instead of 10 s; the steps that ignore SIGTERM would take them each time."""

READING_LIMIT_S = 0.1
"""How long a probe that hangs is waited for, instead of 2 s."""


PLUGIN_LIMIT_S = 0.2
"""How long a plugin that hangs is waited for, instead of half an hour."""

BEGUN_S = 0.03
"""By then a step has started its interpreter and forked whatever it forks."""


def hurry() -> None:
    """Shorten the waits of runq that a campaign would spend its time in."""
    from runq import bounded_probe, night, processes
    from runq.processes import orphans

    for function in (night.run_night, orphans.sweep):
        (function.__kwdefaults__ or {})["grace_s"] = GRACE_S
    processes.LIMIT_S = PLUGIN_LIMIT_S
    bounded_probe.BoundedProbe.__init__.__defaults__ = (READING_LIMIT_S,)


def inject(fault: Fault, base: Path, tell: Callable[[], None]) -> None:
    """Set a fault up in this process.

    Args:
        fault: what is to happen.
        base: the run's folder; errors befall files below it alone.
        tell: called right before it happens.
    """
    hurry()
    act = _act(fault, base, tell)
    if act is None:
        return
    if fault.where == "event":
        _at_event(int(fault.at), fault.phase, act)
    elif fault.where == "call":
        _at_call(int(fault.at), base, act, everywhere=fault.kind != "file error")
    elif fault.where in ("step", "server"):
        _in_process(fault.where, int(fault.at), tell, itself=fault.kind != "kill")


def _act(fault: Fault, base: Path, tell: Callable[[], None]) -> Callable[[Any], None] | None:
    """What happens at the chosen place; it is handed the journal, or ``None`` where there is none yet."""

    def kill(_: Any) -> None:
        tell()
        os.kill(os.getpid(), signal.SIGKILL)

    def send(_: Any) -> None:
        tell()
        names = {"hang up": "SIGHUP", "Ctrl-Z": "SIGTSTP"}
        name, _, twice = (names.get(fault.kind) or fault.how).partition(" ")
        for _ in range(2 if twice else 1):
            os.kill(os.getpid(), getattr(signal, name))

    def full(journal: Any) -> None:
        tell()
        if fault.how in ("journal", "both"):
            journal._conn.execute("PRAGMA max_page_count = 1")  # SQLite takes what the file has already
        if fault.how in ("files", "both"):
            _refuse_files(base, errno.ENOSPC)

    def no_write(journal: Any) -> None:
        tell()
        _refuse_one_append(journal)

    def fail(_: Any) -> None:
        tell()
        number = getattr(errno, fault.how)
        raise OSError(number, os.strerror(number))

    def set_clock(_: Any) -> None:
        tell()
        _shift_wall_clock(float(fault.how))

    def sleep(_: Any) -> None:
        tell()
        _shift_suspend_clock(abs(float(fault.how)))

    acts: dict[str, Callable[[Any], None]] = {
        "kill": kill,
        "signal": send,
        "hang up": send,
        "Ctrl-Z": send,
        "child killed": kill,
        "server killed": kill,
        "disk full": full,
        "disk error": no_write,
        "file error": fail,
        "clock set": set_clock,
        "slept": sleep,
    }
    return acts.get(fault.kind) if fault.where != "moment" else None


def _at_event(number: int, phase: str, act: Callable[[Any], None]) -> None:
    """Act at an event of this runner, counted from 1: before its transaction, inside it, or after."""
    from runq_journal.journal import Journal

    append, count = Journal.append, 0

    def appended(self: Journal, *args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        here = count == number
        if here and phase == "before":
            act(self)
        if here and phase == "inside":
            self._conn.set_trace_callback(lambda sql: act(self) if sql.startswith("COMMIT") else None)
        try:
            return append(self, *args, **kwargs)
        finally:
            if here and phase == "inside":
                self._conn.set_trace_callback(None)
            if here and phase == "after":
                act(self)

    Journal.append = appended  # type: ignore[method-assign]


def _at_call(number: int, base: Path, act: Callable[[Any], None], *, everywhere: bool) -> None:
    """Act at a call to the system, counted from 1; only those that name a file of the run, unless ``everywhere``."""
    count, prefix = 0, str(base)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in CALLS or (not everywhere and not (args and str(args[0]).startswith(prefix))):
            return
        if not everywhere and event == "sqlite3.connect":
            return  # the disk's errors reach SQLite by another way
        count += 1
        if count == number:
            act(None)

    sys.addaudithook(hook)


def _in_process(family: str, number: int, tell: Callable[[], None], *, itself: bool) -> None:
    """SIGKILL a step or a server (``itself``), or its runner, a moment after it was recorded: it has begun its work."""
    from runq_journal.journal import Journal

    append, count = Journal.append, 0

    def strike(pid: int) -> None:
        tell()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def appended(self: Journal, event: Any, **kwargs: Any) -> Any:
        nonlocal count
        stored = append(self, event, **kwargs)
        if event.kind == f"{family}.spawned":
            count += 1
            if count == number:
                threading.Timer(BEGUN_S, strike, (event.pid if itself else os.getpid(),)).start()
        return stored

    Journal.append = appended  # type: ignore[method-assign]


def _refuse_files(base: Path, number: int) -> None:
    """From here on no file below the folder is opened for writing, and nothing is synchronised."""
    prefix = str(base)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        writes = event == "os.mkdir" or (event == "open" and isinstance(args[2], int) and args[2] & 3 != os.O_RDONLY)
        if writes and str(args[0]).startswith(prefix):
            raise OSError(number, os.strerror(number), args[0])

    sys.addaudithook(hook)


def _refuse_one_append(journal: Any) -> None:
    """The kernel refuses what SQLite writes next (RLIMIT_FSIZE, EFBIG): SQLite calls it a disk I/O error."""
    transaction = journal._transaction

    @contextlib.contextmanager
    def refused(doing: str) -> Iterator[None]:
        del journal._transaction  # the next one is the journal's own again
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        try:
            with transaction(doing):
                yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    journal._transaction = refused


def _shift_wall_clock(seconds: float) -> None:
    """The wall clock says from now on so many seconds more or less; the monotonic one goes on as it went."""
    import runq.night
    import runq.night_context
    import runq_journal.journal

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(seconds=seconds)

    for module in (runq.night, runq.night_context, runq_journal.journal):
        module.datetime = Shifted  # type: ignore[attr-defined]


def _shift_suspend_clock(seconds: float) -> None:
    """The machine slept for so many seconds: CLOCK_BOOTTIME ran on, and no other clock."""
    real, always = time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", None)
    time.clock_gettime = lambda clock: real(clock) + (seconds if clock == always else 0.0)
