"""The views, read from their ``.sql`` files: for the journal file, for a reader, and described for people."""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from importlib.resources import files

import attrs

_COLUMN = re.compile(r"^--   (\S+)\s{2,}(.+)$")
_CONTINUED = re.compile(r"^--\s{6,}(\S.*)$")


@attrs.frozen
class View:
    """One view: its name, its ``CREATE VIEW`` statement, and what its file says about it."""

    name: str
    sql: str
    about: str
    columns: dict[str, str]


@cache
def views() -> tuple[View, ...]:
    """Every view, by name."""
    folder = files("runq_journal") / "views"
    found = sorted((item for item in folder.iterdir() if item.name.endswith(".sql")), key=lambda item: item.name)
    return tuple(_parse(item.name.removesuffix(".sql"), item.read_text(encoding="utf-8")) for item in found)


def stale_views(conn: sqlite3.Connection) -> tuple[View, ...]:
    """The views whose text in the file is absent or not this version's."""
    stored = dict(conn.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'view'"))
    return tuple(view for view in views() if stored.get(view.name) != view.sql)


def store_views(conn: sqlite3.Connection, stale: tuple[View, ...]) -> None:
    """Put views into the file, inside the caller's transaction."""
    for view in stale:
        conn.execute(f"DROP VIEW IF EXISTS main.{view.name}")
        conn.execute(view.sql)


def create_temporary(conn: sqlite3.Connection) -> None:
    """Create every view for this connection alone; SQLite looks a name up among temporary ones first."""
    for view in views():
        conn.execute(view.sql.replace("CREATE VIEW", "CREATE TEMP VIEW", 1))


def _parse(name: str, text: str) -> View:
    comment, found, statement = text.partition("CREATE VIEW ")
    if not found or not statement.startswith(f"{name} AS"):
        raise ValueError(f"{name}.sql does not create the view {name}")
    # SQLite stores the statement from its name on, without what stands before it: compare like with like.
    sql = (found + statement).strip().removesuffix(";")
    about: list[str] = []
    columns: dict[str, str] = {}
    for line in comment.splitlines():
        column, continued = _COLUMN.match(line), _CONTINUED.match(line)
        if column:
            columns[column[1]] = column[2]
        elif continued and columns:
            columns[next(reversed(columns))] += " " + continued[1]
        elif not columns and line.startswith("-- ") and line != "-- Columns:":
            about.append(line.removeprefix("-- "))
    return View(name=name, sql=sql, about=" ".join(about), columns=columns)
