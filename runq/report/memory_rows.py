"""The curve of memory as rows to draw: readings, bands, baselines, the names of entries. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import attrs

from runq.report.words import local
from runq.text import duration

if TYPE_CHECKING:
    from runq.report.bands import Band, Stretch
    from runq.report.gathered import Gathered

Row = dict[str, Any]

GAP_S = 120.0
"""Where so many seconds have no reading, the line breaks rather than tell what nobody read."""

GAP_PIECES = 5
"""The same in pieces of a thinned curve."""


@attrs.frozen(kw_only=True)
class Panel:
    """One stretch of the night and one probe. Times are on the night's own clock, memory is in MB.

    Args:
        title: when it began.
        start: its begin.
        end: its end.
        points: ``at``, ``mb`` and ``part``: points of one part are joined.
        bands: ``start``, ``end``, ``colour`` (what it is), ``about``.
        baselines: ``start``, ``end``, ``mb``, ``proven``, ``about``.
        entries: ``at``, ``name``, ``seconds`` and ``bad``.
    """

    title: str
    start: datetime
    end: datetime
    points: Sequence[Row]
    bands: Sequence[Row]
    baselines: Sequence[Row]
    entries: Sequence[Row]

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end - self.start).total_seconds()


def probes(found: Gathered) -> list[str]:
    """The probes with anything to draw, the first of the queue file first."""
    levels = (probe for band in found.bands for probe in band.levels)
    return list(dict.fromkeys([*levels, *(sample.probe for sample in found.curve)]))


def panels(found: Gathered, probe: str) -> list[Panel]:
    """A panel for each stretch in which something was done."""
    made = [_panel(found, probe, stretch, number) for number, stretch in enumerate(found.stretches)]
    return [panel for panel in made if panel.bands or panel.points]


def _panel(found: Gathered, probe: str, stretch: Stretch, number: int) -> Panel:
    def at(moment: datetime) -> datetime:
        return local(moment, found.offset)

    mine = [band for band in found.bands if stretch.start <= band.start <= stretch.end]
    readings = [(s.at, s.mb) for s in found.curve if s.probe == probe and stretch.start <= s.at <= stretch.end]
    for band in mine:
        if probe in band.levels:
            readings += zip((band.start, band.end), band.levels[probe], strict=True)
    statuses = {entry["id"]: entry["status"] for entry in found.entries}
    return Panel(
        title=f"{'Resumed' if number else 'Started'} {at(stretch.start):%H:%M}",
        start=at(stretch.start),
        end=at(max(stretch.end, stretch.start + timedelta(seconds=1))),
        points=[
            {"at": at(moment), "mb": round(mb, 1), "part": part}
            for moment, mb, part in _parts(sorted(readings), max(GAP_S, GAP_PIECES * found.piece_s))
        ],
        bands=[
            {"start": at(b.start), "end": at(b.end), "colour": colour(b), "about": about(b)}
            for b in mine
            if b.seconds > 0
        ],
        baselines=[
            {
                "start": at(start),
                "end": at(end),
                "mb": mb,
                "proven": proven,
                "about": _baseline_words(entry, mb, proven),
            }
            for start, end, entry, mb, proven in _baselines(mine, probe, stretch.end)
        ],
        entries=[
            {
                "at": at(start),
                "name": f"e{entry}",
                "seconds": (end - start).total_seconds(),
                "bad": statuses.get(entry) not in ("complete", "pending", "running"),
            }
            for entry, start, end in _turns(mine)
        ],
    )


def colour(band: Band) -> str:
    """What a band is: reset, settle, other, or `step_colour`."""
    if band.what == "step":
        return step_colour(band.step)
    return band.what if band.what in ("reset", "settle") else "other"


def step_colour(step: str) -> str:
    """The name of a step's colour: no step can be called so itself."""
    return f"step {step}"


WAITS = {
    "cooldown": "cooldown",
    "restart": "restart of the endpoint",
    "wait": "wait before a retry",
    "server": "start of the server",
}


def about(band: Band) -> str:
    """A band in words."""
    name = band.step if band.what == "step" else WAITS.get(band.what, band.what)
    attempt = f" (attempt {band.attempt})" if band.attempt is not None and band.attempt > 1 else ""
    status = f" {band.status}" if band.status else ""
    return f"e{band.entry} {name}{attempt}{status}, {duration(band.seconds)}"


def _baseline_words(entry: int, mb: float, proven: bool) -> str:
    return f"e{entry} baseline {mb:,.1f} MB, {'proven' if proven else 'not proven'}"


def _parts(readings: Iterable[tuple[datetime, float]], gap_s: float) -> Iterable[tuple[datetime, float, int]]:
    part, before = 0, None
    for moment, mb in readings:
        if before is not None and (moment - before).total_seconds() > gap_s:
            part += 1
        before = moment
        yield moment, mb, part


def _baselines(
    bands: Sequence[Band], probe: str, end: datetime
) -> Iterable[tuple[datetime, datetime, int, float, bool]]:
    """Each baseline from its settling to the next reset, or to the end."""
    for number, band in enumerate(bands):
        if probe in band.levels:
            later = (other.start for other in bands[number + 1 :] if other.what in ("reset", "settle"))
            yield band.end, max(next(later, end), band.end), band.entry, band.levels[probe][1], band.proven[probe]


def _turns(bands: Sequence[Band]) -> Iterable[tuple[int, datetime, datetime]]:
    """Each turn of an entry: one that comes back later, for a retry or another phase, has another."""
    turn: tuple[int, datetime, datetime] | None = None
    for band in bands:
        if turn is not None and turn[0] == band.entry:
            turn = (turn[0], turn[1], max(turn[2], band.end))
            continue
        if turn is not None:
            yield turn
        turn = (band.entry, band.start, band.end)
    if turn is not None:
        yield turn
