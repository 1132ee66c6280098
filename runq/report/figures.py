"""The page's pictures: each with a legend, a text that says the same, and its figures as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import attrs

from runq.report.table import Cell

STEP_COLOURS = 6
"""How many colours for steps the style sheet has; more steps begin again with the first."""


@attrs.frozen
class Heading:
    """A column's heading, and whether it holds figures."""

    title: str
    number: bool = False


@attrs.frozen(kw_only=True)
class Table:
    """A table: what it shows, its headings, and rows of cells of which the first is the row's name."""

    caption: str
    headings: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]


@attrs.frozen
class Key:
    """A line of a legend: a colour, how it is drawn (area, line, dashes, ring or cross), and what it means."""

    colour: str
    drawn: str
    text: str


@attrs.frozen(kw_only=True)
class Picture:
    """A plot.

    Args:
        id: unique on the page.
        heading: where a section has several; empty for none.
        label: what it shows, in short.
        text: what it says.
        legend: its colours.
        draw: makes the chart in a size.
    """

    id: str
    heading: str = ""
    label: str
    text: str
    legend: Sequence[Key]
    draw: Callable[[Any], Any]

    def drawn(self) -> Any:
        """The picture in each size, as HTML that is safe: every text in it was escaped when it was written."""
        from markupsafe import Markup

        from runq.report.charts import SIZES
        from runq.report.drawing import svg

        return Markup("\n").join(
            Markup(  # noqa: S704 - an XML writer escaped what came from outside
                svg(self.draw(size), id=f"{self.id}-{size.name}", label=self.label, text=self.text, css_class=size.name)
            )
            for size in SIZES
        )


@attrs.frozen(kw_only=True)
class Section:
    """A part of the page with pictures and the table of their figures."""

    id: str
    title: str
    about: str
    pictures: Sequence[Picture]
    table: Table


def missing() -> str:
    """What the plots lack on this machine, and the remedy; empty when they can be drawn."""
    absent = [
        name for name, module in (("altair", "altair"), ("vl-convert-python", "vl_convert")) if not find_spec(module)
    ]
    return f"without plots: {' and '.join(absent)} missing; `pip install 'runq[report]'`" if absent else ""


def step_variables(steps: Sequence[str]) -> dict[str, str]:
    """Each step's colour in the style sheet."""
    return {step: f"var(--step-{number % STEP_COLOURS})" for number, step in enumerate(steps)}
