"""What must hold for every edit of a queue file, and for every past."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from runq.resume import EntryMark, PastStep, decide, number_entries

names = st.text("abcdef", min_size=1, max_size=3)
marks = st.builds(
    EntryMark, key=st.tuples(st.just("config.yaml"), names, names), identity=st.none() | st.text("xyz", max_size=2)
)
queues = st.lists(marks, max_size=8, unique_by=lambda mark: mark.key)
whole = st.lists(
    st.builds(EntryMark, key=st.tuples(names, names, names), identity=st.text("uvwxyz", min_size=3, max_size=5)),
    max_size=8,
    unique_by=(lambda mark: mark.key, lambda mark: mark.identity),
)
"""Entries that differ in name and in content, as those of a real queue do."""


def night(queue: list[EntryMark]) -> dict[int, EntryMark]:
    return dict(enumerate(queue))


@given(now=queues, past=st.dictionaries(st.integers(0, 30), marks, max_size=8))
def test_no_number_is_given_twice_and_a_new_one_is_new(now: list[EntryMark], past: dict[int, EntryMark]) -> None:
    numbers = number_entries(now, past)
    assert len(numbers) == len(now)
    assert len(set(numbers)) == len(numbers)
    following = max(past, default=-1) + 1
    fresh = [number for number in numbers if number not in past]
    assert fresh == list(range(following, following + len(fresh)))


@given(queue=queues, order=st.randoms(use_true_random=False))
def test_any_order_keeps_every_number(queue: list[EntryMark], order: Any) -> None:
    shuffled = list(queue)
    order.shuffle(shuffled)
    numbers = number_entries(shuffled, night(queue))
    assert sorted(numbers) == list(range(len(queue)))
    for mark, number in zip(shuffled, numbers, strict=True):
        # Two entries whose files cannot be read, or of one content, are told apart by their keys.
        assert queue[number].key == mark.key


@given(queue=whole, data=st.data())
def test_removed_and_inserted_entries_leave_the_others_alone(queue: list[EntryMark], data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=len(queue), max_size=len(queue)))
    kept = [mark for mark, stays in zip(queue, keep, strict=True) if stays]
    new = [
        mark
        for mark in data.draw(whole)
        if not any(mark.key == old.key or mark.identity == old.identity for old in queue)
    ]
    now = data.draw(st.permutations(kept + new))
    numbers = dict(zip([mark.key for mark in now], number_entries(now, night(queue)), strict=True))
    assert all(queue[numbers[mark.key]] == mark for mark in kept)
    assert all(numbers[mark.key] >= len(queue) for mark in new)


@given(queue=whole.filter(bool), data=st.data())
def test_a_renamed_or_an_edited_entry_keeps_its_number(queue: list[EntryMark], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(queue) - 1))
    renamed = list(queue)
    renamed[index] = attrs.evolve(queue[index], key=("renamed", "renamed", "renamed"))
    assert number_entries(renamed, night(queue)) == list(range(len(queue)))
    edited = list(queue)
    edited[index] = attrs.evolve(queue[index], identity="edited")
    assert number_entries(edited, night(queue)) == list(range(len(queue)))


@given(queue=whole, orders=st.lists(st.randoms(use_true_random=False), max_size=4))
def test_many_resumes_in_a_row_keep_every_number(queue: list[EntryMark], orders: list[Any]) -> None:
    known = night(queue)
    for order in orders:
        now = list(queue)
        order.shuffle(now)
        numbers = number_entries(now, known)
        assert dict(zip(numbers, now, strict=True)) == night(queue)


statuses = st.sampled_from(["ok", "failed", "timeout", "stalled", "interrupted", "running"])


@st.composite
def pasts(draw: st.DrawFn) -> tuple[list[str], dict[str, PastStep], dict[str, str | None], set[str], frozenset[str]]:
    steps = ["s1", "s2", "s3", "s4"][: draw(st.integers(1, 4))]
    past: dict[str, PastStep] = {}
    for step in steps:
        if draw(st.booleans()):
            event = draw(st.integers(1, 50))
            past[step] = PastStep(
                status=draw(statuses),
                reason="",
                attempts=draw(st.integers(0, 3)),
                identity=draw(st.sampled_from([step, "old"])),
                identity_parts={},
                bundle="/b",
                artifacts=(),
                outputs=(),
                started_event=event,
                finished_event=event + draw(st.integers(1, 3)),
            )
    identities = {step: draw(st.sampled_from([step, step, None])) for step in steps}
    return steps, past, identities, draw(st.sets(st.sampled_from(steps))), draw(st.frozensets(st.sampled_from(steps)))


@given(pasts())
def test_what_follows_a_step_that_runs_runs_and_every_reason_is_given(
    told: tuple[list[str], dict[str, PastStep], dict[str, str | None], set[str], frozenset[str]],
) -> None:
    steps, past, identities, damaged, forced = told
    now = {
        "version": 1,
        "harness": "h",
        "model": {},
        "settings": {},
        "artifacts": [],
        "files": [],
        "predecessor": None,
    }
    broken = {id(past[step]) for step in damaged if step in past}
    decisions = decide(
        steps,
        dict.fromkeys(steps, now),
        identities,
        past,
        damage=lambda last: "damaged" if id(last) in broken else "",
        forced=forced,
    )
    assert [d.step for d in decisions] == steps
    runs = [d.run for d in decisions]
    assert runs == sorted(runs), "nothing is kept behind a step that runs"
    for before, decision in zip([None, *steps], decisions, strict=False):
        last = past.get(decision.step)
        assert decision.attempt == (last.attempts if last else 0) + 1, "an attempt's number is never used again"
        assert decision.why
        if decision.run:
            assert decision.why != "done"
            continue
        assert decision.why == "done"
        assert last is not None and last.status == "ok" and last.attempts > 0
        assert last.identity == identities[decision.step]
        assert decision.step not in damaged and decision.step not in forced
        if before is not None:
            earlier = past[before].finished_event
            assert last.started_event is not None and earlier is not None and last.started_event >= earlier
