"""Taking out of a damaged journal what its hash chain still vouches for, into a new file."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from runq_journal.chain import GENESIS, canonical, event_hash
from runq_journal.connection import translated
from runq_journal.graft import graft
from runq_journal.journal import Journal
from runq_schemas.errors import JournalError
from runq_schemas.events import JournalSalvaged

_EVENTS = """\
SELECT id, night, at, elapsed_s, kind, entry, step, attempt, data, prev_hash, hash
FROM main.event NOT INDEXED ORDER BY id"""
_SAMPLES = "SELECT night, at, entry, step, probe, mb FROM main.sample NOT INDEXED ORDER BY id"
_INSERT_EVENT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_SAMPLE = "INSERT INTO sample (night, at, entry, step, probe, mb) VALUES (?, ?, ?, ?, ?, ?)"

_UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged file raises; text that is no UTF-8 spoils even the reading of a row."""


@attrs.frozen(kw_only=True)
class Salvaged:
    """What was saved.

    Args:
        path: the new journal.
        events: how many events it has of the old one, all of them before the first break.
        lost: how many more the old one had given numbers to; ``None`` where it cannot tell.
        samples: how many probe readings were readable.
        broken: why it ends there; empty where every event is saved.
        last_night: the night of the last saved event; empty without any.
        last_at: when that event was, UTC, ISO 8601; empty without any.
    """

    path: Path
    events: int
    lost: int | None
    samples: int
    broken: str
    last_night: str
    last_at: str


def salvage(damaged: Path, into: Path, *, now: Callable[[], datetime]) -> Salvaged:
    """Copy the events of a damaged journal, as far as the chain holds, and the readings that can be read.

    The damaged file is only read, and a copy of it at that: SQLite may write into what it opens.

    Args:
        damaged: the journal; nobody writes it meanwhile.
        into: the new file, which must not exist yet.
        now: the time for the event that says where the new journal comes from.

    Raises:
        JournalError: the file cannot be read as a database at all, or the new one not be written.
    """
    if into.exists():
        raise JournalError(
            "There is a file in the way of the new journal",
            where=str(into),
            remedy="Move it away, or name another with --to.",
        )
    with translated(into, "written"), tempfile.TemporaryDirectory(prefix=".salvage-", dir=into.parent) as folder:
        work = Path(folder) / "damaged.db"
        for suffix in ("", "-wal"):
            source = damaged.with_name(damaged.name + suffix)
            if source.exists():
                shutil.copyfile(source, work.with_name(work.name + suffix))
        made = Path(folder) / "salvaged.db"
        found = _copied(work, made, now=now, of=damaged)
        made.rename(into)
        _sync(into.parent)
    return attrs.evolve(found, path=into)


def _copied(work: Path, made: Path, *, now: Callable[[], datetime], of: Path) -> Salvaged:
    with _opened(work, of) as source, Journal.open(made, now=now) as journal:
        target = journal._conn
        state = _State()
        target.execute("BEGIN IMMEDIATE")
        target.executemany(_INSERT_EVENT, _sound_events(source, state))
        samples = 0
        if state.count:
            for row in _readable(source, _SAMPLES):
                target.execute(_INSERT_SAMPLE, row)
                samples += 1
        uuid = _one(source, "SELECT value FROM main.meta WHERE key = 'uuid'")
        if uuid is not None:
            target.execute("UPDATE meta SET value = ? WHERE key = 'uuid'", (uuid,))
        target.execute("COMMIT")
        given = _one(source, "SELECT max(seq) FROM main.sqlite_sequence WHERE name = 'event'")
        broken = state.broken
        if not broken and given is not None and int(given) > state.count:
            broken = f"the end is cut off: it had given {given} numbers"
        found = Salvaged(
            path=made,
            events=state.count,
            lost=None if given is None else max(0, int(given) - state.count),
            samples=samples,
            broken=broken,
            last_night=state.night,
            last_at=state.at,
        )
        journal.append(
            JournalSalvaged(
                source=str(of), sha256=_sha256(work), events=found.events, lost=found.lost, broken=found.broken
            ),
            night=f"{now().strftime('%Y-%m-%d_%H%M%S')}_salvage",
        )
        if (wrong := journal.reader().verify()) is not None:
            raise JournalError(f"What was saved does not hold: {wrong}", where=str(of))
        # Everything into the file itself: it is renamed, and a -wal file would stay behind.
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return found


@attrs.define
class _State:
    """How far the reading of events came."""

    count: int = 0
    head: str = GENESIS
    night: str = ""
    at: str = ""
    broken: str = ""


def _sound_events(source: sqlite3.Connection, state: _State) -> Iterator[Sequence[Any]]:
    """The events before the first that does not belong where it stands."""
    for row in _readable(source, _EVENTS, state):
        try:
            sound = event_hash(canonical(row[:10])) == row[10]
        except (TypeError, ValueError):
            sound = False
        if row[0] != state.count + 1 or row[9] != state.head or not sound:
            state.broken = (
                f"event {row[0]} is not what its hash vouches for"
                if row[0] == state.count + 1
                else (f"event {state.count + 1} is missing")
            )
            return
        state.count, state.head, state.night, state.at = row[0], row[10], row[1], row[2]
        yield row


def _readable(source: sqlite3.Connection, sql: str, state: _State | None = None) -> Iterator[Sequence[Any]]:
    try:
        yield from source.execute(sql)
    except _UNREADABLE as error:
        if state is not None:
            state.broken = f"SQLite cannot read on after event {state.count}: {error}"


def _one(source: sqlite3.Connection, sql: str) -> Any:
    try:
        row = source.execute(sql).fetchone()
    except _UNREADABLE:
        return None
    return None if row is None else row[0]


def _opened(work: Path, of: Path) -> closing[sqlite3.Connection]:
    """A connection to the copy that reads on where SQLite would refuse the whole file.

    Raises:
        JournalError: there is no database in it, or no event table.
    """
    try:
        return closing(_connected(work))
    except _UNREADABLE:
        try:
            graft(work)
            return closing(_connected(work))
        except _UNREADABLE as error:
            raise JournalError(
                f"Nothing can be read of the journal: {error}",
                where=str(of),
                remedy="Restore it from a backup, or move it away to begin a new one; bundles and summaries stay.",
            ) from error


def _connected(work: Path) -> sqlite3.Connection:
    conn = sqlite3.connect(work, isolation_level=None)
    try:
        # A file shorter than its header says is refused as a whole, but for whoever may repair the schema
        # (lockBtree() in SQLite's btree.c).
        conn.execute("PRAGMA writable_schema = ON")
        conn.execute("PRAGMA temp_store = MEMORY")
        conn.execute("SELECT id FROM main.event NOT INDEXED LIMIT 1").fetchall()
    except BaseException:
        conn.close()
        raise
    return conn


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
