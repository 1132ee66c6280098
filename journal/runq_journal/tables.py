"""What of a journal is given away row by row: its tables and columns, with their types and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import attrs

ColumnType = Literal["integer", "real", "text", "boolean", "time", "json"]
"""``time`` is ISO 8601 in UTC, ``json`` the text of JSON data, ``boolean`` 0 or 1 as SQLite keeps it."""


@attrs.frozen
class Column:
    """A column: its name, its type, and what it says."""

    name: str
    type: ColumnType
    about: str


@attrs.frozen(kw_only=True)
class Table:
    """A table whose rows can be read one by one, however many there are.

    Args:
        name: what it is called.
        about: what a row is.
        source: the table or view of the journal.
        order: by which its rows come; one that SQLite answers without holding them all.
        columns: in their order.
    """

    name: str
    about: str
    source: str
    order: str
    columns: tuple[Column, ...]

    def select(self, nights: int) -> str:
        """The statement that reads it, with a placeholder for each night; of all nights when there is none."""
        names = ", ".join(f'"{column.name}"' for column in self.columns)
        # The plus keeps SQLite on the order of the rows: by the index on nights it would have to sort them first.
        where = f" WHERE +night IN ({', '.join('?' * nights)})" if nights else ""
        return f"SELECT {names} FROM {self.source}{where} ORDER BY {self.order}"  # noqa: S608 - our own names only


_NIGHT = Column("night", "text", "the night's id, or the import's")
_ENTRY = Column("entry", "integer", "entry id, from 0")
_STEP = Column("step", "text", "the step's name")

_EVENTS = Table(
    name="events",
    about="every transition, as the journal has it",
    source="event",
    order="id",
    columns=(
        Column("id", "integer", "its number, from 1, without gaps"),
        _NIGHT,
        Column("at", "time", "when, UTC"),
        Column("elapsed_s", "real", "seconds on the monotonic clock since the writing process opened the journal"),
        Column("kind", "text", "the event's kind"),
        _ENTRY,
        _STEP,
        Column("attempt", "integer", "from 1"),
        Column("data", "json", "what the kind says"),
        Column("prev_hash", "text", "hash of the event before it"),
        Column("hash", "text", "sha256: and 64 hexadecimal digits"),
    ),
)

_SAMPLES = Table(
    name="samples",
    about="every reading of a memory probe while a step ran",
    source="sample",
    order="id",
    columns=(
        Column("id", "integer", "its number"),
        _NIGHT,
        Column("at", "time", "when, UTC"),
        _ENTRY,
        _STEP,
        Column("probe", "text", "the probe's name"),
        Column("mb", "real", "the whole figure it read, not less any baseline, in MB (2^20 bytes)"),
    ),
)

_METRICS = Table(
    name="metrics",
    about="every score of every ok attempt, imports included (view `metric`)",
    source="metric",
    order="event, entry, position",
    columns=(
        _NIGHT,
        _ENTRY,
        _STEP,
        Column("attempt", "integer", "from 1; none for an import"),
        Column("model_id", "text", "the model's id"),
        Column("config", "text", "the harness's configuration file, as written"),
        Column("pack", "text", "the pack, as written"),
        Column("position", "integer", "place among the scores of its step, from 0"),
        Column("name", "text", "the score's name"),
        Column("value", "real", "the score, as the harness writes it"),
        Column("stderr", "real", "its standard error"),
        Column("n", "integer", "how many samples it is over"),
        Column("newest", "boolean", "whether no later attempt has this score of this model, config, pack and step"),
        Column("imported", "boolean", "whether it was taken over by `runq import`"),
        Column("event", "integer", "number of the event that says so"),
        Column("at", "time", "when it was measured, UTC"),
    ),
)

TABLES: Mapping[str, Table] = MappingProxyType({table.name: table for table in (_EVENTS, _SAMPLES, _METRICS)})
"""Every such table, by name."""
