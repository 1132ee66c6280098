"""What one night hands down to its entries and steps: the journal, the effects, the places."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq import paths
from runq.attention import Attention
from runq.night_disk import NightDisk
from runq.notify.urls import VARIABLE
from runq.pace import Pace
from runq.power import ReadsBattery, battery
from runq.prepared import PreparedEntry
from runq.record import Recorder
from runq.sampling import ReadsMemory, SampleBatch, Sampler
from runq_schemas.events import RestartStarted

if TYPE_CHECKING:
    from runq.processes import Child, Ended, Stopper, Tree
    from runq.servers import NightServers

GRACE_S = 10.0
"""Seconds between SIGTERM and SIGKILL."""


def utc_now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)


def step_environ() -> dict[str, str]:
    """What steps and helpers inherit of the runner's environment: all but the URLs of notifications.

    They are passwords of the user's, no step needs them, and one that prints its environment would write them down.
    """
    return {name: value for name, value in os.environ.items() if name != VARIABLE}


@attrs.define(kw_only=True)
class NightContext:
    """The effects of a night, injected so that tests can play them."""

    recorder: Recorder
    interrupts: Stopper
    clock: Callable[[], float]
    boot_id: str
    runs: Path
    environ: Mapping[str, str] = attrs.field(factory=step_environ, repr=False)
    grace_s: float = GRACE_S
    mark: str = ""
    """Stands behind the names of logs and new bundles; on a cluster a machine that was lost may have used the same."""
    pace: Pace = attrs.field(factory=Pace)
    battery: ReadsBattery = battery
    warned_blind: set[tuple[int, str]] = attrs.field(factory=set, init=False)
    warned_refused: set[tuple[int, str]] = attrs.field(factory=set, init=False)
    restarted: set[int] = attrs.field(factory=set, init=False)
    servers: NightServers = attrs.field(init=False)
    samples: SampleBatch = attrs.field(init=False)
    attention: Attention = attrs.field(init=False)
    disk: NightDisk = attrs.field(init=False)

    @attention.default
    def _nothing_noticed_yet(self) -> Attention:
        return Attention(self.recorder, self.interrupts)

    @disk.default
    def _nothing_kept_back_yet(self) -> NightDisk:
        return NightDisk(self.recorder, self.runs)

    @samples.default
    def _no_sample_yet(self) -> SampleBatch:
        return SampleBatch(journal=self.recorder.journal, night=self.recorder.night)

    @servers.default
    def _no_server_yet(self) -> NightServers:
        from runq.servers import NightServers

        return NightServers(self)

    @property
    def queue_dir(self) -> Path:
        """Where this night's summaries and logs are."""
        return paths.queue_dir(self.runs, self.recorder.night)

    def log_path(self, entry: int, step: str, attempt: int) -> Path:
        """The log of an attempt."""
        path = paths.log_path(self.queue_dir, entry, step, attempt)
        return path.with_stem(path.stem + self.mark) if self.mark else path

    def restart_number(self, entry: int) -> int:
        """The number of an entry's next restart, from 1, over all its resumes."""
        with self.recorder.journal.reader() as reader:
            kinds = (RestartStarted.kind,)
            return 1 + sum(1 for _ in reader.events(night=self.recorder.night, entry=entry, kinds=kinds))

    def step_env(self, prepared: PreparedEntry, mark: tuple[int, str, int]) -> dict[str, str]:
        """The runner's environment, the entry's ``env``, and the mark that names the process's origin."""
        from runq.processes import MARK_VARIABLE, step_mark

        uuid = self.recorder.journal.uuid
        return {
            **self.environ,
            **prepared.env,
            MARK_VARIABLE: step_mark(uuid, self.recorder.night, *mark),
        }

    def helper_env(self, prepared: PreparedEntry, event: int) -> dict[str, str]:
        """The environment of what a reset or a restart runs: the same, with a mark by the number of its event."""
        from runq.processes import MARK_VARIABLE, helper_mark

        mark = helper_mark(self.recorder.journal.uuid, self.recorder.night, event)
        return {**self.environ, **prepared.env, MARK_VARIABLE: mark}

    def spawn(self, argv: Sequence[str], prepared: PreparedEntry, *, log: Path, mark: tuple[int, str, int]) -> Child:
        """Start a process in a session of its own, in the base folder, both streams to its log.

        Raises:
            SpawnError: it could not be started.
        """
        from runq.processes import spawn

        return spawn(argv, cwd=prepared.entry.base_dir, env=self.step_env(prepared, mark), log_path=log)

    def end_tree(self, tree: Tree) -> Ended:
        """End a step's whole tree; servers of the reset backend are spared."""
        from runq.processes import end_tree

        if self.interrupts.requested and not self.interrupts.kill_now:
            self.recorder.notice(f"stopping, within {self.grace_s:g} s; Ctrl-C again kills at once")
        return end_tree(
            tree,
            grace_s=self.grace_s,
            kill_now=lambda: self.interrupts.kill_now,
            spare=self.servers.marks(),
        )

    def sampler(self, probes: Mapping[str, ReadsMemory], entry: int, step: str) -> Sampler:
        """A sampler whose readings go to the journal's samples."""
        return Sampler(probes=probes, now=utc_now, keep=self.samples.of(entry, step))
