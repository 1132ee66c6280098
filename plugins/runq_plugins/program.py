"""One short program with a limit that holds, its output kept.

Output goes to temporary files: a grandchild that outlives the program can hold a pipe open, and whoever reads the
pipe then waits for the grandchild (the Python documentation of `subprocess.Popen.communicate` tells to call it again
after the kill; that call waits just so). Standard input is /dev/null: `lms unload` asks questions.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

import attrs
import psutil

GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL, and again between SIGKILL and giving up waiting."""

OUTPUT_LIMIT_BYTES = 2**20
"""The end of each stream that is kept."""

TICK_S = 0.1
"""How often an interrupted night is noticed while a program runs, in seconds."""


@attrs.frozen(kw_only=True)
class ProgramResult:
    """How a program ended. ``exit_code`` is ``None`` when a signal ended it; ``signal`` is that signal's name."""

    exit_code: int | None
    signal: str | None
    stdout: str
    stderr: str
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out

    def tail(self, chars: int = 400) -> str:
        """The end of what it said, of stderr where that is not empty."""
        return " ".join((self.stderr.strip() or self.stdout.strip()).split())[-chars:]


class CannotStart(Exception):
    """The program does not exist or cannot be executed; the message names it and says why."""


def run_bounded(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str],
    cwd: Path | None = None,
    sleep: Callable[[float], None] | None = None,
) -> ProgramResult:
    """Run a program without a shell; at the limit end its whole process group and every descendant.

    A program that ends in time may leave others running: a command that starts a service is a legitimate reset.

    Args:
        argv: the program (looked up on the ``PATH`` of ``env``) and its arguments.
        timeout_s: seconds it may take; it returns at most about 4 s later.
        env: its whole environment.
        cwd: its working directory.
        sleep: called with 0 while waiting, so that an interrupted night's exception gets through.

    Raises:
        CannotStart: there is no such program.
    """
    deadline = time.monotonic() + timeout_s
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as error:  # the file it names is the program, or a working directory that is not there
            raise CannotStart(f"{error.filename or argv[0]}: {error.strerror}") from error
        except (ValueError, IndexError) as error:
            raise CannotStart(f"{argv[0]!r}: {error}" if argv else "the command is empty") from error
        timed_out = False
        try:
            while not _ended(process, min(TICK_S, max(0.0, deadline - time.monotonic()))):
                if time.monotonic() >= deadline:
                    timed_out = True
                    _end_tree(process)
                    break
                if sleep is not None:
                    sleep(0.0)
        except BaseException:
            _end_tree(process)
            raise
        code = process.poll()
        return ProgramResult(
            exit_code=code if code is not None and code >= 0 else None,
            signal=_signal_name(-code) if code is not None and code < 0 else None,
            stdout=_read_end(out),
            stderr=_read_end(err),
            timed_out=timed_out,
        )


def _ended(process: subprocess.Popen[bytes], wait_s: float) -> bool:
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end_tree(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, 2 s, SIGKILL to the group and to descendants that left it; never waits without a limit."""
    known: dict[int, psutil.Process] = {}
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(psutil.Error):
            known |= {child.pid: child for child in psutil.Process(process.pid).children(recursive=True)}
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)  # its own session, so the group's id is its pid
        for child in known.values():
            with contextlib.suppress(psutil.Error):
                child.send_signal(number)  # psutil compares the creation time first: a reused pid is spared
        deadline = time.monotonic() + GRACE_S
        _ended(process, GRACE_S)
        _, alive = psutil.wait_procs(list(known.values()), timeout=max(0.0, deadline - time.monotonic()))
        if not alive and process.poll() is not None and number == signal.SIGKILL:
            return


def _read_end(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - OUTPUT_LIMIT_BYTES))
    return stream.read(OUTPUT_LIMIT_BYTES).decode("utf-8", "replace")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # pragma: no cover - a real-time signal
        return f"signal {number}"
