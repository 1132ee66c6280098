"""The journal's migrations, in order; imported only when one is to be applied, because sqlite-utils loads slowly."""

from __future__ import annotations

import sqlite3

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from runq_journal.schema import (
    APPLICATION_ID,
    EVENT_TABLE,
    GUARDS,
    INDICES,
    META_TABLE,
    MIGRATION_SET,
    SAMPLE_TABLE,
)

migrations = Migrations(MIGRATION_SET)


# Plain SQL: sqlite-utils' transform() silently drops triggers, and with them the guards.
@migrations()
def m001_initial(db: Database) -> None:
    """Tables, indices and guards of the first version."""
    for statement in (EVENT_TABLE, SAMPLE_TABLE, META_TABLE, *INDICES, *GUARDS.values()):
        db.conn.execute(statement)
    db.conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def apply(conn: sqlite3.Connection) -> None:
    """Apply what is pending, inside the transaction the caller has begun.

    Raises:
        sqlite3.Error: a migration failed; the caller rolls back.
    """
    # execute_plugins=False: a plugin of sqlite-utils on this machine must not touch a journal.
    migrations.apply(Database(conn, execute_plugins=False))
