"""A comparison for people and for programs."""

from __future__ import annotations

from typing import Any

import attrs

from runq.comparing.comparison import Comparison, Row


def to_data(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON data."""
    rows = [
        {**attrs.asdict(row), "difference": None if row.difference is None else round(row.difference, 6)}
        for row in found.rows
    ]
    return {
        "a": found.a.name,
        "b": found.b.name,
        "kind": found.a.kind,
        "alpha": found.alpha,
        "rows": rows,
        "regressions": sum(row.verdict == "worse" for row in found.rows),
        "only_a": list(found.only_a),
        "only_b": list(found.only_b),
        "notes": [attrs.asdict(note) for note in found.notes],
    }


def show(found: Comparison) -> None:
    """A table per entry, and what is worse at the end."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from runq.logs import one_line

    console = Console()
    for key in dict.fromkeys(row.of for row in found.rows):
        table = Table("", title=one_line(key), title_justify="left")
        table.add_column(one_line(found.a.name), justify="right", overflow="fold")
        table.add_column(one_line(found.b.name), justify="right", overflow="fold")
        table.add_column("change", justify="right")
        table.add_column("beyond chance")
        for row in (row for row in found.rows if row.of == key):
            cells = [
                row.name,
                _figure(row, row.a, proven=row.a_proven),
                _figure(row, row.b, proven=row.b_proven),
                _change(row),
                _chance(row),
            ]
            style = {"worse": "red", "better": "green"}.get(row.verdict, "")
            table.add_row(*[Text(one_line(cell)) for cell in cells], style=style)
        console.print(table)
    for note in found.notes:
        console.print(Text(one_line(f"note: {note.of}: {note.text}")), soft_wrap=True)
    if any(row.what == "memory" and not (row.a_proven and row.b_proven) for row in found.rows):
        console.print("* the baseline is not proven: the figure may hold what an earlier model left", highlight=False)
    for side, only in ((found.a, found.only_a), (found.b, found.only_b)):
        if only:
            console.print(Text(f"only in {side.name}: {one_line('; '.join(only))}"), soft_wrap=True)
    if not found.rows:
        console.print("nothing that both have", highlight=False)
    worse = found.regressions
    words = [f"{row.name} of {row.of}" for row in worse]
    closing = f"worse: {one_line('; '.join(words))}" if worse else "nothing is worse beyond chance"
    console.print(Text(closing), soft_wrap=True)


def _figure(row: Row, value: float | str | None, *, proven: bool) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if row.what == "seconds":
        return f"{value:.1f} s"
    if row.what == "memory":
        return f"{value:.0f} MB" + ("" if proven else "*")
    return f"{value:.4g}"


def _change(row: Row) -> str:
    if row.difference is None:
        return "" if row.a == row.b else "changed"
    if row.what == "score":
        return f"{row.difference:+.4g}"
    assert isinstance(row.a, int | float)  # noqa: S101 - for the type checker
    share = f" ({row.difference / row.a:+.0%})" if row.a else ""
    unit = " s" if row.what == "seconds" else " MB"
    return f"{row.difference:+z.1f}{unit}{share}"


def _chance(row: Row) -> str:
    if row.what == "status":
        return row.verdict
    if row.what != "score":
        return ""
    if row.p is None:
        return "cannot be told"
    how = f"p = {row.p:.2g}"
    if row.pairs is not None:
        how += f", {row.better} better and {row.worse} worse of {row.pairs}"
    elif row.low is not None and row.high is not None:
        how += f", {row.low:+.3g} to {row.high:+.3g}"
    return f"{row.verdict}, {how}" if row.verdict else f"no, {how}"
