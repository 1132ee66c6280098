"""What stands on the front page, on a night's and on an entry's: values, read from the views in one go."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import attrs

from runq_journal.datasette.about import query
from runq_journal.datasette.starter import Starter
from runq_journal.reader import JournalReader
from runq_journal.view_rows import Row

T = TypeVar("T")

NIGHTS = 10
"""How many nights the front page lists: as many as one looks at without scrolling on."""

EVENTS = 500
"""How many events a page shows; the rest is one link away."""

_CURVES = """
SELECT entry, step, probe, bucket, max(mb) AS mb
FROM (
  SELECT entry, step, probe, mb,
    (row_number() OVER (PARTITION BY entry, step, probe ORDER BY at, id) - 1) * 60
      / count(*) OVER (PARTITION BY entry, step, probe) AS bucket
  FROM sample
  WHERE night = :night
)
GROUP BY entry, step, probe, bucket
ORDER BY entry, step, probe, bucket
"""
"""The highest of each sixtieth of a step's samples: a short peak must not fall between two points of a line."""


@attrs.frozen
class Pages:
    """Answers over one connection.

    Args:
        conn: of Datasette, with this version's views.
        journal: the file.
        starter: what started Datasette.
    """

    conn: sqlite3.Connection
    journal: Path
    starter: Starter

    @property
    def reader(self) -> JournalReader:
        """The views as Python values."""
        return JournalReader(self.journal, self.conn)

    def front(self) -> Row:
        """The front page."""
        nights = self._with_states(self.reader.nights()[:NIGHTS])
        counted = [{**row, **self._counts(row["night"])} for row in nights]
        checks = self.reader.checks()
        latest = checks[-1]["night"] if checks else None
        return {
            "nights": counted,
            "more_nights": len(self.reader.nights()) - len(counted),
            "last": {**counted[0], **self._results(counted[0])} if counted else None,
            "running": [row for row in nights if row["state"] == "running"],
            "check": [row for row in checks if row["night"] == latest],
            "durations": self._durations(),
            "events": self.reader.last_event_id,
            "last_event": self.reader.last_event(),
        }

    def night(self, night: str) -> Row | None:
        """A night's page, or a check's; ``None`` when there is no such night."""
        if self.reader.last_event(night) is None:
            return None
        rows = self.reader.view("night", night)
        found = {
            "night": night,
            "check": self.reader.checks(night),
            "warnings": self.reader.warnings(night),
            "timeline": self._timeline(night),
            "of_a_night": bool(rows),
        }
        if not rows:
            return found
        (row,) = self._with_states(rows)
        plan = self.reader.latest_plan(night)
        return {
            **found,
            **row,
            **self._counts(night),
            **self._results(row),
            "host": plan["host"],
            "versions": plan["versions"],
            "baselines": self.reader.view("baseline", night),
            "memory": self._memory(night),
        }

    def entry(self, night: str, number: int) -> Row | None:
        """An entry's page; ``None`` when the night has no such entry."""
        result = _only(self.reader.entry_results(night), number)
        attempts = _only(self.reader.attempts(night), number)
        timeline = self._timeline(night, entry=number)
        if not (result or attempts or timeline):
            return None
        tails = {(row["step"], row["attempt"]): row["log_tail"] for row in _only(self.reader.failures(night), number)}
        return {
            "night": night,
            "entry": number,
            "result": result[0] if result else None,
            "attempts": [{**row, "log_tail": tails.get((row["step"], row["attempt"]))} for row in attempts],
            "servers": _only(self.reader.servers(night), number),
            "baselines": _only(self.reader.view("baseline", night), number),
            "warnings": _only(self.reader.warnings(night), number),
            "memory": _only(self._memory(night), number),
            "timeline": timeline,
        }

    def _durations(self) -> list[Row]:
        rows = self.reader.durations()
        longest = max((row["seconds"] for row in rows), default=0) or 1
        return [{**row, "percent": 100 * row["seconds"] / longest} for row in rows]

    def _results(self, night: Row) -> Row:
        name = night["night"]
        todo = self.reader.todo(name)
        plan = self.reader.latest_plan(name) if todo else {}
        return {
            "entries": self.reader.entry_results(name),
            "todo": todo,
            "resume": self.starter.resume(plan, name, self.journal) if todo and night["state"] != "running" else "",
            "failures": list(reversed(self.reader.failures(name))),
            "warnings": self.reader.warnings(name),
        }

    def _with_states(self, nights: list[Row]) -> list[Row]:
        states = self.starter.states(self.journal, self.reader, {row["night"]: row["state"] for row in nights})
        return [{**row, "state": states[row["night"]]} for row in nights]

    def _counts(self, night: str) -> Row:
        summary = self.reader.night_summary(night)
        return {name: summary[name] for name in ("total", "done", "complete", "failed", "pending")}

    def _timeline(self, night: str, *, entry: int | None = None) -> list[Row]:
        rows = self._rows(query("timeline"), {"night": night})
        return [row for row in rows if entry is None or row["entry"] == entry][-EVENTS:]

    def _memory(self, night: str) -> list[Row]:
        curves: dict[tuple[Any, ...], list[float]] = {}
        for row in self._rows(_CURVES, {"night": night}):
            curves.setdefault((row["entry"], row["step"], row["probe"]), []).append(row["mb"])
        rows = self._rows(query("memory_of_a_night"), {"night": night})
        return [{**row, "curve": curves[row["entry"], row["step"], row["probe"]]} for row in rows]

    def _rows(self, sql: str, values: dict[str, Any]) -> list[Row]:
        return [dict(row) for row in self.conn.execute(sql, values)]


def in_one_go(conn: sqlite3.Connection, ask: Callable[[], T]) -> T:
    """An answer from one state of the journal, though a night writes meanwhile."""
    conn.execute("BEGIN")
    try:
        return ask()
    finally:
        conn.execute("ROLLBACK")


def _only(rows: Iterable[Row], entry: int) -> list[Row]:
    return [row for row in rows if row["entry"] == entry]
