"""What a journal file consists of, as plain text: checked without importing the migrations."""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x72756E71
"""``runq`` in ASCII, in the file's header: tells a journal from any other SQLite file."""

MIGRATION_SET = "runq_journal"
MIGRATIONS_TABLE = "_sqlite_migrations"  # where sqlite-utils records what it applied

MIGRATION_NAMES = ("m001_initial",)
"""Every migration this version knows, in order; a test compares it with `runq_journal.migrations`."""

EVENT_TABLE = """\
CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  night TEXT NOT NULL,
  at TEXT NOT NULL,
  elapsed_s REAL NOT NULL,
  kind TEXT NOT NULL,
  entry INTEGER,
  step TEXT,
  attempt INTEGER,
  data TEXT NOT NULL,
  prev_hash TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT"""

SAMPLE_TABLE = """\
CREATE TABLE sample (
  id INTEGER PRIMARY KEY,
  night TEXT NOT NULL,
  at TEXT NOT NULL,
  entry INTEGER NOT NULL,
  step TEXT NOT NULL,
  probe TEXT NOT NULL,
  mb REAL NOT NULL
) STRICT"""

META_TABLE = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT"

INDICES = (
    # The last event of a night, and a night's events.
    "CREATE INDEX event_night ON event (night, id)",
    # The newest plan, reset, settling of a night or an entry: answered by the index alone.
    "CREATE INDEX event_kind ON event (kind, night, entry, id)",
    # The last word on a step or an attempt: answered by the index alone.
    "CREATE INDEX event_step ON event (night, entry, step, kind, attempt, id)",
    "CREATE INDEX sample_step ON sample (night, entry, step, probe, at)",
)

GUARDS = {
    "event_no_update": """\
CREATE TRIGGER event_no_update BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'the journal is append-only: an event is never changed'); END""",
    "event_no_delete": """\
CREATE TRIGGER event_no_delete BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'the journal is append-only: an event is never deleted'); END""",
    # INSERT OR REPLACE deletes without firing a DELETE trigger: an id that exists is refused before it can.
    "event_no_replace": """\
CREATE TRIGGER event_no_replace BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the journal is append-only: an event is never replaced'); END""",
    # A NULL id is known only after the insert, so the place in the chain is checked then.
    "event_at_the_end": """\
CREATE TRIGGER event_at_the_end AFTER INSERT ON event
WHEN NEW.id IS NOT 1 + coalesce((SELECT id FROM event WHERE id <> NEW.id ORDER BY id DESC LIMIT 1), 0)
  OR NEW.prev_hash IS NOT coalesce((SELECT hash FROM event WHERE id = NEW.id - 1), 'sha256:' || printf('%064d', 0))
BEGIN SELECT RAISE(ABORT, 'the journal is append-only: an event goes behind the last one'); END""",
}
"""The triggers that keep `event` append-only, by name; `runq_journal.chain.verify` reports one that is missing."""


def applied_migrations(conn: sqlite3.Connection) -> frozenset[str]:
    """The migrations the file has seen, read by plain SQL."""
    known = conn.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (MIGRATIONS_TABLE,)
    ).fetchone()
    if known is None:
        return frozenset()
    rows = conn.execute("SELECT name FROM _sqlite_migrations WHERE migration_set = ?", (MIGRATION_SET,))
    return frozenset(str(name) for (name,) in rows)


def unknown_migrations(conn: sqlite3.Connection) -> frozenset[str]:
    """The migrations a newer version applied; empty for a journal this version may write."""
    return applied_migrations(conn) - frozenset(MIGRATION_NAMES)


def pending_migrations(conn: sqlite3.Connection) -> tuple[str, ...]:
    """The migrations this version would still apply, in order."""
    applied = applied_migrations(conn)
    return tuple(name for name in MIGRATION_NAMES if name not in applied)
