"""What changed since the night before: the same queue file's last night, compared as `runq compare` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runq.comparing.comparison import Comparison, Row, compare
from runq.logs import one_line
from runq.report.figures import Heading, Table
from runq.report.table import Cell
from runq.scores import score_text

if TYPE_CHECKING:
    from runq_journal.reader import JournalReader


def since(reader: JournalReader, night: str) -> Comparison | None:
    """The comparison with the night of the same queue file that began before; ``None`` where there is none."""
    from runq.comparing.sides import night_before, side_of
    from runq.discovery import Plugins

    earlier, plugins = night_before(reader, night), Plugins()
    if earlier is None:
        return None
    return compare(side_of(reader, earlier, plugins), side_of(reader, night, plugins))


def changed(found: Comparison) -> list[Row]:
    """The rows worth telling: an entry that ended otherwise, a score that differs beyond chance."""
    return [row for row in found.rows if row.verdict or (row.what == "status" and row.a != row.b)]


def in_words(row: Row) -> str:
    """A changed row for the top of the page."""
    of = one_line(row.of).replace("`", "'")
    if row.what == "status":
        return f"{of} is {row.b}, was {row.a}"
    return f"{one_line(row.name)} of {of} is {_score(row.b)}, was {_score(row.a)}"


def table(found: Comparison) -> Table:
    """The changed rows."""
    return Table(
        caption=f"What is not as it was in night {found.a.name}",
        headings=[Heading("entry"), Heading("what"), Heading("before"), Heading("now"), Heading("meaning")],
        rows=[
            [
                Cell(one_line(row.of)),
                Cell("result" if row.what == "status" else one_line(row.name)),
                _cell(row, row.a),
                _cell(row, row.b),
                Cell(word="" if row.what == "status" else row.verdict, text=_chance(row)),
            ]
            for row in changed(found)
        ],
    )


def _cell(row: Row, value: float | str | None) -> Cell:
    if isinstance(value, str):
        return Cell(word=value)
    return Cell() if value is None else Cell(score_text(value), value=value)


def _score(value: float | str | None) -> str:
    return score_text(value) if isinstance(value, int | float) else str(value)


def _chance(row: Row) -> str:
    if row.p is None:
        return ""
    pairs = "" if row.pairs is None else f", {row.better} answers better and {row.worse} worse of {row.pairs}"
    return f"beyond chance, p = {row.p:.2g}{pairs}"
