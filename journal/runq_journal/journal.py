"""The one writer of a journal."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from runq_journal import connection
from runq_journal.chain import GENESIS, canonical, event_hash, first_break
from runq_journal.connection import DAMAGED, connect_reader, connect_writer, create_file, is_journal, translated
from runq_journal.schema import pending_migrations, unknown_migrations
from runq_journal.stored import Sample, StoredEvent, timestamp
from runq_journal.view_files import stale_views, store_views
from runq_schemas.errors import JournalError
from runq_schemas.events import Event, UnknownEvent, to_json

if TYPE_CHECKING:
    from runq_journal.reader import JournalReader

_LAST = """\
SELECT id, hash, (SELECT max(seq) FROM sqlite_sequence WHERE name = 'event')
FROM event ORDER BY id DESC LIMIT 1"""
_LAST_ROW = """\
SELECT id, night, at, elapsed_s, kind, entry, step, attempt, data, prev_hash, hash
FROM event ORDER BY id DESC LIMIT 1"""
_INSERT = """\
INSERT INTO event (id, night, at, elapsed_s, kind, entry, step, attempt, data, prev_hash, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_INSERT_SAMPLE = "INSERT INTO sample (night, at, entry, step, probe, mb) VALUES (?, ?, ?, ?, ?, ?)"

_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


def _unchanged(data: Any) -> Any:
    return data


def _never(_text: str) -> bool:
    return False


def _always(_text: str) -> bool:
    return True


def _utc_now() -> datetime:
    return datetime.now(UTC)


Room = Callable[[], AbstractContextManager[Callable[[], object]]]
"""Opened when the disk is full: what it gives makes a little room each time it is called, and says whether it did.
Nothing else takes that room until it is closed."""


def _no_room() -> AbstractContextManager[Callable[[], bool]]:
    return nullcontext(lambda: False)


class Journal:
    """Appends events, one commit each: when `append` returns, the event is on disk.

    Made by `Journal.open`. Threads may share it. ``room`` is asked where an event finds the disk full.
    """

    def __init__(
        self,
        path: Path,
        conn: sqlite3.Connection,
        *,
        redact: Callable[[Any], Any],
        suspects: Callable[[str], bool],
        now: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self.path = path
        self.room: Room = _no_room
        self._conn = conn
        self._redact = redact
        self._suspects = suspects
        self._now = now
        self._monotonic = monotonic
        self._opened = monotonic()
        self._lock = threading.RLock()
        self._uuid = ""
        found = path.stat()
        self._file = (found.st_dev, found.st_ino)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        redact: Callable[[Any], Any] = _unchanged,
        suspects: Callable[[str], bool] | None = None,
        now: Callable[[], datetime] = _utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Open the journal for writing; make it, readable by its owner alone, where there is none.

        Args:
            path: the file; its folders are made too.
            redact: takes an event's JSON data and returns it without secrets.
            suspects: takes an event's JSON text and tells whether `redact` could change it; by default it is always
                asked.
            now: the time now, aware.
            monotonic: seconds that never go back.

        Raises:
            JournalError: it cannot be opened or written, is no journal, is damaged, or a newer version wrote it.
        """
        path = Path(path)
        with translated(path, "opened"):
            create_file(path)
            if is_journal(path):
                _refuse_damaged(path)
            conn = connect_writer(path)
        if suspects is None:
            suspects = _never if redact is _unchanged else _always
        journal = cls(path, conn, redact=redact, suspects=suspects, now=now, monotonic=monotonic)
        try:
            journal._prepare()
        except BaseException:
            conn.close()
            raise
        return journal

    @property
    def uuid(self) -> str:
        """The journal's own id, given when it was made; part of the mark on every process of a night."""
        return self._uuid

    def append(
        self,
        event: Event,
        *,
        night: str,
        entry: int | None = None,
        step: str | None = None,
        attempt: int | None = None,
    ) -> StoredEvent:
        """Write an event behind the last one.

        Args:
            event: an `UnknownEvent` is written under its own name.
            night: the night's id.
            entry: entry id, from 0.
            step: step name.
            attempt: from 1.

        Returns:
            The event as it now stands in the journal.

        Raises:
            JournalError: it could not be written; the journal is as before.
            ValueError: it is not JSON data, or holds a number that is not finite; the journal is as before.
        """
        kind = event.name if isinstance(event, UnknownEvent) else event.kind
        text = self._text(kind, event)
        try:
            return self._append(kind, text, night, entry, step, attempt)
        except JournalError as error:
            if not error.no_room:
                raise
            full = error
        with self.room() as make_room:
            while make_room():
                try:
                    return self._append(kind, text, night, entry, step, attempt)
                except JournalError as error:
                    if not error.no_room:
                        raise
        raise full

    def _append(
        self, kind: str, text: str, night: str, entry: int | None, step: str | None, attempt: int | None
    ) -> StoredEvent:
        with self._transaction("written"):
            last, prev_hash, given = self._conn.execute(_LAST).fetchone() or (0, GENESIS, 0)
            if last == 0:
                (given,) = self._conn.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()
            if given != last:
                raise self._damaged(f"its last event is {last}, but it had {given}")
            # The time is read inside the transaction, so that two writers' times stand in the order of the ids.
            at, elapsed_s = timestamp(self._now()), round(float(self._monotonic() - self._opened), 6)
            fields = (
                last + 1,
                _clean(night),
                at,
                elapsed_s,
                kind,
                entry,
                _clean(step),
                attempt,
                text,
                prev_hash,
            )
            hashed = event_hash(canonical(fields))
            self._conn.execute(_INSERT, (*fields, hashed))
        return StoredEvent(
            id=last + 1,
            night=fields[1],
            at=at,
            elapsed_s=elapsed_s,
            kind=kind,
            entry=entry,
            step=fields[6],
            attempt=attempt,
            data=json.loads(text),
            prev_hash=prev_hash,
            hash=hashed,
        )

    def add_samples(self, samples: Iterable[Sample]) -> None:
        """Write probe readings, all or none, in one commit.

        Raises:
            JournalError: they could not be written.
            ValueError: a reading is not finite.
        """
        rows = [(s.night, timestamp(s.at), s.entry, s.step, s.probe, float(s.mb)) for s in samples]
        if not all(math.isfinite(row[-1]) for row in rows):
            raise ValueError("a sample is not a finite number of MB")
        if rows:
            with self._lock:
                self._wait_for_locks(connection.SAMPLES_PATIENCE_S)
                try:
                    with self._transaction("written"):
                        self._conn.executemany(_INSERT_SAMPLE, rows)
                finally:
                    self._wait_for_locks(connection.PATIENCE_S)

    def prune_samples(self, before: datetime) -> int:
        """Delete the probe readings older than ``before``; events stay. Returns how many were deleted.

        Raises:
            JournalError: they could not be deleted.
        """
        with self._transaction("pruned"):
            return self._conn.execute("DELETE FROM sample WHERE at < ?", (timestamp(before),)).rowcount

    def reader(self) -> JournalReader:
        """A reader over this very connection; it sees every event appended so far. Closed with the journal."""
        from runq_journal.reader import JournalReader

        return JournalReader(self.path, self._conn)

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        with self._lock:
            self._conn.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _text(self, kind: str, event: Event) -> str:
        """The event's data as JSON text, without secrets and without halves of surrogate pairs."""
        try:
            text = _encode(dict(event.data)) if isinstance(event, UnknownEvent) else to_json(event)
            if self._suspects(text):
                text = _encode(self._redact(json.loads(text)))
            if "\\ud" in text:
                text = _encode(_clean(json.loads(text)))
        except (TypeError, ValueError, RecursionError) as exc:
            raise ValueError(f"the event {kind} cannot be written as JSON: {exc}") from exc
        if not text.startswith("{"):
            raise ValueError(f"the event {kind} is not a JSON object")
        return text

    def _prepare(self) -> None:
        with self._transaction("opened"):  # also proves, before a night begins, that the file can be written
            conn = self._conn
            if newer := unknown_migrations(conn):
                raise JournalError(
                    f"The journal was written by a newer version of runq ({', '.join(sorted(newer))})",
                    where=str(self.path),
                    remedy="Upgrade runq, or give another folder with --runs; reading it works with this version.",
                )
            if pending_migrations(conn):
                from runq_journal import migrations

                migrations.apply(conn)
            for key, value in (("uuid", str(uuid.uuid4())), ("created_at", timestamp(self._now()))):
                conn.execute("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)", (key, value))
            store_views(conn, stale_views(conn))
            (self._uuid,) = conn.execute("SELECT value FROM meta WHERE key = 'uuid'").fetchone()
            self._check_end()
        self._wait_for_locks(connection.PATIENCE_S)

    def _still_there(self) -> None:
        """SQLite writes on into a file that was removed or whose disk was taken away, where nobody finds it again."""
        try:
            found = self.path.stat()
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._file:
            raise JournalError(
                "The journal is not where it was when it was opened",
                where=str(self.path),
                remedy="Connect its disk or put it back, then go on with `runq night QUEUE --resume`: what it does not"
                " hold runs again.",
            )

    def _wait_for_locks(self, seconds: float) -> None:
        self._conn.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    def _check_end(self) -> None:
        """The last event only: enough to see a torn or cut file; `runq_journal.verify` reads them all."""
        row = self._conn.execute(_LAST_ROW).fetchone()
        (given,) = self._conn.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence").fetchone()
        last = row[0] if row else 0
        if given != last:
            raise self._damaged(f"its last event is {last}, but it had {given}")
        if row and event_hash(canonical(row[:10])) != row[10]:
            raise self._damaged(f"its last event, {last}, was edited")

    def _damaged(self, how: str) -> JournalError:
        return JournalError(
            f"The journal is damaged: {how}",
            where=str(self.path),
            remedy=DAMAGED,
        )

    @contextmanager
    def _transaction(self, doing: str) -> Iterator[None]:
        # IMMEDIATE: a second writer waits here, and never between reading the last event and writing the next.
        with self._lock, translated(self.path, doing):
            self._still_there()
            self._conn.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._conn.execute("COMMIT")
            except BaseException:
                # Also on Ctrl-C. SQLite has already rolled back on some errors, a full disk among them.
                if self._conn.in_transaction:
                    self._conn.execute("ROLLBACK")
                raise


def _refuse_damaged(path: Path) -> None:
    """Read the whole chain before SQLite may write anything: opening for writing takes up a -wal file, for one.

    Raises:
        JournalError: the chain is broken.
        sqlite3.Error: it cannot be read.
    """
    with closing(connect_reader(path)) as conn:
        broken = first_break(conn)
    if broken is not None:
        raise JournalError(f"The journal is damaged: {broken}", where=str(path), remedy=DAMAGED)


def _clean(value: Any) -> Any:
    """Replace halves of surrogate pairs, as file names that are not UTF-8 have: SQLite cannot give them back."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
