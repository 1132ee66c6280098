"""Scores against what they cost: memory and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runq.comparing.comparison import lower_is_better
from runq.logs import one_line
from runq.report.best import Comparable, comparable, worked_s
from runq.report.figures import Heading, Key, Picture, Section, Table
from runq.report.gathered import Gathered
from runq.report.table import UNPROVEN, Cell
from runq.report.time_figure import unit_for
from runq.scores import metric_text, score_text
from runq.text import duration

MOST = 6
"""So many scores have a picture; all are in the table of scores."""

Entry = Mapping[str, Any]


def quality(found: Gathered) -> Section | None:
    """The section; ``None`` where no score is had by two entries."""
    groups = comparable(found.entries)
    if not groups:
        return None
    return Section(
        id="quality",
        title="Quality against memory and time",
        about="Each step's first score, pack by pack, against the model delta of the entry's first step and the time of"
        " all its steps. Point at an entry to see its figures.",
        pictures=[_picture(number, group) for number, group in enumerate(groups[:MOST])],
        table=_table(groups),
    )


def _picture(number: int, group: Comparable) -> Picture:
    unit, seconds_of_unit = unit_for(max((worked_s(entry) or 0.0 for entry, _ in group.members), default=0.0))
    rows = [_row(entry, metric, seconds_of_unit) for entry, metric in group.members]

    def draw(size: Any) -> Any:
        from runq.report import charts

        shown = [{**row, "name": row["name"].partition(" ")[0]} for row in rows] if size.narrow else rows
        return charts.quality(shown, size, score=one_line(group.name), unit=unit)

    extreme = min if lower_is_better(group.name) else max
    best, metric = extreme(group.members, key=lambda member: member[1]["value"])
    unproven = [row for row in rows if row["mb"] is not None and not row["proven"]]
    on = f", {one_line(group.pack)}" if group.pack else ""
    return Picture(
        id=f"quality-{number}",
        heading=f"{one_line(group.name)} of {group.step}{on}",
        label=f"{one_line(group.name)} of {group.step}{on}: against memory and time",
        text=f"{len(rows)} entries; the best is e{best['id']} {one_line(best['model_id'])} with"
        f" {score_text(metric['value'])}. The table below the picture has the figures.",
        legend=[Key("var(--step-0)", "ring", f"its baseline is {UNPROVEN}")] if unproven else [],
        draw=draw,
    )


def _row(entry: Entry, metric: Mapping[str, Any], seconds_of_unit: float) -> dict[str, Any]:
    seconds, mb = worked_s(entry), entry["model_delta_mb"]
    proven = "" if entry["baseline_proven"] else f" ({UNPROVEN})"
    cost = [] if mb is None else [f"{mb:,.1f} MB{proven}"]
    cost += [] if seconds is None else [duration(seconds)]
    name = f"e{entry['id']} {one_line(entry['model_id'])}"
    return {
        "name": name,
        "score": metric["value"],
        "mb": mb,
        "time": None if seconds is None else round(seconds / seconds_of_unit, 4),
        "proven": entry["baseline_proven"],
        "about": f"{name}: {metric_text(metric)}, {', '.join(cost)}",
    }


def _table(groups: Sequence[Comparable]) -> Table:
    rows = []
    for group, entry, metric in ((one, *member) for one in groups for member in one.members):
        mb, seconds = entry["model_delta_mb"], worked_s(entry)
        rows.append(
            [
                Cell(f"e{entry['id']}"),
                Cell(one_line(entry["model_id"])),
                Cell(one_line(entry["pack"] or "")),
                Cell(one_line(f"{group.step} {metric['name']}")),
                Cell(score_text(metric["value"]), value=metric["value"]),
                Cell() if mb is None else Cell(f"{mb:,.1f}", value=mb, unproven=not entry["baseline_proven"]),
                Cell() if seconds is None else Cell(duration(seconds), value=seconds),
            ]
        )
    return Table(
        caption="Scores, and what they cost",
        headings=[
            Heading("entry"),
            Heading("model"),
            Heading("pack"),
            Heading("score"),
            Heading("value", True),
            Heading("model delta MB", True),
            Heading("all steps", True),
        ],
        rows=rows,
    )
