"""The hash chain: what an event's hash covers, and the search for a break.

The chain has no key. It finds damage and careless edits, and it makes every earlier event depend on the last hash;
someone who rewrites every event from the edited one on, triggers and sequence included, is found only by whoever
kept an earlier hash.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import attrs

from runq_journal.schema import GUARDS, unknown_migrations

ALGORITHM = "sha256"

GENESIS = f"{ALGORITHM}:{'0' * 64}"
"""``prev_hash`` of the first event."""

_ROWS = """\
SELECT id, night, at, elapsed_s, kind, entry, step, attempt, data, prev_hash, hash
FROM main.event WHERE id <= ? ORDER BY id"""
_MAX_ID = 2**63 - 1
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode

BreakKind = Literal["edited", "missing", "inserted", "reordered", "cut", "unguarded", "unreadable"]


@attrs.frozen(kw_only=True)
class Break:
    """One place where the chain does not hold.

    Args:
        event_id: the event where it shows; ``None`` for a missing guard.
        kind: ``edited`` (its hash is not its content's), ``missing`` (numbers are absent before it), ``inserted``
            (a number that no event may have), ``reordered`` (its ``prev_hash`` is not the hash before it),
            ``cut`` (events are missing at the end), ``unguarded`` (a trigger is missing or changed),
            ``unreadable`` (SQLite could not read on).
        message: one sentence without a trailing full stop.
    """

    event_id: int | None
    kind: BreakKind
    message: str

    def __str__(self) -> str:
        return self.message


def canonical(columns: Sequence[Any]) -> str:
    """The text an event's hash is taken of: a compact ASCII JSON array of its columns, ``data`` as text.

    Args:
        columns: id, night, at, elapsed_s, kind, entry, step, attempt, data, prev_hash.

    Raises:
        TypeError, ValueError: one of them is not JSON.
    """
    return _encode(list(columns))


def event_hash(text: str) -> str:
    """The value of the ``hash`` column for a canonical text; the algorithm's name stands before the digits."""
    return f"{ALGORITHM}:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def verify(conn: sqlite3.Connection, *, upto: int | None = None) -> Iterator[Break]:
    """Walk the chain and yield every break, in the order of the events; memory stays constant.

    Args:
        conn: a connection to the journal; it may be read-only.
        upto: the last event to look at; by default all, and then the end and the guards too.
    """
    last, head = 0, GENESIS
    sha256 = hashlib.sha256
    snapshot = conn.cursor()
    try:
        # A statement that has not ended keeps the connection at one moment: a writer may append meanwhile, and the
        # end has to be that of the events read. (BEGIN would do too, but not on the writer's own connection.)
        snapshot.execute("SELECT name FROM main.sqlite_master")
        for row in conn.execute(_ROWS, (_MAX_ID if upto is None else upto,)):
            id_, night, at, elapsed_s, kind, entry, step, attempt, data, prev_hash, stored = row
            # `canonical` of an ordinary event that follows the one before it, written out: the loop runs a million
            # times, and this is twice as fast (measured). Whatever is not ordinary is looked at again.
            try:
                text = data.replace("\\", "\\\\").replace('"', '\\"')
                where = "null,null" if step is None else f'"{step}",{attempt}'
                text = (
                    f'[{id_},"{night}","{at}",{elapsed_s!r},"{kind}",'
                    f'{"null" if entry is None else entry},{where},"{text}","{head}"]'
                )
                expected = f"{ALGORITHM}:{sha256(text.encode()).hexdigest()}"
            except (AttributeError, TypeError, UnicodeEncodeError):  # a column has lost its type
                expected = ""
            if expected != stored or prev_hash != head or id_ != last + 1:
                yield from _breaks(row, last, head)
            last, head = (id_ if id_ > last else last), stored
        if upto is None:
            yield from _end(conn, last)
            yield from _guards(conn)
    except (sqlite3.Error, UnicodeDecodeError) as exc:  # a torn schema spoils even SQLite's message
        yield Break(event_id=last + 1, kind="unreadable", message=f"SQLite cannot read on after event {last}: {exc}")
    finally:
        snapshot.close()


def first_break(conn: sqlite3.Connection, *, upto: int | None = None) -> Break | None:
    """The first break of the chain; ``None`` when it holds."""
    return next(verify(conn, upto=upto), None)


def _breaks(row: Sequence[Any], last: int, head: str) -> Iterator[Break]:
    """What is wrong with an event after the event ``last`` with the hash ``head``; nothing where it is only unusual."""
    id_, prev_hash, stored = row[0], row[9], row[10]
    try:
        sound = event_hash(canonical(row[:10])) == stored
    except (TypeError, ValueError):
        sound = False
    if id_ < 1:
        yield Break(event_id=id_, kind="inserted", message=f"Event {id_} has a number that no event may have")
    elif id_ != last + 1:
        span = f"event {last + 1} is" if id_ == last + 2 else f"events {last + 1} to {id_ - 1} are"
        yield Break(event_id=id_, kind="missing", message=f"Before event {id_}, {span} missing")
    if not sound:
        yield Break(event_id=id_, kind="edited", message=f"Event {id_} was edited: its hash is not its content's")
    if prev_hash != head and id_ == last + 1:
        yield Break(
            event_id=id_,
            kind="reordered",
            message=f"Event {id_} does not follow the event before it: one of them was replaced or moved",
        )


def _end(conn: sqlite3.Connection, last: int) -> Iterator[Break]:
    """AUTOINCREMENT remembers the highest number given, also when its row is gone."""
    row = conn.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'event'").fetchone()
    given = row[0]
    if given is None:
        if last > 0:
            yield Break(event_id=last, kind="cut", message="The record of the last event's number is missing")
    elif given > last:
        span = f"event {last + 1} is" if given == last + 1 else f"events {last + 1} to {given} are"
        yield Break(event_id=last + 1, kind="cut", message=f"The end is cut off: {span} missing")
    elif given < last:
        yield Break(
            event_id=last,
            kind="inserted",
            message=f"The journal gave {given} numbers, but event {last} exists",
        )


def _guards(conn: sqlite3.Connection) -> Iterator[Break]:
    found = dict(conn.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger' AND tbl_name = 'event'"))
    newer = bool(unknown_migrations(conn))  # a newer version may have reworded a guard
    for name, sql in GUARDS.items():
        if name not in found:
            message = f"The trigger {name}, which keeps the journal append-only, is missing"
            yield Break(event_id=None, kind="unguarded", message=message)
        elif found[name] != sql and not newer:
            message = f"The trigger {name}, which keeps the journal append-only, was changed"
            yield Break(event_id=None, kind="unguarded", message=message)
