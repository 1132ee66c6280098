"""Asking the runner of a journal for something."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from runq.control.desk import ANSWER_S
from runq.control.wire import Ask, What, WireError, ask_line, parse_answer, read_line
from runq.locks import Holder, holder_of, journal_lock_path
from runq_schemas.errors import RunqError

CONNECT_S = 2.0


class NoRunnerError(RunqError):
    """Nobody is there to be asked (exit 1)."""


def ask_runner(journal: Path, what: What) -> dict[str, Any]:
    """Ask the runner of a journal. Returns its answer, ``pid`` included.

    Raises:
        NoRunnerError: no night runs, its runner cannot be asked, or it does not answer.
        RunqError: it refuses.
    """
    holder = runner(journal)
    if not holder.control or not hasattr(socket, "AF_UNIX"):
        raise NoRunnerError(
            f"the runner (pid {holder.pid}) has no socket to be asked over",
            remedy=f"end it with `kill {holder.pid}`; a check, or a night that starts just now, has none",
        )
    _refuse_stopped(holder)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(CONNECT_S)
            connection.connect(holder.control)
            connection.sendall(ask_line(Ask(what=what, by=_name())))
            answer = parse_answer(read_line(connection, ANSWER_S + CONNECT_S))
    except (OSError, WireError) as error:
        raise _silent(holder, error) from error
    if not answer["ok"]:
        raise RunqError(str(answer.get("message") or "the runner refuses"), remedy=str(answer.get("remedy") or ""))
    return {"pid": holder.pid, **answer}


def runner(journal: Path) -> Holder:
    """The living process that holds a journal's lock.

    Raises:
        NoRunnerError: there is none.
    """
    holder = holder_of(journal_lock_path(journal))
    if holder is None:
        raise NoRunnerError(
            f"no night runs with the journal {journal}",
            remedy="`runq status` shows the latest one; give another folder with --runs DIR",
        )
    return holder


def wait_for_end(holder: Holder, seconds: float) -> bool:
    """Wait for a runner to end. Returns whether it has."""
    end = time.monotonic() + seconds
    while holder.alive():
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def _refuse_stopped(holder: Holder) -> None:
    """Do not wait for an answer that cannot come.

    Raises:
        NoRunnerError: the runner is stopped.
    """
    import psutil

    stopped = False
    with contextlib.suppress(psutil.Error):
        stopped = psutil.Process(holder.pid).status() == psutil.STATUS_STOPPED
    if stopped:
        raise NoRunnerError(
            f"the runner (pid {holder.pid}) is stopped, by Ctrl-Z or SIGSTOP, and cannot answer",
            remedy=f"let it go on with `fg` in its terminal, or with `kill -CONT {holder.pid}`",
        )


def _silent(holder: Holder, error: Exception) -> NoRunnerError:
    if not holder.alive():
        return NoRunnerError("the runner has just ended", remedy="`runq status` shows how")
    why = "it gave no answer in time" if isinstance(error, TimeoutError) else str(error)
    return NoRunnerError(
        f"the runner (pid {holder.pid}) does not answer: {why}",
        remedy=f"try once more, or end it with `kill {holder.pid}`: that stops it in the same way",
    )


def _name() -> str:
    """Who asks, in words for the journal: the user, and the terminal where there is one."""
    import getpass

    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # no name for this uid, as in a container
        user = f"uid {os.getuid()}" if hasattr(os, "getuid") else "somebody"
    try:
        return f"{user} ({os.ttyname(sys.stdin.fileno()).removeprefix('/dev/')})"
    except (OSError, ValueError, AttributeError):
        return user
