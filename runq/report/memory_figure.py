"""Memory over the night: a picture for each probe, and what each attempt took."""

from __future__ import annotations

from typing import Any

from runq.logs import one_line
from runq.report import memory_rows
from runq.report.figures import Heading, Key, Picture, Section, Table, step_variables
from runq.report.gathered import Gathered
from runq.report.table import Cell, step_names


def memory(found: Gathered) -> Section | None:
    """The section; ``None`` where no probe has told anything."""
    probes = memory_rows.probes(found)
    pictures = [picture for probe in probes for picture in _pictures(found, probe, several=len(probes) > 1)]
    if not pictures:
        return None
    return Section(
        id="memory",
        title="Memory through the night",
        about="Readings of the whole night, and the baseline that each model delta is measured from."
        " Point at a band or a baseline to see what it is.",
        pictures=pictures,
        table=_table(found),
    )


def colours(found: Gathered) -> dict[str, str]:
    """What a band is, and its colour."""
    steps = {memory_rows.step_colour(name): hue for name, hue in step_variables(step_names(found.entries)).items()}
    return {"reset": "var(--reset)", "settle": "var(--settle)", "other": "var(--other)", **steps}


def _pictures(found: Gathered, probe: str, *, several: bool) -> list[Picture]:
    panels = memory_rows.panels(found, probe)
    if not panels:
        return []
    hues = colours(found)

    def draw(size: Any) -> Any:
        from runq.report import charts

        return charts.memory(panels, hues, size)

    name = one_line(probe)
    return [
        Picture(
            id=f"memory-{memory_rows.probes(found).index(probe)}",
            heading=f"Probe {name}" if several else "",
            label=f"Memory through the night, probe {name}",
            text=_text(found, probe, panels),
            legend=_legend(found, panels),
            draw=draw,
        )
    ]


def _text(found: Gathered, probe: str, panels: list[memory_rows.Panel]) -> str:
    """The picture in words; the highest reading is the view's own."""
    levels = [row["mb"] for panel in panels for row in panel.baselines]
    parts = []
    if levels:
        low, high = min(levels), max(levels)
        parts.append(f"Baselines from {low:,.0f} to {high:,.0f} MB." if high > low else f"Baseline {low:,.0f} MB.")
    peaks = [row for row in found.deltas if row["probe"] == probe]
    if peaks:
        top = max(peaks, key=lambda row: row["peak_mb"])
        parts.append(f"The highest reading is {top['peak_mb']:,.0f} MB, in {top['step']} of e{top['entry']}.")
    return " ".join([*parts, "The table below the picture has the figures."])


def _legend(found: Gathered, panels: list[memory_rows.Panel]) -> list[Key]:
    drawn = {row["colour"] for panel in panels for row in panel.bands}
    words = {"reset": "reset", "settle": "settle", "other": "waiting"}
    keys = [
        Key(hue, "area", words.get(name, name.removeprefix("step ")))
        for name, hue in colours(found).items()
        if name in drawn
    ]
    baselines = {row["proven"] for panel in panels for row in panel.baselines}
    keys.append(Key("var(--curve)", "line", "memory"))
    keys += [Key("var(--base)", "line", "baseline, proven")] if True in baselines else []
    keys += [Key("var(--unproven)", "dashes", "baseline, not proven")] if False in baselines else []
    keys += [Key("var(--bad)", "cross", "not complete")] if any(row["bad"] for p in panels for row in p.entries) else []
    return keys


def _table(found: Gathered) -> Table:
    models = {entry["id"]: one_line(entry["model_id"]) for entry in found.entries}
    return Table(
        caption="Memory of each attempt, by probe, in MB",
        headings=[
            Heading("entry"),
            Heading("model"),
            Heading("attempt"),
            Heading("probe"),
            Heading("baseline", True),
            Heading("peak", True),
            Heading("model delta", True),
        ],
        rows=[
            [
                Cell(f"e{row['entry']}"),
                Cell(models.get(row["entry"], "")),
                Cell(f"{row['step']} {row['attempt']}", word=row["status"]),
                Cell(one_line(row["probe"])),
                _mb(row, "baseline_mb"),
                Cell(f"{row['peak_mb']:,.1f}", value=row["peak_mb"]),
                _mb(row, "model_delta_mb"),
            ]
            for row in found.deltas
        ],
    )


def _mb(row: dict[str, Any], name: str) -> Cell:
    value = row[name]
    return Cell() if value is None else Cell(f"{value:,.1f}", value=value, unproven=not row["baseline_proven"])
