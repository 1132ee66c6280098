"""Keeping the machine awake while a night runs, by the first way that this machine has.

Whatever holds it ends with the runner, however that ends: a D-Bus connection is closed by the system, and the helper
programs wait for the end of a pipe, or of this process.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import attrs

from runq_schemas.events import NightKeptAwake

if TYPE_CHECKING:
    from runq.record import Recorder

WHY = "a night of evaluations runs"

ANSWER_S = 5.0
"""Seconds a helper program may take until it holds the machine awake; it is one question to the system's bus."""

END_S = 2.0
"""Seconds a helper program may take to end before it is killed; it has nothing to do then."""

_INHIBIT = ("systemd-inhibit", "--what=idle:sleep", "--mode=block", "--who=runq", f"--why={WHY}", "cat")
"""It runs `cat` once it holds the lock (systemd-inhibit(1)), and the lock ends with it."""


class NotHeldError(Exception):
    """A way does not keep this machine awake; its text says why."""


@attrs.frozen(kw_only=True)
class Hold:
    """The machine is kept awake: by what, and how to end it."""

    how: str
    release: Callable[[], None]


Way = Callable[[], Hold]
"""Takes a hold of the machine, or raises `NotHeldError`."""


def ways(system: str = sys.platform) -> Mapping[str, Way]:
    """The ways to try on a system, by name, the best first."""
    found: dict[str, Way] = {"wakepy": by_wakepy}
    if system.startswith("linux"):
        found["systemd-inhibit"] = by_systemd_inhibit
    elif system == "darwin":
        found["caffeinate"] = by_caffeinate
    return found


def by_wakepy() -> Hold:
    """By the desktop's session, or what else wakepy knows (https://wakepy.readthedocs.io).

    Raises:
        NotHeldError: it did not work, or wakepy was told to pretend (``WAKEPY_FAKE_SUCCESS``).
    """
    try:
        from wakepy import keep

        mode: Any = keep.running(on_fail="pass")
        mode.__enter__()
    except Exception as error:  # whatever it is, the night runs, and another way may do
        raise NotHeldError(f"{type(error).__name__}: {error}") from error
    if not mode.result.real_success:
        mode.__exit__(None, None, None)
        raise NotHeldError("no desktop session does it")
    return Hold(how=f"wakepy ({mode.method.name})", release=lambda: mode.__exit__(None, None, None))


def by_systemd_inhibit() -> Hold:
    """By an inhibitor lock of systemd-logind, as over SSH, where there is no session bus.

    Raises:
        NotHeldError: there is no such program, or logind does not give the lock.
    """
    helper = _start(_INHIBIT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pipes: Any = helper  # whose type cannot tell that both are there
    try:
        # `cat` runs only under the lock: what comes back through it proves the lock.
        with suppress(BrokenPipeError):
            pipes.stdin.write(b"\n")
            pipes.stdin.flush()
        answered = bool(select.select([pipes.stdout], [], [], ANSWER_S)[0]) and pipes.stdout.read(1) == b"\n"
    except BaseException:
        _end(helper)
        raise
    if not answered:
        raise NotHeldError(_end(helper) or f"no answer within {ANSWER_S:g} s")
    return Hold(how="systemd-inhibit", release=lambda: _forget(_end(helper)))


def by_caffeinate() -> Hold:
    """By macOS's `caffeinate`, which ends itself with this process (caffeinate(8)).

    Raises:
        NotHeldError: there is no such program, or it ended at once.
    """
    helper = _start(("caffeinate", "-i", "-w", str(os.getpid())))
    with suppress(subprocess.TimeoutExpired):
        helper.wait(0.2)
        raise NotHeldError(_end(helper) or "it ended at once")
    return Hold(how="caffeinate", release=lambda: _forget(_end(helper)))


def _start(
    argv: Sequence[str], *, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    try:
        # In a session of its own: Ctrl-C and Ctrl-Z are for the runner, which is awake until it has ended its steps.
        return subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise NotHeldError(error.strerror or str(error)) from error


def _end(helper: subprocess.Popen[bytes]) -> str:
    """End a helper. Returns the last line of what it complained about."""
    if helper.stdin is None:
        helper.terminate()
    else:
        with suppress(BrokenPipeError):
            helper.stdin.close()
    try:
        helper.wait(END_S)
    except subprocess.TimeoutExpired:
        helper.kill()
        helper.wait()
    said = helper.stderr.read() if helper.stderr is not None else b""
    for pipe in (helper.stdout, helper.stderr):
        if pipe is not None:
            pipe.close()
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].rstrip(".") if lines else ""


def _forget(_: str) -> None:
    return None


def held_by(tried: Mapping[str, Way] | None = None) -> tuple[Hold | None, str]:
    """Take the first hold that works. Returns it, and otherwise why none does."""
    failures = []
    for name, way in (ways() if tried is None else tried).items():
        try:
            return way(), ""
        except NotHeldError as error:
            failures.append(f"{name}: {error}")
    return None, "; ".join(failures)


@contextmanager
def keeping_awake(recorder: Recorder, tried: Mapping[str, Way] | None = None) -> Iterator[None]:
    """Keep the machine awake until the block ends; where nothing can, warn and go on.

    Args:
        recorder: where what holds it, or the warning, goes.
        tried: the ways to try, by name; by default those of this system.
    """
    hold, why_not = held_by(tried)
    try:
        if hold is not None:
            recorder.event(NightKeptAwake(how=hold.how))
        else:
            recorder.warn(
                f"nothing keeps this machine awake ({why_not})",
                "see that it does not fall asleep by itself (`runq doctor` looks); where it never does,"
                " --no-keep-awake or RUNQ_KEEP_AWAKE=0 spares this warning",
            )
        yield
    finally:
        if hold is not None:
            try:
                hold.release()
            except Exception as error:  # the night is over, and what held the machine ends with this process
                recorder.notice(f"{hold.how} could not be ended: {type(error).__name__}: {error}")
