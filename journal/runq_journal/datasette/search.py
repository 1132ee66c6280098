"""Full-text search over what events say: reasons, warnings, remedies, and the last lines of logs.

The journal is opened read-only and has no index of its own, so the index lives in this process's memory. It is brought
up to date with each search, by the events written since.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from markupsafe import Markup, escape

from runq_journal.view_rows import Row

FOUND_AT_ONCE = 50

SHORTEST_TERM = 3
"""Characters of a term that the index can find: it holds every three in a row
(https://sqlite.org/fts5.html#the_trigram_tokenizer). Shorter ones are looked for among what the others find."""

_WORD = re.compile(r'"([^"]+)"?|(\S+)')

_SAID = """
SELECT id, night, at, kind, entry, step, attempt,
  coalesce(json_extract(data, '$.status'), json_extract(data, '$.verdict'), '') AS status,
  concat_said AS said,
  coalesce((SELECT group_concat(line.value, char(10)) FROM json_each(data, '$.log_tail') AS line), '') AS log_tail
FROM (
  SELECT *, trim(
    coalesce(json_extract(data, '$.message'), '') || char(10)
    || coalesce(json_extract(data, '$.reason'), '') || char(10)
    || coalesce(json_extract(data, '$.problem'), '') || char(10)
    || coalesce(json_extract(data, '$.remedy'), '')
  , char(10)) AS concat_said
  FROM event
  -- Plans are large and say nothing that somebody looks for.
  WHERE id > ? AND kind NOT IN ('night.started', 'night.resumed', 'check.started', 'step.started', 'step.spawned')
)
WHERE concat_said <> '' OR json_array_length(data, '$.log_tail') > 0
ORDER BY id
"""

_COLUMNS = ("night", "at", "kind", "entry", "step", "attempt", "status", "model_id", "said", "log_tail")
_KEPT_ASIDE = ("at", "entry", "attempt")


@attrs.frozen
class Found:
    """What a search found.

    Args:
        rows: the newest first; each is an event with its model, ``said`` and ``log_tail``.
        more: whether there are older ones.
    """

    rows: list[Row]
    more: bool


class Index:
    """What the events of one journal say. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._conn = sqlite3.connect(":memory:", check_same_thread=False)
        self._conn.row_factory = sqlite3.Row
        self._last = 0
        self._reasons: dict[tuple[str, int | None], str] = {}
        columns = ", ".join(f"{name} UNINDEXED" if name in _KEPT_ASIDE else name for name in _COLUMNS)
        self._conn.execute(f"CREATE VIRTUAL TABLE found USING fts5({columns}, tokenize='trigram')")

    def search(self, conn: sqlite3.Connection, text: str, *, night: str = "", before: int = 0) -> Found:
        """The events in which every term of the text is found, in whatever they say.

        Args:
            conn: of the journal, with the views.
            text: terms; several words within double quotes are one.
            night: only of this night; empty for all.
            before: only events with a smaller number; 0 for all.
        """
        with self._lock:
            self._update(conn)
            return self._find(terms(text), night, before)

    def _update(self, conn: sqlite3.Connection) -> None:
        new = [dict(zip(("id", *_SELECTED), row, strict=True)) for row in conn.execute(_SAID, (self._last,))]
        models: dict[tuple[str, int], str] = {}
        for night in {row["night"] for row in new}:
            for entry, model in conn.execute("SELECT entry, model_id FROM planned_entry WHERE night = ?", (night,)):
                models[night, entry] = model
        for row in new:
            if self._repeats(row):
                continue
            values = {**row, "model_id": models.get((row["night"], row["entry"]), "")}
            self._conn.execute(
                f"INSERT INTO found (rowid, {', '.join(_COLUMNS)}) VALUES (?{', ?' * len(_COLUMNS)})",  # noqa: S608
                (row["id"], *(values[name] for name in _COLUMNS)),
            )
        self._conn.commit()
        newest = conn.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0]
        self._last = max(self._last, int(newest))

    def _repeats(self, row: Row) -> bool:
        """Whether a step that was skipped, or an entry's end, only says again why the step before it failed."""
        where = (row["night"], row["entry"])
        if row["kind"] == "step.finished":
            self._reasons[where] = f"{row['step']}: {row['said']}"
        return row["kind"] in ("step.skipped", "entry.finished") and row["said"] == self._reasons.get(where)

    def _find(self, wanted: Sequence[str], night: str, before: int) -> Found:
        if not wanted:
            return Found([], more=False)
        where, values = ["1"], []
        indexed = [term for term in wanted if len(term) >= SHORTEST_TERM]
        if indexed:
            where.append("found MATCH ?")
            values.append(" AND ".join('"' + term.replace('"', '""') + '"' for term in indexed))
        for term in wanted:
            if len(term) < SHORTEST_TERM:
                searched = " || ' ' || ".join(f"coalesce({name}, '')" for name in _COLUMNS if name not in _KEPT_ASIDE)
                where.append(f"instr(lower({searched}), lower(?)) > 0")
                values.append(term)
        if night:
            where.append("night = ?")
            values.append(night)
        if before:
            where.append("rowid < ?")
            values.append(str(before))
        rows = self._conn.execute(
            f"SELECT rowid AS event, * FROM found WHERE {' AND '.join(where)} ORDER BY rowid DESC LIMIT ?",  # noqa: S608
            (*values, FOUND_AT_ONCE + 1),
        ).fetchall()
        return Found([dict(row) for row in rows[:FOUND_AT_ONCE]], more=len(rows) > FOUND_AT_ONCE)


_SELECTED = ("night", "at", "kind", "entry", "step", "attempt", "status", "said", "log_tail")


def terms(text: str) -> list[str]:
    """What is looked for: words, and what stands within double quotes as one."""
    return [phrase or word for phrase, word in _WORD.findall(text.replace("\0", " "))]


def marked(text: str, wanted: Sequence[str]) -> Markup:
    """The text with what was found in it marked."""
    found = _pattern(wanted)
    if found is None:
        return escape(text)
    parts, at = [], 0
    for match in found.finditer(text):
        parts += [escape(text[at : match.start()]), Markup("<mark>{}</mark>").format(match[0])]
        at = match.end()
    return Markup("").join([*parts, escape(text[at:])])


def lines_around(text: str, wanted: Sequence[str], around: int = 2) -> list[str]:
    """The lines in which something was found, with those around them; ``…`` for what is left out. All when none was."""
    lines, found = text.split("\n"), _pattern(wanted)
    hits = [at for at, line in enumerate(lines) if found is not None and found.search(line)]
    if not hits:
        return lines
    return list(_with_gaps(lines, {at for hit in hits for at in range(hit - around, hit + around + 1)}))


def _with_gaps(lines: Sequence[str], kept: set[int]) -> Iterator[str]:
    for at, line in enumerate(lines):
        if at in kept:
            yield line
        elif at == 0 or at - 1 in kept:
            yield "…"


def _pattern(wanted: Sequence[str]) -> re.Pattern[str] | None:
    # The longest first: of two terms that begin alike the longer is marked whole.
    words = sorted({term for term in wanted if term}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, words)), re.IGNORECASE) if words else None


def result(row: Row, wanted: Sequence[str]) -> dict[str, Any]:
    """A found event as the page shows it."""
    return {
        **row,
        "said": [marked(line, wanted) for line in row["said"].split("\n") if line],
        "log_tail": Markup("\n").join(marked(line, wanted) for line in lines_around(row["log_tail"], wanted)),
        "model_id": marked(row["model_id"], wanted),
    }
