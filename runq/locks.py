"""One night at a time per journal and per endpoint: OS locks, and who holds them."""

from __future__ import annotations

import ipaddress
import json
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

import attrs

from runq.paths import private_folder
from runq_schemas.errors import JournalError, LockedError, UsageError

_LOOPBACK_NAMES = {"localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback"}
_PORTS = {"http": 80, "https": 443}


@attrs.frozen(kw_only=True)
class Holder:
    """Who holds a lock. ``created_at`` is the process's creation time (Unix seconds).

    ``control`` is the path of the socket over which it can be asked; empty where there is none.
    """

    pid: int
    created_at: float
    since: str
    queue: str
    journal: str
    control: str = ""

    def alive(self) -> bool:
        """Whether that very process still runs."""
        import psutil

        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created_at) < 1.0  # clock steps shift it by less than this
            return bool(same and process.status() != psutil.STATUS_ZOMBIE)
        except (psutil.Error, ValueError, TypeError, OverflowError):  # the last three: the record is damaged
            return False


def endpoint_name(url: str) -> str:
    """One name for every spelling of an endpoint: scheme, path and the ways to write loopback fall away."""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        port = _port(parts)
    except ValueError:  # no URL; whoever uses it says so, the lock only needs a name
        return url
    host = (parts.hostname or "").rstrip(".")
    return f"{'loopback' if _is_this_machine(host) else host}:{port}"


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS.get(parts.scheme, 80)


def _is_this_machine(host: str) -> bool:
    """Whether a host is this machine: a spelling of loopback, or the machine's own name."""
    own = platform.node().lower()
    if host in _LOOPBACK_NAMES or host.endswith(".localhost") or (own and host in (own, f"{own}.local")):
        return True
    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None = None
    with suppress(ValueError):
        address = ipaddress.ip_address(host.partition("%")[0])
    if address is None:
        with suppress(
            OSError, ValueError
        ):  # `127.1`, `0x7f000001` and `0` are what browsers and curl take for 127.0.0.1
            import socket

            address = ipaddress.IPv4Address(socket.inet_aton(host))
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address is not None and (address.is_loopback or address.is_unspecified)


def journal_lock_path(journal: Path) -> Path:
    """The lock file beside a journal."""
    return journal.with_name(journal.name + ".lock")


def holder_of(lock: Path) -> Holder | None:
    """Who last took the lock, if that process is alive; ``None`` when nobody holds it."""
    try:
        holder = Holder(**json.loads(_holder_path(lock).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return holder if holder.alive() else None


def tell_control(journal: Path, control: str) -> None:
    """Write into the journal lock's record, which is ours, where we can be asked.

    Raises:
        OSError: it cannot be written; the record stands as it was.
    """
    record = _holder_path(journal_lock_path(journal))
    data = json.loads(record.read_text(encoding="utf-8"))
    part = record.with_name(record.name + ".part")
    part.touch(mode=0o600)
    part.write_text(json.dumps({**data, "control": control}), encoding="utf-8")
    part.replace(record)  # whole or not at all: others read it at any time


def _holder_path(lock: Path) -> Path:
    # Beside the lock, not in it: the lock library truncates the lock file whenever somebody tries to take it.
    return lock.with_name(lock.name + ".holder")


def endpoint_locks_folder() -> Path:
    """Where the locks of endpoints are: the user's, whatever the journal."""
    import platformdirs

    return platformdirs.user_state_path("runq") / "endpoints"


def _endpoint_lock_path(url: str) -> Path:
    # Quoted, so that no two names share a file: a night would wait for itself.
    return endpoint_locks_folder() / (quote(endpoint_name(url), safe="")[:200] + ".lock")


@contextmanager
def night_locks(journal: Path, endpoints: Sequence[str], holder: Holder) -> Iterator[None]:
    """Hold the journal's lock and one per endpoint; the system frees them however the process ends.

    Raises:
        LockedError: another night holds one; says who, since when, with which queue.
    """
    wanted: list[tuple[Path, str]] = [(journal_lock_path(journal), f"the journal {journal}")]
    named = {endpoint_name(url): url for url in endpoints}
    wanted += [(_endpoint_lock_path(url), f"the endpoint {url}") for _, url in sorted(named.items())]
    with ExitStack() as stack:
        for path, what in wanted:
            with _writable(path, journal):
                private_folder(path.parent)
                path.touch(mode=0o600)
            stack.enter_context(_held(path, what, holder, journal))
        yield


@contextmanager
def _writable(lock: Path, journal: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if lock == journal_lock_path(journal):
            raise JournalError(
                f"the journal cannot be written: {error.strerror or error}",
                where=str(journal),
                remedy="make its folder writable and free space there, or give another folder with --runs",
            ) from error
        raise UsageError(
            f"the lock of an endpoint cannot be made: {error.strerror or error}",
            where=str(lock),
            remedy="make that folder writable, or name another one in XDG_STATE_HOME",
        ) from error


@contextmanager
def _held(path: Path, what: str, holder: Holder, journal: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock: Any = FileLock(path, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise _locked(path, what) from None
    record = _holder_path(path)
    try:
        with _writable(path, journal):
            record.touch(mode=0o600)
            record.write_text(json.dumps(attrs.asdict(holder)), encoding="utf-8")
        yield
    finally:
        record.unlink(missing_ok=True)
        lock.release()


def _locked(path: Path, what: str) -> LockedError:
    other = holder_of(path)
    if other is None:
        return LockedError(
            f"{what} is in use by another night",
            remedy="wait for it to end, or end it; `runq status` shows it",
        )
    runs = Path(other.journal).parent
    end = f"`runq stop --runs {runs}`" if other.control else f"`kill {other.pid}`"
    return LockedError(
        f"{what} is in use by another night: pid {other.pid}, since {other.since}, queue {other.queue}",
        remedy=f"wait for it, or end it with {end}; `runq status --runs {runs}`",
    )


def own_holder(*, since: str, queue: str, journal: Path) -> Holder:
    """This process as a holder."""
    import psutil

    return Holder(
        pid=os.getpid(),
        created_at=psutil.Process().create_time(),
        since=since,
        queue=queue,
        journal=str(journal),
    )
