"""Opening the file: what it is, before anything may change it, and SQLite's errors in the user's words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runq_journal.schema import APPLICATION_ID
from runq_schemas.errors import JournalError

BUSY_TIMEOUT_S = 10.0
"""How long a reader, or a writer that opens the journal, waits for another's commit, which takes a millisecond."""

PATIENCE_S = 60.0
"""How long a night that runs waits for another program's write lock, such as an edit left open in a database browser:
giving up costs the night, and waiting for ever would put off its steps' timeouts."""

SAMPLES_PATIENCE_S = 0.1
"""How long readings of memory wait: they can be written later, and a step is being watched meanwhile."""

OLDEST_SQLITE = (3, 37)
"""The first with STRICT tables (https://www.sqlite.org/stricttables.html)."""

_HEADER = b"SQLite format 3\x00"  # https://www.sqlite.org/fileformat2.html, 1.3.1

DAMAGED = (
    "Leave the file as it is: `runq salvage` copies what its hash chain vouches for into a new one, and"
    " `runq replay --verify` says where it breaks."
)
"""What to do about a damaged journal."""

_WRITABLE = "Make the journal and its folder writable, or give another folder with --runs."
_HELD = "Another program holds the journal: end it (or close it in a database browser), then try again."
_DISK = "Check the disk that holds the journal (free space, errors), or give another folder with --runs."

_REMEDIES = {
    sqlite3.SQLITE_FULL: "Free space on the journal's disk, then go on with `runq night QUEUE --resume`.",
    sqlite3.SQLITE_READONLY: _WRITABLE,
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_PERM: _WRITABLE,
    sqlite3.SQLITE_AUTH: _WRITABLE,
    sqlite3.SQLITE_BUSY: _HELD,
    sqlite3.SQLITE_LOCKED: _HELD,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: DAMAGED,
    sqlite3.SQLITE_IOERR: _DISK,
}


_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
"""How SQLite says that a disk is full, the last where its `-shm` file has to grow; a quota (EDQUOT) is the second."""


def journal_error(exc: Exception, path: Path, doing: str) -> JournalError:
    """The error a user sees for one of SQLite or the file system.

    Args:
        exc: what was raised.
        path: the journal.
        doing: what was tried, completing *The journal cannot be ...*.
    """
    code = getattr(exc, "sqlite_errorcode", None)
    remedy = _REMEDIES.get(code & 0xFF, "") if code is not None else ""  # the low byte is the primary code
    if not remedy and isinstance(exc, OSError):
        remedy = _WRITABLE
    message = f"The journal cannot be {doing}: {exc}"
    return JournalError(message, where=str(path), remedy=remedy or DAMAGED, no_room=code in _NO_ROOM)


def damaged(path: Path, how: str) -> JournalError:
    """The error for a journal that can be opened and says what no journal says."""
    return JournalError(f"The journal is damaged: {how}", where=str(path), remedy=DAMAGED)


@contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Turn SQLite's errors and the file system's into `JournalError`."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as exc:  # a torn schema spoils even SQLite's message
        raise journal_error(exc, path, doing) from exc


def create_file(path: Path) -> None:
    """Make an empty file only its owner can read, and its folders, when it is absent.

    A journal holds prompts' paths, host names and settings: nobody else's business on a shared machine. SQLite gives
    its side files the same mode.

    Raises:
        OSError: it cannot be made.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    # SQLite syncs the file; the new name in its folder has to reach the disk too.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_journal(path: Path) -> bool:
    """Whether the file is a journal (``True``) or still empty (``False``); never changes it.

    Raises:
        JournalError: it is something else.
        OSError, sqlite3.Error: it cannot be read.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise JournalError(
            f"The SQLite {sqlite3.sqlite_version} of this Python is too old",
            where=str(path),
            remedy="Install a Python with SQLite 3.37 or newer.",
        )
    foreign = "Move it away, or give another folder with --runs."
    if path.is_dir():
        raise JournalError("The journal is a folder, not a file", where=str(path), remedy=foreign)
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return False
    if not header.startswith(_HEADER):
        raise JournalError("The file is not a journal, nor any SQLite database", where=str(path), remedy=foreign)
    # The header of a live journal may still be in its -wal file. Only then is the file opened as a database that
    # others use, which makes a -shm file beside it; otherwise it is read as it lies, and nothing is made.
    conn = connect_reader(path) if has_wal(path) else connect_read_only(path, immutable=True)
    try:
        (application_id,) = conn.execute("PRAGMA application_id").fetchone()
        if application_id == APPLICATION_ID:
            return True
        (tables,) = conn.execute("SELECT count(*) FROM sqlite_master").fetchone()
    finally:
        conn.close()
    if application_id == 0 and tables == 0:
        return False  # a runner died while it made the file
    raise JournalError("The file is another program's SQLite database", where=str(path), remedy=foreign)


def connect_writer(path: Path) -> sqlite3.Connection:
    """A connection that writes, on disk before it returns from a commit.

    Raises:
        JournalError: the file system cannot hold a write-ahead log.
        sqlite3.Error: the file cannot be opened.
    """
    # check_same_thread=False: the journal has its own lock, and a sampling thread may write.
    conn = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        isolation_level=None,
        timeout=BUSY_TIMEOUT_S,
        check_same_thread=False,
    )
    try:
        (mode,) = conn.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise JournalError(
                "The journal's file system cannot hold a write-ahead log",
                where=str(path),
                remedy="Keep the runs folder on a local disk: give one with --runs.",
            )
        conn.execute("PRAGMA synchronous = FULL")
        conn.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone leaves data in the drive's cache
    except BaseException:
        conn.close()
        raise
    return conn


def connect_read_only(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    """A connection that cannot write the file.

    Raises:
        sqlite3.Error: the file cannot be opened.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if immutable else ''}",
        uri=True,
        isolation_level=None,
        timeout=BUSY_TIMEOUT_S,
        check_same_thread=False,
    )


def connect_reader(path: Path) -> sqlite3.Connection:
    """A read-only connection that follows a writer, or reads a journal in a folder that cannot be written.

    Raises:
        JournalError: the folder cannot be written and the last events are still in the ``-wal`` file.
        sqlite3.Error: the file cannot be opened.
    """
    conn = connect_read_only(path)
    try:
        conn.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as exc:
        conn.close()
        # In a folder that cannot be written SQLite cannot make the -shm file a WAL journal needs. Nobody writes
        # there either, so without a -wal file the file alone is all there is.
        if exc.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise
        if has_wal(path):
            raise JournalError(
                "The last events are in the -wal file, and the folder cannot be written, as reading them needs",
                where=str(path),
                remedy=f"Copy {path.name} and {path.name}-wal into a folder of yours and read them there.",
            ) from exc
        return connect_read_only(path, immutable=True)
    except BaseException:
        conn.close()
        raise
    return conn


def has_wal(path: Path) -> bool:
    """Whether commits stand in a `-wal` file beside the journal."""
    wal = path.with_name(path.name + "-wal")
    return wal.exists() and wal.stat().st_size > 0
