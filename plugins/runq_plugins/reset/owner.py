"""The processes that hold an endpoint's models, and whether they let go.

A server's own list does not prove an eviction: LM Studio can keep the memory of a model it no longer lists
(lmstudio-ai/lmstudio-bug-tracker#1476, #588), Ollama lists nothing while a model loads (Ollama server/sched.go,
`Scheduler.load`). The process is the second, independent reading: gone, or smaller by about the model's size.

The figure is the resident set (RSS): weights mapped from a file are in it, which the system's `used` leaves out on
Linux. Memory on a graphics card is not in it; there only the end of the process proves anything.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import psutil
from urllib3.util import parse_url

MB = 2**20

RELEASED_SHARE = 0.75
"""The part of a model's size that must come back: Ollama's own measure (server/sched.go,
`waitForVRAMRecovery`: "75% of the estimated size")."""


@attrs.frozen(kw_only=True)
class Owner:
    """One process that may hold a model, at one moment.

    Args:
        pid: process id; only together with ``created_at`` does it name a process.
        created_at: seconds since the epoch.
        name: as the system shows it.
        rss_mb: resident set in MB.
        worker: whether it exists only to hold models, so that its end proves their eviction.
    """

    pid: int
    created_at: float
    name: str
    rss_mb: float
    worker: bool

    @property
    def key(self) -> tuple[int, float]:
        """What names the process even when its pid is used again."""
        return self.pid, self.created_at


def is_local(host: str) -> bool:
    """Whether a host name or address is this machine, without asking a name server."""
    bare = host.strip("[]").lower().split("%")[0]
    if bare in ("localhost", socket.gethostname().lower()) or bare.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return True
    return any(
        interface.address.split("%")[0] == str(address)
        for addresses in psutil.net_if_addrs().values()
        for interface in addresses
    )


def listener(port: int) -> psutil.Process | None:
    """The process that listens on a TCP port of this machine; ``None`` when it cannot be seen."""
    for pid in _listening_pids(port):
        with contextlib.suppress(psutil.Error):
            return psutil.Process(pid)
    return None


def _listening_pids(port: int) -> Iterable[int]:
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:  # macOS lets only root ask for the whole system
        yield from _listening_pids_one_by_one(port)
        return
    for connection in connections:
        if _listens(connection.status, connection.laddr, port) and connection.pid:
            yield connection.pid


def _listening_pids_one_by_one(port: int) -> Iterable[int]:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            for connection in process.net_connections(kind="tcp"):
                if _listens(connection.status, connection.laddr, port):
                    yield process.pid


def _listens(status: str, address: Any, port: int) -> bool:
    """Whether a connection is a listening socket on the port; one without an address is none."""
    return status == psutil.CONN_LISTEN and bool(address) and int(address.port) == port


def listener_of(url: str) -> psutil.Process | None:
    """The process that listens at a URL of this machine; ``None`` for another machine's, or when it cannot be seen."""
    parts = parse_url(url)
    if not is_local(parts.host or ""):
        return None
    return listener(parts.port or (443 if parts.scheme == "https" else 80))


def children_of_listener(url: str, markers: Sequence[str]) -> Sequence[Owner] | None:
    """Every descendant of the server at a URL, each taken to exist only to hold models.

    ``None`` when what listens there bears none of the markers (a tunnel, a container's proxy) or cannot be seen.
    """
    server = listener_of(url)
    if server is None or not bears(server, markers):
        return None
    try:
        return snapshot(server.children(recursive=True), lambda _: True)
    except psutil.Error:
        return None


def words_of(process: psutil.Process) -> tuple[str, ...]:
    """The process's name and command line, lower case; empty when it is gone or hidden."""
    try:
        name = process.name()
    except psutil.Error:
        return ()
    try:
        return (name.lower(), *(word.lower() for word in process.cmdline()))
    except psutil.Error:
        return (name.lower(),)


def bears(process: psutil.Process, markers: Sequence[str]) -> bool:
    """Whether the process's name or program contains one of the markers; its arguments do not count."""
    return any(marker in word for word in words_of(process)[:2] for marker in markers)


def family(process: psutil.Process, markers: Sequence[str]) -> tuple[psutil.Process, ...]:
    """The topmost ancestor that bears a marker, and everything below it."""
    top = process
    with contextlib.suppress(psutil.Error):
        while (parent := top.parent()) is not None and bears(parent, markers):
            top = parent
    with contextlib.suppress(psutil.Error):
        return (top, *top.children(recursive=True))
    return ()


