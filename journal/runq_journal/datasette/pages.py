"""What stands on the front page, on a night's and on an entry's: values, read from the views in one go."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import attrs

from runq_journal.datasette import beside
from runq_journal.datasette.about import query
from runq_journal.datasette.search import Index, result, terms
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

    def search(self, index: Index, text: str, night: str, before: int) -> Row:
        """The page of a search."""
        wanted = terms(text)
        found = index.search(self.conn, text, night=night, before=before)
        return {
            "text": text,
            "night": night,
            "nights": self.reader.night_ids(),
            "results": [result(row, wanted) for row in found.rows],
            "more": found.rows[-1]["event"] if found.more else None,
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
            "attempts": [
                {**row, "log_tail": tails.get((row["step"], row["attempt"]))} for row in self._found(attempts, night)
            ],
            "servers": self._found(_only(self.reader.servers(night), number), night),
            "baselines": _only(self.reader.view("baseline", night), number),
            "warnings": _only(self.reader.warnings(night), number),
            "memory": _only(self._memory(night), number),
            "timeline": timeline,
        }

    def log(self, night: str, number: int, step: str, attempt: int, *, server: bool = False) -> Row | None:
        """The page of a log; ``None`` when there is no such attempt, or its log is not in the runs folder."""
        row = self._attempt(night, number, step, attempt, server=server)
        path = self._place(row["log"], self._plan(night)) if row else None
        if row is None or path is None:
            return None
        found = self._text(path, end=True)
        what = f"{'server for ' if server else ''}{step}, attempt {attempt}"
        return None if found is None else {**_where(row), **found, "what": f"Log of {what}", "path": row["log"]}

    def bundle(self, night: str, number: int, step: str, attempt: int, within: str) -> Row | None:
        """The files that an attempt wrote, or one of them; ``None`` when they are not in the runs folder."""
        row = self._attempt(night, number, step, attempt)
        folder = self._place(row["bundle"], self._plan(night)) if row else None
        if row is None or folder is None or not folder.is_dir():
            return None
        if not within:
            return {**_where(row), "path": row["bundle"], "files": beside.listed(folder), "most": beside.MOST_FILES}
        path = beside.inside(folder, within)
        found = self._text(path, end=False) if path is not None else None
        return None if found is None else {**_where(row), **found, "what": within, "path": f"{row['bundle']}/{within}"}

    def _attempt(self, night: str, number: int, step: str, attempt: int, *, server: bool = False) -> Row | None:
        rows = _only(self.reader.servers(night), number) if server else self.reader.attempts_of(night, number, step)
        return next((row for row in rows if (row["step"], row["attempt"]) == (step, attempt)), None)

    def _plan(self, night: str) -> Row:
        return self.reader.latest_plan(night) if self.reader.view("night_plan", night) else {}

    def _place(self, recorded: str | None, plan: Row) -> Path | None:
        return beside.place(recorded, plan, self.journal.parent)

    def _text(self, path: Path, *, end: bool) -> Row | None:
        try:
            shown = beside.shown(path, end=end) if path.is_file() else None
        except OSError:  # not ours to read
            return None
        return None if shown is None else {"text": self.starter.clean(shown.text), **_sizes(shown, end=end)}

    def _found(self, rows: list[Row], night: str) -> list[Row]:
        """Rows with a log and perhaps a bundle, and whether each can be shown: it may be elsewhere, or pruned."""
        plan = self._plan(night) if rows else {}
        return [
            {
                **row,
                "log_shown": bool((log := self._place(row["log"], plan)) and log.is_file()),
                "bundle_shown": bool((bundle := self._place(row.get("bundle"), plan)) and bundle.is_dir()),
            }
            for row in rows
        ]

    def _durations(self) -> list[Row]:
        rows = self.reader.view("duration_estimate")
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
            "failures": self._found(list(reversed(self.reader.failures(name))), name),
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


def _where(row: Row) -> Row:
    return {name: row[name] for name in ("night", "entry", "step", "attempt")}


def _sizes(shown: beside.Shown, *, end: bool) -> Row:
    return {"size": shown.size, "left_out": shown.left_out, "from_end": end}


def _only(rows: Iterable[Row], entry: int) -> list[Row]:
    return [row for row in rows if row["entry"] == entry]
