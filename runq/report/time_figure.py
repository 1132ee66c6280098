"""How long each entry took, and with what: a bar of its resets, settlings, waits and steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runq.logs import one_line
from runq.report.best import worked_s
from runq.report.figures import Heading, Key, Picture, Section, Table
from runq.report.gathered import Gathered
from runq.report.memory_figure import colours
from runq.report.memory_rows import colour, step_colour
from runq.report.table import Cell, step_names
from runq.text import duration

UNITS = (("s", 1.0, 300.0), ("min", 60.0, 3 * 3600.0), ("h", 3600.0, float("inf")))
"""A unit, its seconds, and up to which duration it is used."""

BESIDE = {"reset": "reset", "settle": "settle", "other": "waiting"}
"""What takes time beside the steps, and how it is called."""


def unit_for(longest_s: float) -> tuple[str, float]:
    """The unit in which a duration is told on an axis, and how many seconds it has."""
    return next((name, seconds) for name, seconds, upto in UNITS if longest_s <= upto)


def beside_s(found: Gathered, entry: int) -> dict[str, float]:
    """Seconds that an entry took beside its steps: in resets, in settling, in waiting."""
    taken = dict.fromkeys(BESIDE, 0.0)
    for band in found.bands:
        if band.entry == entry and band.what != "step":
            taken[colour(band)] += band.seconds
    return taken


def time(found: Gathered) -> Section | None:
    """The section; ``None`` where nothing has taken any time."""
    parts = {entry["id"]: _parts(found, entry) for entry in found.entries}
    totals = {number: sum(seconds for _, seconds, _ in mine) for number, mine in parts.items()}
    if not any(totals.values()):
        return None
    unit, seconds_of_unit = unit_for(max(totals.values()))
    hues, steps = colours(found), step_names(found.entries)
    order = {name: number for number, name in enumerate(hues)}
    rows = [
        {
            "entry": _name(entry),
            "colour": name,
            "order": order[name],
            "value": round(seconds / seconds_of_unit, 4),
            "about": f"e{entry['id']} {about}",
        }
        for entry in found.entries
        for name, seconds, about in parts[entry["id"]]
        if seconds > 0 or totals[entry["id"]] == 0  # an entry that never ran has its empty line too
    ]

    def draw(size: Any) -> Any:
        from runq.report import charts

        return charts.time_bars(rows, hues, size, unit=unit)

    drawn = {row["colour"] for row in rows}
    longest = max(found.entries, key=lambda entry: totals[entry["id"]])
    return Section(
        id="time",
        title="Time of each entry",
        about="All attempts of each step, and what came before them. Point at a part of a bar to see what it is.",
        pictures=[
            Picture(
                id="time-bars",
                label="Time of each entry",
                text=f"The longest is e{longest['id']} {one_line(longest['model_id'])} with"
                f" {duration(totals[longest['id']])}. The table below the picture has the figures.",
                legend=[
                    Key(hue, "area", BESIDE.get(name, name.removeprefix("step ")))
                    for name, hue in hues.items()
                    if name in drawn
                ],
                draw=draw,
            )
        ],
        table=_table(found, steps),
    )


def _name(entry: Mapping[str, Any]) -> str:
    return f"e{entry['id']} {one_line(entry['model_id'])}"


def _parts(found: Gathered, entry: Mapping[str, Any]) -> list[tuple[str, float, str]]:
    """What an entry's time went to: the part's colour, seconds, and words."""
    parts = [(name, s, f"{BESIDE[name]}, {duration(s)}") for name, s in beside_s(found, entry["id"]).items()]
    for step in entry["steps"]:
        seconds, tried = step["all_seconds"] or 0.0, len(step["attempts"])
        attempts = f" in {tried} attempts" if tried > 1 else ""
        parts.append(
            (step_colour(step["name"]), seconds, f"{step['name']} {step['status']}, {duration(seconds)}{attempts}")
        )
    return parts


def _table(found: Gathered, steps: Sequence[str]) -> Table:
    rows = []
    for entry in found.entries:
        known = {step["name"]: step["all_seconds"] for step in entry["steps"]}
        beside = beside_s(found, entry["id"])
        cells = [Cell(f"e{entry['id']}"), Cell(one_line(entry["model_id"]))]
        cells += [_cell(known.get(step)) for step in steps]
        cells += [_cell(worked_s(entry)), *(_cell(round(beside[name], 3) or None) for name in BESIDE)]
        rows.append(cells)
    return Table(
        caption="Time of each entry: its steps with all their attempts, and what came before them",
        headings=[
            Heading("entry"),
            Heading("model"),
            *(Heading(step, True) for step in steps),
            Heading("all steps", True),
            *(Heading(text, True) for text in BESIDE.values()),
        ],
        rows=rows,
    )


def _cell(seconds: float | None) -> Cell:
    return Cell() if seconds is None else Cell(duration(seconds), value=seconds)
