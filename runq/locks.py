"""One night at a time per journal and per endpoint: OS locks, and who holds them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
from runq_schemas.errors import LockedError

_LOOPBACK = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"}  # noqa: S104 - compared, never bound
_PORTS = {"http": 80, "https": 443}


@attrs.frozen(kw_only=True)
class Holder:
    """Who holds a lock. ``created_at`` is the process's creation time (Unix seconds)."""

    pid: int
    created_at: float
    since: str
    queue: str
    journal: str

    def alive(self) -> bool:
        """Whether that very process still runs."""
        import psutil

        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created_at) < 1.0  # clock steps shift it by less than this
            return bool(same and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.Error:
            return False


def endpoint_name(url: str) -> str:
    """One name for every spelling of an endpoint: scheme, path and the ways to write loopback fall away."""
    parts = urlsplit(url if "//" in url else f"//{url}")
    host = (parts.hostname or "").lower()
    port = parts.port or _PORTS.get(parts.scheme, 80)
    return f"{'loopback' if host in _LOOPBACK else host}:{port}"


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


def _holder_path(lock: Path) -> Path:
    # Beside the lock, not in it: the lock library truncates the lock file whenever somebody tries to take it.
    return lock.with_name(lock.name + ".holder")


def _endpoint_lock_path(url: str) -> Path:
    import platformdirs

    folder = platformdirs.user_state_path("runq") / "endpoints"
    return folder / (re.sub(r"[^A-Za-z0-9.-]+", "-", endpoint_name(url)) + ".lock")


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
            stack.enter_context(_held(path, what, holder))
        yield


@contextmanager
def _held(path: Path, what: str, holder: Holder) -> Iterator[None]:
    from filelock import FileLock, Timeout

    path.parent.mkdir(parents=True, exist_ok=True)
    lock: Any = FileLock(path, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise _locked(path, what) from None
    record = _holder_path(path)
    try:
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
    return LockedError(
        f"{what} is in use by another night: pid {other.pid}, since {other.since}, queue {other.queue}",
        remedy=f"wait for it, or end it with `kill {other.pid}`; `runq status --runs {Path(other.journal).parent}`",
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