def snapshot(processes: Iterable[psutil.Process], worker: Callable[[psutil.Process], bool]) -> tuple[Owner, ...] | None:
    """The processes as they are now, ended ones and zombies left out; ``None`` when one hides its memory."""
    owners: dict[tuple[int, float], Owner] = {}
    for process in processes:
        try:
            with process.oneshot():
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                owner = Owner(
                    pid=process.pid,
                    created_at=process.create_time(),
                    name=process.name(),
                    rss_mb=round(process.memory_info().rss / MB, 1),
                    worker=worker(process),
                )
        except psutil.AccessDenied:
            return None
        except psutil.Error:
            continue
        owners[owner.key] = owner
    return tuple(owners.values())


def escaped(known: Iterable[Owner], seen: Iterable[Owner]) -> Sequence[Owner]:
    """Those of the known processes that still live, but are not among the ones seen.

    A child may leave its server's tree and outlive it (mostlygeek/llama-swap#804, ollama/ollama#5642): the pid with
    its time of creation finds it all the same.
    """
    keys = {owner.key for owner in seen}
    lost = {owner.key: owner for owner in known if owner.key not in keys}
    living: list[psutil.Process] = []
    for pid, _ in lost:
        with contextlib.suppress(psutil.Error):
            living.append(psutil.Process(pid))
    found = snapshot(living, lambda process: any(one.pid == process.pid and one.worker for one in lost.values()))
    return [owner for owner in found or () if owner.key in lost]


@attrs.define
class Evidence:
    """What is known of the owners of one endpoint in the course of one reset.

    Args:
        idle_limit_mb: a process up to this size is taken to hold no model.
        who: the owner in words, for reasons.
    """

    idle_limit_mb: float
    who: str
    _before: dict[tuple[int, float], Owner] = attrs.field(factory=dict, init=False)
    _now: tuple[Owner, ...] | None = attrs.field(default=None, init=False)

    @property
    def before(self) -> Sequence[Owner]:
        """The owners while models were loaded."""
        return tuple(self._before.values())

    def note_before(self, owners: Sequence[Owner] | None) -> None:
        """Remember the owners while models are loaded: each at its largest."""
        for owner in owners or ():
            known = self._before.get(owner.key)
            if known is None or owner.rss_mb > known.rss_mb:
                self._before[owner.key] = owner

    def doubt(self, now: Sequence[Owner] | None, *, evicted: bool, size_mb: float | None) -> str:
        """Why the memory is not proven to be free, in one sentence; nothing when it is.

        Args:
            now: the owners now; ``None`` when they cannot be seen.
            evicted: whether anything was loaded before.
            size_mb: the size of everything that was, ``None`` when unknown.
        """
        self._now = None if now is None else tuple(now)
        if now is None:
            return f"the process of {self.who} cannot be seen from here; only its own list says that nothing is loaded"
        if not evicted:
            return self._holding(now)
        alive = {owner.key for owner in now}
        new = self._holding([owner for owner in now if owner.key not in self._before])
        if new:
            return new
        workers = [owner for owner in self._before.values() if owner.worker]
        if workers and not any(owner.key in alive for owner in workers):
            return ""
        if self._before and not alive & self._before.keys():
            return ""
        if not self._before:
            return f"no process of {self.who} was seen to hold the model"
        if size_mb and self.freed_mb >= RELEASED_SHARE * size_mb:
            return ""
        size = f" of {size_mb:.0f} MB" if size_mb else ""
        freed = f"{self.freed_mb:z.0f} MB{size}"
        return f"{self.who} lists nothing, but its processes are still there and gave back {freed}"

    def _holding(self, owners: Sequence[Owner]) -> str:
        heavy = [owner for owner in owners if owner.rss_mb > self.idle_limit_mb]
        if not heavy:
            return ""
        shown = ", ".join(f"{owner.name} (pid {owner.pid}, {owner.rss_mb:.0f} MB)" for owner in heavy[:3])
        return f"{self.who} lists nothing, but {shown} is still there: a model is loading, or its memory was kept"

    @property
    def freed_mb(self) -> float:
        """What the owners hold less than they did before, in MB."""
        return sum(owner.rss_mb for owner in self._before.values()) - sum(owner.rss_mb for owner in self._now or ())

    def details(self) -> Mapping[str, Any]:
        """The figures for the journal."""
        now = self._now
        return {
            "owners_before": [_shown(owner) for owner in self._before.values()],
            "owners_after": None if now is None else [_shown(owner) for owner in now],
        }


def _shown(owner: Owner) -> Mapping[str, Any]:
    return {"pid": owner.pid, "name": owner.name, "rss_mb": owner.rss_mb}
