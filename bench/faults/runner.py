"""runq's command line in a process of its own, forked from one that has imported it already.

It is the program that a user starts, from `runq.cli.main` on. Only the start of the interpreter is left out, which
takes longer than all the rest of a small night.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from bench.faults.inject import inject
from bench.faults.scenario import Fault

PLUGINS = Path(__file__).parent / "plugins"

PRELOADED = (
    "runq.cli",
    "runq.commands.night",
    "runq.commands.status",
    "runq.commands.stop",
    "runq.commands.pause",
    "runq.commands.unpause",
    "runq.commands.skip",
    "runq.night",
    "runq.processes",
    "runq.progress",
    "runq.control.address",
    "runq.control.serving",
    "runq.opening",
    "runq.replay",
    "runq.servers",
    "runq.summary",
    "runq_journal.journal",
    "runq_journal.migrations",
    "runq_journal.reader",
    "runq_schemas.events",
    "runq_schemas.parse",
    "runq_plugins.harness.command",
    "runq_plugins.probe.system",
    "runq_plugins.reset.command",
    "runq_plugins.reset.none",
    "runq_plugins.reset.server",
    "platformdirs",
    "filelock",
    "strictyaml",
)
"""What a night imports; whatever is missing here is imported by each runner for itself."""


def preload() -> None:
    """Import once what every runner needs, and let the campaign's plugins be found."""
    import importlib

    for module in PRELOADED:
        importlib.import_module(module)
    sys.path.insert(0, str(PLUGINS))
    importlib.invalidate_caches()


TELL_S = 50.0
"""After so long a runner that hangs tells where."""


@attrs.define(kw_only=True)
class Runner:
    """A command that runs. ``code`` is its exit code, negative for a signal; ``None`` while it runs."""

    pid: int
    started_s: float
    out: Path
    fired: Path
    code: int | None = None
    stopped: bool = False

    @property
    def hit(self) -> bool:
        """Whether the fault inside it happened."""
        return self.fired.exists()

    @property
    def said(self) -> str:
        """What it printed on both streams; nothing where it was ended before it could open them."""
        return self.out.read_text(encoding="utf-8", errors="replace") if self.out.exists() else ""

    def poll(self) -> int | None:
        """Look whether it has ended, or was stopped."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                self.stopped = True
            elif pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def send(self, number: int) -> None:
        """A signal, as long as it runs: until it is waited for, its pid is its own."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def age_s(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.started_s


def start(words: Sequence[str], *, base: Path, env: Mapping[str, str], out: Path, fault: Fault | None = None) -> Runner:
    """Start `runq WORDS` in the folder ``base``, with a fault inside it."""
    fired = out.with_suffix(".fired")
    sys.stdout.flush()
    sys.stderr.flush()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _become(words, base, env, out, fault or Fault(kind="none"), fired.touch)
    return Runner(pid=pid, started_s=started, out=out, fired=fired)


def _become(
    words: Sequence[str], base: Path, env: Mapping[str, str], out: Path, fault: Fault, tell: Callable[[], None]
) -> None:
    """The child's life: it never returns."""
    code = 70
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
        os.chdir(base)
        os.environ.clear()
        os.environ.update(env)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        log = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for fd, target in ((nowhere, 0), (log, 1), (log, 2)):
            os.dup2(fd, target)
        faulthandler.dump_traceback_later(TELL_S, file=log)
        inject(fault, base, tell)
        code = _run(words)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _run(words: Sequence[str]) -> int:
    from runq.cli import main

    try:
        main(list(words))
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(bool(error.code))
    return 0
