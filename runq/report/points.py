"""What one wants to know first of a night, in a few sentences below the headline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runq.report import words
from runq.report.best import Best, worked_s
from runq.report.failing import FailedEntry
from runq.report.gathered import Gathered
from runq.report.since import changed, in_words
from runq.report.table import UNPROVEN
from runq.scores import score_text
from runq.summary_left import left_in_short
from runq.text import duration

if TYPE_CHECKING:
    from runq.comparing.comparison import Comparison

NAMED = 3
"""So many failures are named at the top; the others are a link away."""


def points(found: Gathered, failures: list[FailedEntry], best: list[Best]) -> list[str]:
    """What one wants to know first, a sentence each."""
    data = found.data
    told = [_when(found)]
    failed = [card.entry for card in failures if not card.mended]
    if failed:
        named = "; ".join(
            f"{_named(entry)}: {words.quoted(entry['reason'] or entry['error'] or entry['status'])}"
            for entry in failed[:NAMED]
        )
        told.append(f"Not complete: {named}" + (f"; and {len(failed) - NAMED} more." if len(failed) > NAMED else "."))
    if best:
        told.append(_best_in_words(best[0]))
    if found.earlier is not None:
        told.append(_since(found.earlier))
    unproven = [entry for entry in data["entries"] if entry["baseline_mb"] is not None and not entry["baseline_proven"]]
    if unproven:
        named = ", ".join(f"e{entry['id']}" for entry in unproven[:10]) + (", …" if len(unproven) > 10 else "")
        told.append(f"Baseline {UNPROVEN}: {named}. Memory figures on it may hold what an earlier model left.")
    if data["left"]:
        told.append(f"Left for another time: {left_in_short(data)}.")
    return told


def _named(entry: Any) -> str:
    return f"e{entry['id']} {words.quoted(entry['model_id'])}"


def _when(found: Gathered) -> str:
    """When the night was, and how long it worked."""
    first, last = found.stretches[0], found.stretches[-1]
    begin, end = words.local(first.start, found.offset), words.local(last.end, found.offset)
    worked = sum(stretch.seconds for stretch in found.stretches)
    until = f"{end:%H:%M}" if end.date() == begin.date() else words.day(end)
    again = len(found.stretches) - 1
    resumed = "" if again == 0 else ", resumed once" if again == 1 else f", resumed {again} times"
    lives = found.data["state"] in ("running", "paused", "frozen")
    return (
        f"{words.day(begin)} {'until now' if lives else f'to {until}'} ({words.zone(found.offset)}),"
        f" {duration(worked)} of work{resumed}, on {words.quoted(found.plan['host']['name'])}."
    )


def _since(comparison: Comparison) -> str:
    rows = changed(comparison)
    if not rows:
        return f"Since night {comparison.a.name} no entry ended otherwise and no score differs beyond chance."
    named = "; ".join(in_words(row) for row in rows[:NAMED])
    more = f"; and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return f"Since night {comparison.a.name}: {named}{more}."


def _best_in_words(one: Best) -> str:
    (entry, metric), *others = one.entries
    extreme = "Lowest" if one.lowest else "Highest"
    on = f" on {words.quoted(one.pack)}" if one.pack else ""
    if others:
        reached = f"{len(one.entries)} of {one.among} entries with {score_text(metric['value'])}"
        return f"{extreme} `{words.quoted(one.name)}`{on}: {reached}."
    delta = entry["model_delta_mb"]
    proven = "" if entry["baseline_proven"] else f" ({UNPROVEN})"
    cost = [f"in {duration(worked_s(entry))}"] + ([] if delta is None else [f"with {delta:,.0f} MB{proven}"])
    figure = f"{words.quoted(entry['model_id'])} with {score_text(metric['value'])}"
    return f"{extreme} `{words.quoted(one.name)}`{on}: {figure}, {' '.join(cost)}, of {one.among} entries."
