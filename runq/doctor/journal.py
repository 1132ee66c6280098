"""The journal and its folder: readable, writable, unbroken, private, and held by nobody."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from runq import paths
from runq.doctor.finding import Finding
from runq.locks import endpoint_locks_folder, holder_of, journal_lock_path
from runq_schemas.errors import RunqError

AREA = "journal"


def journal_findings(runs: Path) -> Iterator[Finding]:
    """Everything about the journal of a runs folder, which need not exist yet."""
    journal = runs / paths.JOURNAL_NAME
    yield from _writable(runs, journal)
    if _is_there(journal) and paths.is_begun(journal):
        yield _whole(journal)
        yield _private(runs, journal)
        yield _held(journal)
    else:
        yield Finding(area=AREA, name="journal", status="ok", message=f"none yet; a night makes {journal}")
    yield _locks()


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there and can be looked at."""
    return next(folder for folder in (path, *path.parents) if _is_there(folder))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:  # it lies in a folder that this user must not look into
        return False


def _writable(runs: Path, journal: Path) -> Iterator[Finding]:
    place = _existing(runs)
    wanted = [place] + [file for file in (journal, journal_lock_path(journal)) if _is_there(file)]
    denied = [path for path in wanted if not os.access(path, os.W_OK | (os.X_OK if path.is_dir() else 0))]
    if denied:
        message = f"{denied[0]} cannot be written by this user"
        remedy = f"make it yours: `sudo chown -R $USER {denied[0]}`, or give another folder with --runs DIR"
        yield Finding(area=AREA, name="writable", status="fail", message=message, remedy=remedy)
    else:
        yield Finding(area=AREA, name="writable", status="ok", message=f"{place} can be written")


def _whole(journal: Path) -> Finding:
    from runq.replay import verify

    try:
        count = verify(journal)
    except RunqError as error:
        return Finding(area=AREA, name="journal", status="fail", message=error.message, remedy=error.remedy)
    return Finding(area=AREA, name="journal", status="ok", message=f"{journal}: {count} events, hash chain whole")


def _private(runs: Path, journal: Path) -> Finding:
    """runq makes the journal for its owner alone; answers and prompts stand in it and in the bundles."""
    open_ones = [path for path in (journal,) if stat.S_IMODE(path.stat().st_mode) & 0o077]
    if open_ones:
        message = f"{journal} can be read by other users of this machine"
        return Finding(area=AREA, name="permissions", status="warn", message=message, remedy=f"chmod -R go-rwx {runs}")
    return Finding(area=AREA, name="permissions", status="ok", message="only this user can read the journal")


def _held(journal: Path) -> Finding:
    holder = holder_of(journal_lock_path(journal))
    if holder is None:
        return Finding(area=AREA, name="lock", status="ok", message="no night runs")
    message = f"a night runs: pid {holder.pid}, since {holder.since}, queue {holder.queue}"
    remedy = f"another one on this journal is refused until it ends; `runq status --runs {journal.parent}` shows it"
    return Finding(area=AREA, name="lock", status="warn", message=message, remedy=remedy)


def _locks() -> Finding:
    folder = endpoint_locks_folder()
    place = _existing(folder)
    if os.access(place, os.W_OK | os.X_OK):
        return Finding(area=AREA, name="endpoint locks", status="ok", message=f"{folder} can be used")
    message = f"{place} cannot be written by this user, and the locks of endpoints are made there"
    remedy = "make that folder writable, or name another one in XDG_STATE_HOME"
    return Finding(area=AREA, name="endpoint locks", status="fail", message=message, remedy=remedy)
