"""Rows as CSV and as JSON Lines, one at a time."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

from runq.text import harmless_json
from runq_journal.tables import Table


def write_csv(table: Table, rows: Iterable[tuple[Any, ...]], stream: IO[str]) -> int:
    """A header and a line per row (RFC 4180 with a bare line feed); nothing where there is no value.

    Booleans are ``true`` and ``false``, JSON data is its text. Values are exactly the journal's: for programs.

    Returns:
        How many rows were written.
    """
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(column.name for column in table.columns)
    flags = [at for at, column in enumerate(table.columns) if column.type == "boolean"]
    count = 0
    for count, row in enumerate(rows, start=1):  # noqa: B007 - the count is the answer
        writer.writerow(_named(row, flags) if flags else row)
    return count


def _named(row: tuple[Any, ...], flags: list[int]) -> list[Any]:
    cells = list(row)
    for at in flags:
        cells[at] = None if cells[at] is None else ("false", "true")[bool(cells[at])]
    return cells


def write_jsonl(table: Table, rows: Iterable[tuple[Any, ...]], stream: IO[str]) -> int:
    """A JSON object per row; JSON data stands in it as the object it is.

    Returns:
        How many rows were written.
    """
    count = 0
    for count, row in enumerate(rows, start=1):  # noqa: B007 - the count is the answer
        stream.write(harmless_json(f"{{{', '.join(_members(table, row))}}}") + "\n")
    return count


def _members(table: Table, row: tuple[Any, ...]) -> Iterator[str]:
    for column, value in zip(table.columns, row, strict=True):
        if column.type == "json" and value is not None:
            # As it stands in the journal, and on one line: no float is rounded, no letter is lost on a way through
            # Python. A line break in JSON's text is never part of a value.
            text = value.replace("\n", " ").replace("\r", " ")
        else:
            known = bool(value) if column.type == "boolean" and value is not None else value
            text = json.dumps(known, ensure_ascii=False)
        yield f"{json.dumps(column.name)}: {text}"
