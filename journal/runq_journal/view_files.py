"""The views, read from their ``.sql`` files: for the journal file, for a reader, and described for people."""

from __future__ import annotations

import re
import sqlite3
from functools import cache, cached_property
from pathlib import Path

import attrs

_FOLDER = Path(__file__).parent / "views"
_COLUMN = re.compile(r"^--   (\S+)\s{2,}(.+)$")
_CONTINUED = re.compile(r"^--\s{6,}(\S.*)$")


@attrs.frozen(slots=False)
class View:
    """One view: its name, its ``CREATE VIEW`` statement, and what its file says about it."""

    name: str
    sql: str
    _comment: str = attrs.field(repr=False)

    @property
    def about(self) -> str:
        """What the view shows."""
        return self._described[0]

    @property
    def columns(self) -> dict[str, str]:
        """What each column means."""
        return self._described[1]

    @cached_property
    def _described(self) -> tuple[str, dict[str, str]]:
        about: list[str] = []
        columns: dict[str, str] = {}
        for line in self._comment.splitlines():
            column, continued = _COLUMN.match(line), _CONTINUED.match(line)
            if column:
                columns[column[1]] = column[2]
            elif continued and columns:
                columns[next(reversed(columns))] += " " + continued[1]
            elif not columns and line.startswith("-- ") and line != "-- Columns:":
                about.append(line.removeprefix("-- "))
        return " ".join(about), columns


@cache
def views() -> tuple[View, ...]:
    """Every view, by name."""
    # A plain folder and not importlib.resources: every reader of a journal waits for this.
    return tuple(_parse(path.stem, path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.sql")))


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
    return View(name, (found + statement).strip().removesuffix(";"), comment)
