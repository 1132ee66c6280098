"""Stand-ins for what a night hands to a plugin: an entry, a clock, a supervisor."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from runq.plugin import Entry, ModelSpec, ResetContext, Supervisor


@attrs.define
class FakeClock:
    """A clock that only `sleep` moves, so that a test of minutes takes none.

    Args:
        now_s: the monotonic time.
        slept: every duration that was slept, in order, zeros left out (they only ask for an interruption).
    """

    now_s: float = 1000.0
    slept: list[float] = attrs.field(factory=list)

    def __call__(self) -> float:
        """The time now, in seconds."""
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        if seconds:
            self.slept.append(seconds)
            self.now_s += seconds


@attrs.define
class FakeServer:
    """A server that lives until its supervisor stops it, or for so many questions as ``lives`` says."""

    pid: int
    model: str
    lives: int | None = None
    lines: tuple[str, ...] = ()
    stopped: bool = False

    def running(self) -> bool:
        """Whether it has not ended; each question costs one of its lives."""
        if self.lives is not None:
            self.lives -= 1
        return not self.stopped and (self.lives is None or self.lives >= 0)

    def log_tail(self) -> Sequence[str]:
        """The lines it was given."""
        return self.lines


@attrs.define
class FakeSupervisor:
    """Starts nothing and remembers what it was asked to start.

    Args:
        started: argv, model and environment of each start.
        survivors: the pids that `stop_all` is to say it could not end.
        make: makes the server of a start; by default one that lives until it is stopped.
    """

    started: list[tuple[tuple[str, ...], str, Mapping[str, str]]] = attrs.field(factory=list)
    survivors: tuple[int, ...] = ()
    make: Callable[[int, str], FakeServer] = FakeServer
    _servers: list[FakeServer] = attrs.field(factory=list, init=False)

    def start(self, argv: Sequence[str], *, model: str, env: Mapping[str, str] | None = None) -> FakeServer:
        """Remember the start."""
        self.started.append((tuple(argv), model, dict(env or {})))
        server = self.make(1_000_000 + len(self.started), model)
        self._servers.append(server)
        return server

    def servers(self) -> Sequence[FakeServer]:
        """The servers not yet stopped."""
        return tuple(self._servers)

    def stop_all(self) -> Sequence[int]:
        """Stop every server; the survivors it was given stay."""
        for server in self._servers:
            server.stopped = True
        self._servers.clear()
        return self.survivors


def make_entry(base_dir: Path, **changes: Any) -> Entry:
    """An entry with model ``test-model`` and no files; ``changes`` replaces fields."""
    fields: dict[str, Any] = {
        "id": 0,
        "model": ModelSpec(id="test-model"),
        "config": None,
        "pack": None,
        "judge_config": None,
        "judge_model": None,
        "base_dir": base_dir,
    }
    return Entry(**(fields | changes))


def make_context(
    base_dir: Path,
    *,
    entry: Entry | None = None,
    supervisor: Supervisor | None = None,
    clock: FakeClock | None = None,
    env: Mapping[str, str] | None = None,
) -> ResetContext:
    """A reset context with a fake clock; ``env`` is the process's own where none is given."""
    time = FakeClock() if clock is None else clock
    return ResetContext(
        entry=make_entry(base_dir) if entry is None else entry,
        supervisor=FakeSupervisor() if supervisor is None else supervisor,
        sleep=time.sleep,
        clock=time,
        env=dict(os.environ) if env is None else env,
    )
