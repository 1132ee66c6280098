"""Which entry reached the highest score, where several can be compared: the same score of the same step and pack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from runq.scores import first_metrics

Entry = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Highest:
    """The highest of one score. Whether high is good is for the reader to know: a harness does not tell.

    Args:
        pack: of the entries compared; ``None`` where they have none.
        step: the step with the score.
        name: the score.
        entries: those that reached it, more than one where they are equal; each with its metric.
        among: how many entries were compared.
    """

    pack: str | None
    step: str
    name: str
    entries: tuple[tuple[Entry, Mapping[str, Any]], ...]
    among: int


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


def highest(entries: Sequence[Entry]) -> list[Highest]:
    """The highest of each step's first score, pack by pack, where at least two entries have it."""
    found = []
    for group in comparable(entries):
        top = max(metric["value"] for _, metric in group.members)
        winners = tuple((entry, metric) for entry, metric in group.members if metric["value"] == top)
        found.append(
            Highest(pack=group.pack, step=group.step, name=group.name, entries=winners, among=len(group.members))
        )
    return found


def worked_s(entry: Entry) -> float | None:
    """How long all attempts of all steps of an entry ran together; ``None`` when none has ended."""
    known = [step["all_seconds"] for step in entry["steps"] if step["all_seconds"] is not None]
    return round(sum(known), 3) if known else None
