"""Servers that a reset backend starts: supervised like steps, journalled, ended whatever happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from runq import logs
from runq.paths import private_folder
from runq.plugin import PluginError
from runq.prepared import PreparedEntry
from runq_schemas.events import ServerFinished, ServerSpawned, ServerStarted

if TYPE_CHECKING:
    from pathlib import Path

    from runq.night_context import NightContext
    from runq.processes import Child, Tree


@attrs.define(kw_only=True)
class RunningServer:
    """One server process; implements `runq.plugin.Server`."""

    child: Child
    tree: Tree
    log: Path
    entry: int
    number: int
    model: str
    started_s: float

    @property
    def pid(self) -> int:
        """The process id."""
        return self.child.pid

    def running(self) -> bool:
        """Whether the process has not ended."""
        return self.child.poll() is None

    def log_tail(self) -> Sequence[str]:
        """The last lines of its log."""
        return logs.tail(self.log)


@attrs.define
class NightServers:
    """All servers of a night."""

    context: NightContext
    _running: list[RunningServer] = attrs.field(factory=list, init=False)
    _numbers: dict[int, int] = attrs.field(factory=dict, init=False)

    def marks(self) -> frozenset[str]:
        """The marks of the running servers' processes, which the end of a step spares."""
        return frozenset(server.child.mark for server in self._running)

    def for_entry(self, prepared: PreparedEntry) -> EntrySupervisor:
        """The supervisor handed to the entry's reset backend."""
        return EntrySupervisor(self, prepared)

    def running(self) -> Sequence[RunningServer]:
        """The servers started and not yet stopped."""
        return tuple(self._running)

    def start(self, prepared: PreparedEntry, argv: Sequence[str], model: str, env: Mapping[str, str]) -> RunningServer:
        """Spawn a server for an entry.

        Raises:
            PluginError: it could not be started.
            JournalError: the journal cannot be written; nothing is left running.
        """
        from runq.processes import SpawnError, Tree

        context, entry = self.context, prepared.entry.id
        number = self._next_number(entry)
        log = context.log_path(entry, "server", number)
        private_folder(log.parent)
        where: dict[str, Any] = {"entry": entry, "step": "server", "attempt": number}
        context.recorder.event(ServerStarted(argv=tuple(argv), log=str(log), model=model), **where)
        serving = attrs.evolve(prepared, env={**prepared.env, **env})
        try:
            child = context.spawn(argv, serving, log=log, mark=(entry, "server", number))
        except SpawnError as error:
            context.recorder.event(ServerFinished(stopped=False, reason=error.message, seconds=0.0), **where)
            raise PluginError(error.message, remedy=error.remedy) from error
        server = RunningServer(
            child=child,
            tree=Tree(child),
            log=log,
            entry=entry,
            number=number,
            model=model,
            started_s=context.clock(),
        )
        self._running.append(server)
        context.recorder.event(
            ServerSpawned(pid=child.pid, created_at=child.created_at, boot_id=context.boot_id), **where
        )
        return server

    def observe(self) -> None:
        """Remember the servers' descendants, so that those which re-parent are known at the end."""
        for server in self._running:
            server.tree.observe()

    def stop_all(self) -> list[int]:
        """End every server's tree. Returns the pids that could not be ended.

        Every server is ended before anything is journalled: a journal that cannot be written must not leave one.
        """
        from runq.processes import end_tree

        stopped: list[tuple[RunningServer, bool, tuple[int, ...]]] = []
        while self._running:
            server = self._running[0]
            by_itself = not server.running()
            others = frozenset(other.child.mark for other in self._running[1:])
            ended = end_tree(
                server.tree,
                grace_s=self.context.grace_s,
                kill_now=lambda: self.context.interrupts.kill_now,
                spare=others,
            )
            self._running.pop(0)
            stopped.append((server, by_itself, tuple(ended.survivors)))
        for server, by_itself, survivors in stopped:
            exit_code, signal = server.child.status()
            self.context.recorder.event(
                ServerFinished(
                    stopped=not by_itself,
                    exit_code=exit_code,
                    signal=signal,
                    seconds=round(self.context.clock() - server.started_s, 3),
                    reason="it ended by itself" if by_itself else "",
                    log_tail=tuple(server.log_tail()) if by_itself else (),
                    survivors=survivors,
                ),
                entry=server.entry,
                step="server",
                attempt=server.number,
            )
        return [pid for _, _, survivors in stopped for pid in survivors]

    def _next_number(self, entry: int) -> int:
        if entry not in self._numbers:
            with self.context.recorder.journal.reader() as reader:
                self._numbers[entry] = sum(
                    1
                    for _ in reader.events(night=self.context.recorder.night, entry=entry, kinds=(ServerStarted.kind,))
                )
        self._numbers[entry] += 1
        return self._numbers[entry]


@attrs.frozen
class EntrySupervisor:
    """The `runq.plugin.Supervisor` of one entry."""

    night: NightServers
    prepared: PreparedEntry

    def start(self, argv: Sequence[str], *, model: str, env: Mapping[str, str] | None = None) -> RunningServer:
        """Spawn a server; see `runq.plugin.Supervisor`."""
        from runq.processes import ours

        with ours():
            return self.night.start(self.prepared, tuple(argv), model, env or {})

    def servers(self) -> Sequence[RunningServer]:
        """The servers started and not yet stopped."""
        return self.night.running()

    def stop_all(self) -> Sequence[int]:
        """End every server's whole tree."""
        from runq.processes import ours

        with ours():
            return self.night.stop_all()
