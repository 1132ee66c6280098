"""What is exported, in which form, and where it goes."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import attrs

from runq.exporting.lines import write_csv, write_jsonl
from runq.paths import not_the_journal, private_folder
from runq.replay import chosen_night
from runq_journal.reader import JournalReader
from runq_journal.tables import TABLES, Table
from runq_schemas.errors import UsageError

FORMS = ("csv", "jsonl", "parquet")

_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


@attrs.frozen(kw_only=True)
class Exported:
    """A file that was written: its table, and how many rows it holds. ``path`` is ``None`` for standard output."""

    table: str
    path: Path | None
    rows: int


def form_of(form: str | None, output: Path | None) -> str:
    """The form asked for, else what the file's name says, else JSON Lines."""
    return form or (_SUFFIXES.get(output.suffix.lower()) if output else None) or "jsonl"


def export(
    journal: Path,
    tables: Sequence[str],
    *,
    form: str,
    nights: Collection[str],
    output: Path | None,
    stdout: IO[str],
) -> Iterator[Exported]:
    """Write tables, each whole or not at all, all of one moment of the journal. Memory does not grow with the rows.

    Args:
        journal: the file.
        tables: names in `TABLES`.
        form: ``csv``, ``jsonl`` or ``parquet``.
        nights: ids or folders; all when there is none.
        output: the file of one table, or the folder of several; ``None`` for standard output.
        stdout: standard output.

    Raises:
        UsageError: there is no such night, it cannot go there, or pyarrow is missing.
    """
    with JournalReader.open(journal) as reader, reader.snapshot():
        chosen = tuple(dict.fromkeys(chosen_night(reader, night) for night in nights))
        if output is None:
            name = _only(tables, form)
            # Closed before the journal is, also when whoever reads our output goes.
            with contextlib.closing(reader.rows(TABLES[name], chosen)) as rows:
                count = _lines(form)(TABLES[name], rows, stdout)
            yield Exported(table=name, path=None, rows=count)
            return
        for name in tables:
            path = output / f"{name}.{form}" if len(tables) > 1 else output
            _refuse(path, journal)
            try:
                with _replaced(path) as temporary, contextlib.closing(reader.rows(TABLES[name], chosen)) as rows:
                    count = _written(TABLES[name], rows, form, temporary)
            except OSError as error:
                raise UsageError(
                    f"{path} cannot be written: {error.strerror or error}", remedy="give another place with -o"
                ) from error
            yield Exported(table=name, path=path, rows=count)


def _only(tables: Sequence[str], form: str) -> str:
    if len(tables) > 1:
        raise UsageError("several tables need a folder", remedy="give one with -o DIR, or name one table")
    if form == "parquet":
        raise UsageError("Parquet is no text to print", remedy="give a file with -o FILE")
    return tables[0]


WritesLines = Callable[[Table, Iterable[tuple[Any, ...]], IO[str]], int]


def _lines(form: str) -> WritesLines:
    return write_csv if form == "csv" else write_jsonl


def _written(table: Table, rows: Iterable[tuple[Any, ...]], form: str, path: Path) -> int:
    if form == "parquet":
        from runq.exporting.columns import write_parquet

        return write_parquet(table, rows, path)
    with path.open("w", encoding="utf-8", newline="") as stream:
        return _lines(form)(table, rows, stream)


def _refuse(path: Path, journal: Path) -> None:
    """Nothing may take the journal's own place.

    Raises:
        UsageError: it would.
    """
    not_the_journal(path, journal)
    if path.is_dir():
        raise UsageError(f"{path} is a folder", remedy="give a file with -o FILE, or no table for all of them")


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """A file to write, for its user alone, that takes the place of ``path`` when it is whole."""
    private_folder(path.parent)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
