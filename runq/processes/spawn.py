"""Starting a process in a session of its own, both streams to a log file that it writes itself."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from runq.processes.subreaper import is_subreaper
from runq.processes.table import MARK_VARIABLE, Ident, ProcessTable, system_table
from runq_schemas.errors import RunqError


class SpawnError(RunqError):
    """A program could not be started."""


class ExitStatus(NamedTuple):
    """How a process ended: an exit code, or the name of the signal that ended it (``SIGKILL``)."""

    exit_code: int | None
    signal: str | None


class Child:
    """A process that we spawned and that only we may reap.

    Args:
        popen: the process.
        mark: its `MARK_VARIABLE`; empty without one.
        created_at: its creation in seconds since the epoch, as psutil tells it.
        ident: its pid and start in the process table.
        adopting: whether its orphans come to us (we were a subreaper before it started).
    """

    def __init__(
        self, popen: subprocess.Popen[bytes], *, mark: str, created_at: float, ident: Ident, adopting: bool
    ) -> None:
        self._popen = popen
        self.mark = mark
        self.created_at = created_at
        self.ident = ident
        self.adopting = adopting

    def __repr__(self) -> str:
        return f"<Child {self.pid} {self.mark!r}>"

    @property
    def pid(self) -> int:
        """The process id."""
        return self._popen.pid

    def poll(self) -> ExitStatus | None:
        """How it ended, reaping it; ``None`` while it runs. Never waits."""
        code = self._popen.poll()
        if code is None:
            return None
        return ExitStatus(code, None) if code >= 0 else ExitStatus(None, _signal_name(-code))

    def status(self) -> ExitStatus:
        """How it ended; both fields ``None`` while it runs (or cannot be ended)."""
        return self.poll() or ExitStatus(None, None)

    @property
    def reaped(self) -> bool:
        """Whether its end has been collected, so that its pid may belong to another by now."""
        return self._popen.returncode is not None


# Which of our children belong to a Child object is a fact of the whole process, as the process table is.
# Whoever reaps one of these behind Popen's back makes it report exit code 0.
_children: weakref.WeakValueDictionary[int, Child] = weakref.WeakValueDictionary()


def is_own_child(pid: int) -> bool:
    """Whether the pid is that of a `Child` not yet reaped, which nobody else may reap."""
    child = _children.get(pid)
    return child is not None and not child.reaped


def step_mark(journal_uuid: str, night: str, entry: int, step_or_server: str, attempt: int) -> str:
    """The value of `MARK_VARIABLE`: names a process's origin, so that an orphan is known after a crash."""
    return f"{journal_uuid}/{night}/{entry}/{step_or_server}/{attempt}"


def helper_mark(journal_uuid: str, night: str, event: int) -> str:
    """The value of `MARK_VARIABLE` for what a reset or a restart runs, named by the number of its event.

    No step's mark begins so. What such a command leaves running when it ends is a service, and outlives the night; only
    one that was still at work when its runner died is an orphan.
    """
    return f"{journal_uuid}/helper/{night}/{event}"


def spawn(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log_path: Path,
    table: ProcessTable | None = None,
) -> Child:
    """Start a program; no shell, no input, no open file of ours but its log.

    The log is handed to the child itself: a pipe would stay open as long as any grandchild holds it, and a
    runner that reads it would wait for that one. The session is new, so that a closed terminal and Ctrl-C
    reach the runner only. There is no ``preexec_fn``: it is unsafe beside threads and costs 2.5 times as
    much.

    Args:
        argv: the program and its arguments.
        cwd: its working directory.
        env: its whole environment, `MARK_VARIABLE` included.
        log_path: the log; created for its owner only, appended to if it exists.
        table: the process table; the system's own by default.

    Raises:
        SpawnError: it could not be started; nothing was.
    """
    where = argv[0] if argv else ""
    try:
        log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)
    except (OSError, ValueError) as error:
        raise SpawnError(
            f"the log {log_path} cannot be written: {_reason(error)}",
            where=where,
            remedy="Make its folder writable and free some space.",
        ) from error
    try:
        adopting = is_subreaper()
        popen = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            close_fds=True,
            start_new_session=True,
        )
    except (OSError, ValueError, TypeError, IndexError, subprocess.SubprocessError) as error:
        raise _spawn_error(error, argv, cwd) from error
    finally:
        os.close(log)
    processes = table or system_table()
    row = processes.row(popen.pid)
    child = Child(
        popen,
        mark=env.get(MARK_VARIABLE, ""),
        created_at=processes.created_at(row) if row else time.time(),
        ident=(popen.pid, row.started if row else 0.0),
        adopting=adopting,
    )
    _children[popen.pid] = child
    return child


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name of their own
        return f"SIG{number}"


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _spawn_error(error: Exception, argv: Sequence[str], cwd: Path) -> SpawnError:
    """What went wrong in the user's words; the cases are those of execve(2) and of Popen's own checks."""
    program = str(argv[0]) if argv else ""
    number = error.errno if isinstance(error, OSError) else None
    if not argv:
        message, remedy = "the command line is empty", "Name a program."
    elif not cwd.is_dir():
        message, remedy = f"the working directory {cwd} is not there", "Create it, or name another."
    elif isinstance(error, OSError) and str(error.filename) == str(cwd):
        message = f"the working directory {cwd} cannot be entered: {_reason(error)}"
        remedy = "Correct its permissions, or name another."
    elif number == errno.ENOENT and (cwd / program).exists():
        message = f"{program} names an interpreter in its first line that is not there"
        remedy = "Install the interpreter, or correct the #! line."
    elif number == errno.ENOENT:
        message = f"there is no program {program!r}"
        remedy = "Install it, correct its name, or add its folder to PATH (cron gives a short one)."
    elif number in {errno.EACCES, errno.EPERM}:
        message, remedy = f"{program} may not be executed", f"Try: chmod +x {program}"
    elif number == errno.ENOEXEC:
        message = f"{program} is not a program this machine can run"
        remedy = "A script needs a first line such as #!/bin/sh; a program must be built for this machine."
    elif number == errno.E2BIG:
        message = "the argument list and the environment are too long together"
        remedy = "Shorten the arguments, or put them into a file."
    elif number in {errno.EAGAIN, errno.ENOMEM}:
        message = f"the system has no room for another process: {_reason(error)}"
        remedy = "End other programs, or raise the limits (ulimit -u)."
    elif isinstance(error, ValueError):
        message = f"an argument or a variable cannot be passed on: {_reason(error)}"
        remedy = "Remove the NUL byte, or the '=' in the variable's name."
    else:
        message, remedy = f"{program} could not be started: {_reason(error)}", "Start it by hand to see more."
    return SpawnError(message, where=program, remedy=remedy)
