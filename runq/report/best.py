"""Which entry has the best score, where several can be compared: the same score of the same step and pack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from runq.comparing.comparison import lower_is_better
from runq.scores import first_metrics

Entry = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Best:
    """The best of one score: the highest, or the lowest of a score that is known to be better when it is low.

    Args:
        pack: of the entries compared; ``None`` where they have none.
        step: the step with the score.
        name: the score.
        entries: those that reached it, more than one where they are equal; each with its metric.
        among: how many entries were compared.
        lowest: whether the lowest is best.
    """

    pack: str | None
    step: str
    name: str
    entries: tuple[tuple[Entry, Mapping[str, Any]], ...]
    among: int
    lowest: bool = False


@attrs.frozen(kw_only=True)
class Comparable:
    """Entries that have the same score of the same step on the same pack, two at least; each with its metric."""

    pack: str | None
    step: str
    name: str
    members: tuple[tuple[Entry, Mapping[str, Any]], ...]


def comparable(entries: Sequence[Entry]) -> list[Comparable]:
    """Who can be compared by the first score of each step, in the order of the queue."""
    groups: dict[tuple[str | None, str, str], list[tuple[Entry, Mapping[str, Any]]]] = {}
    for entry in entries:
        for step, metric in first_metrics(entry["metrics"]):
            groups.setdefault((entry["pack"], step, metric["name"]), []).append((entry, metric))
    return [
        Comparable(pack=pack, step=step, name=name, members=tuple(members))
        for (pack, step, name), members in groups.items()
        if len(members) > 1
    ]


def best(entries: Sequence[Entry]) -> list[Best]:
    """The best of each step's first score, pack by pack, where at least two entries have it."""
    found = []
    for group in comparable(entries):
        lowest = lower_is_better(group.name)
        top = (min if lowest else max)(metric["value"] for _, metric in group.members)
        winners = tuple((entry, metric) for entry, metric in group.members if metric["value"] == top)
        among = len(group.members)
        found.append(
            Best(pack=group.pack, step=group.step, name=group.name, entries=winners, among=among, lowest=lowest)
        )
    return found


def worked_s(entry: Entry) -> float | None:
    """How long all attempts of all steps of an entry ran together; ``None`` when none has ended."""
    known = [step["all_seconds"] for step in entry["steps"] if step["all_seconds"] is not None]
    return round(sum(known), 3) if known else None
