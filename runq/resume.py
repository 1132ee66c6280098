"""What a resume runs and why: pure rules over what the journal says and what the files are now."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from runq.identity import difference


@attrs.frozen(kw_only=True)
class PastStep:
    """The last word of the journal on a step of an entry, and how often it was tried."""

    status: str
    reason: str
    attempts: int
    identity: str | None
    identity_parts: Mapping[str, Any]
    bundle: str | None
    artifacts: tuple[Mapping[str, Any], ...]
    outputs: tuple[str, ...]
    started_event: int | None
    finished_event: int | None


@attrs.frozen(kw_only=True)
class EntryMark:
    """How an entry is recognised: its key in the file and the identity of its first step."""

    key: tuple[str, str, str]
    identity: str | None


@attrs.frozen(kw_only=True)
class StepDecision:
    """Whether a step runs, why, and as which attempt."""

    step: str
    run: bool
    why: str
    attempt: int


def number_entries(now: Sequence[EntryMark], past: Mapping[int, EntryMark]) -> list[int]:
    """The entry id of each entry of the file as it is now.

    An entry is the same when key and identity agree, else when the identity does (its pack was renamed), else when
    the key does (its pack was edited). What is left is new and gets the next numbers; no number is given twice.
    """
    ids: list[int | None] = [None] * len(now)
    free = dict(sorted(past.items()))
    rules: tuple[Callable[[EntryMark, EntryMark], bool], ...] = (
        lambda a, b: a == b and a.identity is not None,
        lambda a, b: a.identity == b.identity and a.identity is not None,
        lambda a, b: a.key == b.key,
    )
    for same in rules:
        for position, mark in enumerate(now):
            if ids[position] is None:
                match = next((number for number, old in free.items() if same(mark, old)), None)
                if match is not None:
                    ids[position] = match
                    del free[match]
    following = itertools.count(max(past, default=-1) + 1)
    return [next(following) if number is None else number for number in ids]


def decide(
    steps: Sequence[str],
    parts: Mapping[str, Mapping[str, Any]],
    identities: Mapping[str, str | None],
    past: Mapping[str, PastStep],
    *,
    damage: Callable[[PastStep], str],
    forced: frozenset[str] = frozenset(),
) -> list[StepDecision]:
    """Which steps of an entry run.

    Args:
        steps: the entry's steps in order.
        parts: the parts of each step's identity now.
        identities: each step's identity now; ``None`` when a file it reads cannot be read.
        past: the journal's last word on each step.
        damage: what is wrong with the artifacts of a finished step; empty when they are intact.
        forced: steps asked for by name (`runq rerun`).

    A step is kept only when its last attempt is ok, its identity is the same, its artifacts are intact, and it ran
    after the last attempt of the step before it. Whatever follows a step that runs, runs.
    """
    decisions: list[StepDecision] = []
    running: str | None = None
    before: PastStep | None = None
    for step in steps:
        last = past.get(step)
        if step in forced:
            why = "asked for"
        elif running is not None:
            why = f"{running} runs again" if last and last.attempts else f"{running} runs first"
        else:
            why = _reason(step, last, before, parts.get(step), identities.get(step), damage)
        run = bool(why)
        decisions.append(
            StepDecision(step=step, run=run, why=why or "done", attempt=(last.attempts if last else 0) + 1)
        )
        if run and running is None:
            running = step
        before = last
    return decisions


def second_round(steps: Sequence[str], past: Mapping[str, PastStep]) -> list[StepDecision]:
    """What an entry that was not complete runs when its turn comes again in the same night.

    From its first step on that is not ok; what came before stands, whatever has become of its files meanwhile.
    """
    decisions: list[StepDecision] = []
    halted = False
    for step in steps:
        last = past.get(step)
        halted = halted or last is None or last.status != "ok"
        why = "tried again at the end of the night" if halted else "done"
        decisions.append(StepDecision(step=step, run=halted, why=why, attempt=(last.attempts if last else 0) + 1))
    return decisions


def unchanged(identities: Mapping[str, str | None], past: Mapping[str, PastStep]) -> bool:
    """Whether every step of an entry that ever ran would be the same step now."""
    return all(identities.get(step) == last.identity for step, last in past.items() if last.identity is not None)


def _reason(
    step: str,
    last: PastStep | None,
    before: PastStep | None,
    parts: Mapping[str, Any] | None,
    identity: str | None,
    damage: Callable[[PastStep], str],
) -> str:
    """Why a step has to run; empty when it need not."""
    if last is None or last.attempts == 0:
        return "has not run"
    if last.status == "running":
        return "was running when the runner died"
    if last.status != "ok":
        return f"{last.status} in attempt {last.attempts}"
    if identity is None or parts is None:
        return "a file it reads cannot be read now"
    if identity != last.identity:
        return difference(last.identity_parts, parts) or "its identity changed"
    if before and before.finished_event and last.started_event and last.started_event < before.finished_event:
        return "the step before it ran again since"
    return damage(last)
