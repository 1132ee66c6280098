"""The plots, in Altair, which is imported only where one is drawn: it is an extra.

Colours are the page's own variables, so that one picture is right in light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from runq.report.labels import WIDTH, place
from runq.report.memory_rows import Panel

if TYPE_CHECKING:
    import altair as alt

Row = dict[str, Any]

Chart = Any
"""An Altair chart of whatever class."""


@attrs.frozen
class Plot:
    """A chart that names its data, and the data. Altair copies what is inside a chart again and again."""

    chart: Chart
    datasets: dict[str, list[Row]]


@attrs.define
class _Datasets:
    """Gives rows a name."""

    rows: dict[str, list[Row]] = attrs.field(factory=dict)

    def __call__(self, rows: Sequence[Row]) -> alt.NamedData:
        import altair as alt

        name = f"rows-{len(self.rows)}"
        self.rows[name] = [
            {key: _stamp(value) if hasattr(value, "isoformat") else value for key, value in row.items()} for row in rows
        ]
        return alt.NamedData(name=name)


@attrs.frozen(kw_only=True)
class Size:
    """How wide a picture is drawn, in pixels at which its text is 12 high."""

    name: str
    width: int
    narrow: bool


SIZES = (Size(name="wide", width=1150, narrow=False), Size(name="narrow", width=340, narrow=True))
"""The same plot twice: text that is scaled down with its picture cannot be read on a phone."""

INK, SOFT, GRID = "var(--ink)", "var(--soft)", "var(--grid)"


def memory(panels: Sequence[Panel], colours: Mapping[str, str], size: Size) -> Plot:
    """Memory over the time of the night: bands, baselines and the curve, a panel for each stretch.

    Args:
        panels: of one probe.
        colours: what a band is, and its colour.
        size: of the picture.
    """
    import altair as alt

    data = _Datasets()
    charts = [_memory_panel(panel, colours, size, data, many=len(panels) > 1) for panel in panels]
    return Plot(_finished(alt.vconcat(*charts)), data.rows)


def _memory_panel(panel: Panel, colours: Mapping[str, str], size: Size, data: _Datasets, *, many: bool) -> Chart:
    import altair as alt

    width, height = size.width - 70, 240 if size.narrow else 300
    scale = alt.Scale(type="utc", domain=[_stamp(panel.start), _stamp(panel.end)], nice=False)
    axis = alt.Axis(format=_clock(panel.seconds), tickCount=4 if size.narrow else 10, title=None, labelFlush=True)
    x, at = alt.X("start:T", scale=scale, axis=axis), alt.X("at:T", scale=scale, axis=axis)
    y = alt.Y("mb:Q", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(title="MB", format=",.0f", tickCount=6))
    hue = alt.Color("colour:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=None)
    bands = alt.Chart(data(panel.bands)).encode(x=x, x2="end:T", color=hue, description="about:N")
    strip, names = 9, 24
    layers = [
        bands.mark_rect(opacity=0.16).encode(y=alt.value(0), y2=alt.value(height)),
        bands.mark_rect().encode(y=alt.value(-strip - 3), y2=alt.value(-3)),
        alt.Chart(data(_spread(panel, width)))
        .mark_text(aria=False, align="left", baseline="bottom", dy=-strip - 6, fontSize=12, fontWeight=600)
        .encode(
            x=at,
            y=alt.value(0),
            text="name:N",
            color=alt.condition("datum.bad", alt.value("var(--bad)"), alt.value(INK)),
        ),
        alt.Chart(data(panel.points))
        .mark_line(aria=False, color="var(--curve)", strokeWidth=1.4, strokeJoin="round")
        .encode(x=at, y=y, detail="part:N"),
        alt.Chart(data(panel.baselines))
        .mark_rule(strokeWidth=2.5)
        .encode(
            x=x,
            x2="end:T",
            y=y,
            description="about:N",
            color=alt.condition("datum.proven", alt.value("var(--base)"), alt.value("var(--unproven)")),
            strokeDash=alt.condition("datum.proven", alt.value([1, 0]), alt.value([5, 4])),
        ),
    ]
    chart = alt.layer(*layers).properties(width=width, height=height)
    return chart.properties(title=alt.Title(panel.title, anchor="start", offset=names)) if many else chart


def _spread(panel: Panel, width: int) -> list[Row]:
    """The names that have room, from left to right; one that failed is marked also for who sees no colour."""
    kept: list[Row] = []
    free = 0.0
    for row in panel.entries:
        name = f"{row['name']} ✕" if row["bad"] else row["name"]
        at = (row["at"] - panel.start).total_seconds() / panel.seconds * width
        if free <= at <= width:
            kept.append({**row, "name": name})
            free = at + WIDTH * (len(name) + 1)
    return kept


def time_bars(rows: Sequence[Row], colours: Mapping[str, str], size: Size, *, unit: str) -> Plot:
    """How long each entry took, a bar of its parts.

    Args:
        rows: ``entry`` (its name), ``colour`` (which part), ``order``, ``value`` in ``unit``, ``about``.
        colours: the parts, and their colours.
        size: of the picture.
        unit: of ``value``: s, min or h.
    """
    import altair as alt

    data = _Datasets()
    names = list(dict.fromkeys(row["entry"] for row in rows))
    room = 110 if size.narrow else 240
    step = 26 if len(names) <= 40 else 16
    chart = (
        alt.Chart(data(rows))
        .mark_bar(height={"band": 0.72})
        .encode(
            y=alt.Y("entry:N", sort=names, title=None, axis=alt.Axis(labelLimit=room, ticks=False, domain=False)),
            x=alt.X("value:Q", title=unit, axis=alt.Axis(tickCount=4 if size.narrow else 10, orient="bottom")),
            color=alt.Color(
                "colour:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=None
            ),
            order="order:Q",
            description="about:N",
        )
        .properties(width=size.width - room - 20, height=step * len(names))
    )
    return Plot(_finished(alt.vconcat(chart)), data.rows)


def quality(rows: Sequence[Row], size: Size, *, score: str, unit: str) -> Plot:
    """A score against memory, and against time.

    Args:
        rows: ``name``, ``score``, ``mb`` or ``None``, ``time`` in ``unit`` or ``None``, ``proven``, ``about``.
        size: of the picture.
        score: the score's name.
        unit: of ``time``: s, min or h.
    """
    sides = [
        ("mb", "model delta, MB", [row for row in rows if row["mb"] is not None]),
        ("time", f"time of all steps, {unit}", [row for row in rows if row["time"] is not None]),
    ]
    import altair as alt

    data = _Datasets()
    charts = [_scatter(column, title, some, size, score, data) for column, title, some in sides if some]
    return Plot(_finished(alt.vconcat(*charts) if size.narrow else alt.hconcat(*charts, spacing=36)), data.rows)


def _scatter(column: str, title: str, rows: Sequence[Row], size: Size, score: str, data: _Datasets) -> Chart:
    import altair as alt

    width, height = (size.width - 75, 230) if size.narrow else ((size.width - 170) // 2, 250)
    across, up = _domain([row[column] for row in rows]), _domain([row["score"] for row in rows])
    base = alt.Chart(data(rows)).encode(
        x=alt.X(f"{column}:Q", title=title, scale=alt.Scale(domain=across, nice=False), axis=alt.Axis(tickCount=5)),
        y=alt.Y("score:Q", title=score, scale=alt.Scale(domain=up, nice=False), axis=alt.Axis(tickCount=5)),
    )
    # What stands on the baseline is the memory; a time is a time.
    hollow = alt.condition("datum.proven", alt.value("var(--step-0)"), alt.value("var(--sheet)"))
    fill = hollow if column == "mb" else alt.value("var(--step-0)")
    points = base.mark_point(size=80, strokeWidth=2, opacity=1, color="var(--step-0)").encode(
        fill=fill, description="about:N"
    )
    names = _names(rows, column, (across, up), width, height)
    named = alt.Chart(data(names)).mark_text(aria=False, align="left", fontSize=12, color=INK)
    text = named.encode(x=f"{column}:Q", y="score:Q", text="name:N")
    return alt.layer(points, text).properties(width=width, height=height)


def _domain(values: Sequence[float]) -> list[float]:
    """The values with some room around them, also where there is only one."""
    low, high = min(values), max(values)
    room = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    return [low - room, high + room]


def _names(
    rows: Sequence[Row], column: str, domains: tuple[list[float], list[float]], width: int, height: int
) -> list[Row]:
    """The names that have room, at the places of the plot where they begin."""
    (left, right), (low, high) = domains
    points = [
        ((row[column] - left) / (right - left) * width, (high - row["score"]) / (high - low) * height, row["name"])
        for row in rows
    ]
    return [
        {column: left + x / width * (right - left), "score": high - y / height * (high - low), "name": row["name"]}
        for row, (x, y) in ((row, spot) for row, spot in zip(rows, place(points, width, height), strict=True) if spot)
    ]


def _stamp(moment: Any) -> str:
    """A time on the night's own clock, told as if it were UTC: no other clock may shift it again."""
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def _clock(seconds: float) -> str:
    if seconds < 20 * 60:
        return "%H:%M:%S"
    return "%H:%M" if seconds < 36 * 3600 else "%-d %b %H:%M"


def _finished(chart: Chart) -> Chart:
    return (
        chart.configure(
            background="transparent",
            padding={"left": 10, "top": 2, "right": 4, "bottom": 2},
            font="system-ui, sans-serif",
        )
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=SOFT,
            titleColor=SOFT,
            gridColor=GRID,
            domainColor=GRID,
            tickColor=GRID,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=12,
        )
        .configure_title(color=INK, fontSize=13)
    )
