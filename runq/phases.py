"""In which order the steps of a night take their turns: entry by entry, or first steps first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from runq.locks import endpoint_name
from runq_schemas.queue import Order

if TYPE_CHECKING:
    from runq.planning import Work
    from runq.plugin import Step
    from runq.prepared import PreparedEntry

Group = tuple[str, ...]
"""What steps share that can follow each other without a reset: backend, endpoint, environment and model."""


@attrs.frozen(kw_only=True)
class Turn:
    """Steps of an entry that run one after the other.

    Args:
        work: the entry.
        steps: the names of the steps that may run in this turn.
        opens: no other turn of the entry lies before it in this round.
        group: turns of one group that follow each other need no reset in between; ``None``: each needs its own.
        ended_s: when the entry's last attempt ended (monotonic); ``None`` before the first.
    """

    work: Work
    steps: frozenset[str]
    opens: bool = True
    group: Group | None = None
    ended_s: float | None = None

    def running(self) -> list[str]:
        """The steps that the plan runs in this turn."""
        return [d.step for d in self.work.decisions if d.run and d.step in self.steps]


def turns(works: Iterable[Work], order: Order, ended_s: Mapping[int, float] | None = None) -> list[Turn]:
    """The turns of every entry that has something to run, or to be told.

    With ``phases``: every first step, in the order of the file; then the later steps, those of one group together, the
    groups in the order in which the file first names them.

    Args:
        ended_s: by entry id, when the last attempt of an entry that is tried again ended.
    """
    ends = ended_s or {}
    having = [work for work in works if work.runs or work.to_tell]
    if order == "entries":
        return [_whole(work, ends) for work in having]
    first: list[Turn] = []
    groups: dict[Group, list[Turn]] = {}
    for work in having:
        head, *rest = [step.name for step in work.prepared.steps]
        opening = Turn(work=work, steps=frozenset({head}), ended_s=ends.get(work.prepared.entry.id))
        opens = work.to_tell or bool(opening.running())
        if opens:
            first.append(opening)
        if work.to_tell:
            continue
        later = Turn(work=work, steps=frozenset(rest), opens=not opens)
        if later.running():
            step = next(one for one in work.prepared.steps if one.name in later.running())
            group = group_of(work.prepared, step)
            ended = ends.get(work.prepared.entry.id) if later.opens else None
            groups.setdefault(group, []).append(attrs.evolve(later, group=group, ended_s=ended))
    return [*first, *(turn for group in groups.values() for turn in group)]


def group_of(prepared: PreparedEntry, step: Step) -> Group:
    """The group of a later step. One whose model is not known is a group of its own."""
    model = f"e{prepared.entry.id}" if step.model is None else f"model {step.model.id}"
    settings = prepared.settings()
    place = endpoint_name(prepared.endpoint) if prepared.endpoint else ""
    return (repr(settings["reset"]), place, repr(sorted(prepared.env.items())), repr(settings["probes"]), model)


def _whole(work: Work, ends: Mapping[int, float]) -> Turn:
    names = frozenset(step.name for step in work.prepared.steps)
    return Turn(work=work, steps=names, ended_s=ends.get(work.prepared.entry.id))
