"""The process table: who is there, whose child, since when; and a signal that cannot hit the wrong process.

Everything the system knows about processes is asked here, once for Linux (one file a process, exact start
times) and once for the rest (psutil).
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import attrs
import psutil

MARK_VARIABLE = "RUNQ_STEP"
"""The environment variable that says to which step or server a process belongs."""

Ident = tuple[int, float]
"""A process beyond doubt: its pid and its start, which no other process of this boot shares."""

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
"""Clock ticks per second, the unit of a start in ``/proc`` (proc_pid_stat(5), starttime)."""

SIGKILL: int = getattr(signal, "SIGKILL", signal.SIGTERM)
SIGCONT: int | None = getattr(signal, "SIGCONT", None)


@attrs.frozen
class Row:
    """One process.

    Args:
        pid: its id.
        ppid: its parent's id.
        group: its process group; 0 when unknown.
        session: its session; 0 when unknown.
        started: its start in the table's own unit; only good for comparing rows of one table.
        zombie: it has ended and waits to be reaped. A zombie is dead.
        stopped: a job control signal stopped it, so that a SIGTERM waits for a SIGCONT.
    """

    pid: int
    ppid: int
    group: int
    session: int
    started: float
    zombie: bool
    stopped: bool

    @property
    def ident(self) -> Ident:
        """Its pid and start."""
        return (self.pid, self.started)


class ProcessTable(Protocol):
    """The process table of one platform."""

    def rows(self) -> dict[int, Row]:
        """Every process that can be seen, by pid."""
        ...

    def row(self, pid: int) -> Row | None:
        """One process; ``None`` when it is gone or cannot be seen."""
        ...

    def created_at(self, row: Row) -> float:
        """Its creation in seconds since the epoch, the same as psutil's ``create_time``."""
        ...

    def mark(self, pid: int) -> str | None:
        """The process's `MARK_VARIABLE`; ``None`` without one, or where it is not ours to read."""
        ...

    def send(self, row: Row, number: int) -> bool:
        """Send a signal to exactly this process. Returns whether it was still there.

        Raises:
            PermissionError: it may not be signalled by this user.
        """
        ...


class ProcfsTable:
    """Linux, read from ``/proc`` (proc_pid_stat(5)): about 15 microseconds a process."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = str(proc)

    def rows(self) -> dict[int, Row]:
        """See `ProcessTable`."""
        names = os.listdir(self._proc)  # noqa: PTH208 (speed)
        found = (self.row(int(name)) for name in names if name.isdecimal())
        return {row.pid: row for row in found if row is not None}

    def row(self, pid: int) -> Row | None:
        """See `ProcessTable`."""
        data = self._read(f"{pid}/stat")
        if not data:
            return None
        # The name stands in parentheses and may hold any byte, so the fields are counted from the last ")".
        fields = data[data.rindex(b")") + 2 :].split()
        state = fields[0]
        return Row(
            pid=pid,
            ppid=int(fields[1]),
            group=int(fields[2]),
            session=int(fields[3]),
            started=float(fields[19]),
            # A main thread may end before its process does: that reads Z too, with the living threads
            # counted.
            zombie=state in b"ZX" and int(fields[17]) <= 1,
            stopped=state == b"T",
        )

    def created_at(self, row: Row) -> float:
        """See `ProcessTable`. psutil would read the process's files again."""
        return row.started / _CLOCK_TICKS + psutil.boot_time()

    def mark(self, pid: int) -> str | None:
        """See `ProcessTable`."""
        data = self._read(f"{pid}/environ", own_only=True)
        _, found, rest = (b"\0" + data).partition(b"\0" + MARK_VARIABLE.encode() + b"=")
        return rest.split(b"\0", 1)[0].decode("utf-8", "replace") if found else None

    def send(self, row: Row, number: int) -> bool:
        """See `ProcessTable`. A pidfd holds the process while its start is compared: nothing slips between."""
        try:
            fd = os.pidfd_open(row.pid)
        except ProcessLookupError:
            return False
        except OSError:  # Linux before 5.3, or a sandbox that forbids the call
            return _send_checked(row, number, self)
        try:
            now = self.row(row.pid)
            if now is None or now.ident != row.ident:
                return False
            signal.pidfd_send_signal(fd, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(fd)
        return True

    def _read(self, name: str, *, own_only: bool = False) -> bytes:
        """A file of ``/proc``; empty when its process is gone. Other failures, such as EMFILE, are raised."""
        try:
            with open(f"{self._proc}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 (speed)
                if own_only and os.fstat(file.fileno()).st_uid != os.geteuid():
                    return b""
                return file.read()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return b""


class PsutilTable:
    """Any other platform, through psutil."""

    def rows(self) -> dict[int, Row]:
        """See `ProcessTable`."""
        found = (self.row(pid) for pid in psutil.pids())
        return {row.pid: row for row in found if row is not None}

    def row(self, pid: int) -> Row | None:
        """See `ProcessTable`."""
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                status = process.status()
                return Row(
                    pid=pid,
                    ppid=process.ppid(),
                    group=_asked("getpgid", pid),
                    session=_asked("getsid", pid),
                    started=process.create_time(),
                    zombie=status in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD},
                    stopped=status == psutil.STATUS_STOPPED,
                )
        except (psutil.Error, OSError):
            return None

    def created_at(self, row: Row) -> float:
        """See `ProcessTable`."""
        return row.started

    def mark(self, pid: int) -> str | None:
        """See `ProcessTable`."""
        try:
            process = psutil.Process(pid)
            if hasattr(os, "geteuid") and process.uids().effective != os.geteuid():
                return None
            return process.environ().get(MARK_VARIABLE)
        except (psutil.Error, OSError):
            return None

    def send(self, row: Row, number: int) -> bool:
        """See `ProcessTable`."""
        return _send_checked(row, number, self)


def system_table() -> ProcessTable:
    """The table of the platform this runs on."""
    return ProcfsTable() if sys.platform.startswith("linux") else PsutilTable()


def _asked(call: str, pid: int) -> int:
    """``os.getsid`` and its like: 0 where the call is unknown or the process gone."""
    ask = getattr(os, call, None)
    with suppress(OSError):
        return int(ask(pid)) if ask is not None else 0
    return 0


def _send_checked(row: Row, number: int, table: ProcessTable) -> bool:
    """Signal by psutil, which compares pid and creation time again just before."""
    try:
        process = psutil.Process(row.pid)
        now = table.row(row.pid)
        if now is None or now.ident != row.ident:
            return False
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied as error:
        raise PermissionError(str(error)) from error
    return True
