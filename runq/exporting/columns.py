"""Rows as Parquet, by pyarrow (extra ``parquet``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from runq_journal.tables import Column, Table
from runq_schemas.errors import JournalError, UsageError

GROUP_ROWS = 50_000
"""Rows of a row group, all that is ever held: a few MB of samples. Readers skip and share out whole groups, and
Parquet's own advice is large ones (parquet.apache.org/docs/file-format/configurations)."""


def write_parquet(table: Table, rows: Iterable[tuple[Any, ...]], path: Path) -> int:
    """Write a file, compressed with Zstandard. Each column carries its meaning and unit as ``about``.

    Times become timestamps in UTC (microseconds), JSON data stays text.

    Returns:
        How many rows were written.

    Raises:
        UsageError: pyarrow is not installed.
        JournalError: a time cannot be read.
        OSError: the file cannot be written.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError(
            f"Parquet needs pyarrow, which cannot be imported: {error}",
            remedy="pip install 'runq[parquet]', or choose --format csv or jsonl",
        ) from error
    schema = pa.schema([_field(pa, column) for column in table.columns], {"about": table.about})
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _groups(rows):
            columns = zip(*group, strict=True)
            arrays = [_array(pa, field, list(values)) for field, values in zip(schema, columns, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=GROUP_ROWS)
            count += len(group)
    return count


def _groups(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    waiting = iter(rows)
    while group := list(islice(waiting, GROUP_ROWS)):
        yield group


def _field(pa: Any, column: Column) -> Any:
    types = {
        "integer": pa.int64(),
        "real": pa.float64(),
        "boolean": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "text": pa.string(),
        "json": pa.string(),
    }
    return pa.field(column.name, types[column.type], metadata={"about": column.about})


def _array(pa: Any, field: Any, values: list[Any]) -> Any:
    if pa.types.is_timestamp(field.type):
        try:
            return pa.array(values, pa.string()).cast(field.type)
        except pa.ArrowInvalid as error:
            raise JournalError(
                f"a row's {field.name!r} is no time: {error}", remedy="`runq replay --verify` looks for what was edited"
            ) from error
    if pa.types.is_boolean(field.type):
        return pa.array([None if value is None else bool(value) for value in values], field.type)
    return pa.array(values, field.type)
