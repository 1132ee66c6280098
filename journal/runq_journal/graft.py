"""A first page for a journal that has lost its own, so that SQLite finds its tables again."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

PAGE_BYTES = 4096
"""SQLite's page size since 3.12, and so every journal's."""

# Offsets in a database's header (https://www.sqlite.org/fileformat2.html, 1.3).
_CHANGE_COUNTER, _PAGE_COUNT, _FREELIST, _VALID_FOR = 24, 28, 32, 92


def graft(damaged: Path) -> None:
    """Give a file the first page of a new journal.

    The page holds the schema, or leads to it, and the schema says where each table begins. Every journal is made by
    the same migrations in the same order, and so each of its tables begins at the same page as in a new one. Whether
    that is true of this file the hash chain tells: nothing that is read wrongly can pass it.

    Args:
        damaged: a copy of the journal, which is changed; what its `-wal` file holds goes into it where SQLite can.

    Raises:
        sqlite3.Error, OSError: it cannot be done.
    """
    with suppress(sqlite3.Error), closing(sqlite3.connect(damaged)) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    for suffix in ("-wal", "-shm"):
        damaged.with_name(damaged.name + suffix).unlink(missing_ok=True)
    page = bytearray(_first_page(damaged.with_name(damaged.name + ".new")))
    pages = -(-damaged.stat().st_size // PAGE_BYTES)
    page[_PAGE_COUNT : _PAGE_COUNT + 4] = pages.to_bytes(4, "big")
    page[_FREELIST : _FREELIST + 8] = bytes(8)
    page[_VALID_FOR : _VALID_FOR + 4] = page[_CHANGE_COUNTER : _CHANGE_COUNTER + 4]
    with damaged.open("r+b") as file:
        file.write(page)


def _first_page(new: Path) -> bytes:
    """The first page of a journal that has only tables, indices and triggers: these fit into it."""
    from runq_journal import migrations

    with closing(sqlite3.connect(new, isolation_level=None)) as conn:
        conn.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        conn.execute("BEGIN IMMEDIATE")
        migrations.apply(conn)
        conn.execute("COMMIT")
    with new.open("rb") as file:
        return file.read(PAGE_BYTES)
