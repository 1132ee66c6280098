"""What a resume runs, and why, in words."""

from __future__ import annotations

from typing import Any

import pytest

from runq.resume import EntryMark, PastStep, StepDecision, decide, number_entries

EVAL: dict[str, Any] = {
    "version": 1,
    "harness": "touchstone",
    "step": "eval",
    "settings": {},
    "artifacts": ["responses.jsonl"],
    "model": {"id": "m"},
    "files": [["config.yaml", "c1"], ["pack.yaml", "p1"]],
    "predecessor": None,
}
JUDGE: dict[str, Any] = {**EVAL, "step": "judge", "files": [["judge.yaml", "j1"]], "predecessor": "eval-1"}


def past(identity: str, parts: dict[str, Any], events: tuple[int, int], **changes: Any) -> PastStep:
    started, finished = events
    return PastStep(
        **{
            "status": "ok",
            "reason": "",
            "attempts": 1,
            "identity": identity,
            "identity_parts": parts,
            "bundle": "/runs/b",
            "artifacts": ({"path": "responses.jsonl", "bytes": 1, "sha256": "x"},),
            "outputs": (),
            "started_event": started,
            "finished_event": finished,
            **changes,
        }
    )


def done() -> dict[str, PastStep]:
    return {"eval": past("eval-1", EVAL, (1, 2)), "judge": past("judge-1", JUDGE, (3, 4))}


def decided(
    steps: dict[str, PastStep],
    *,
    eval_parts: dict[str, Any] = EVAL,
    judge_parts: dict[str, Any] = JUDGE,
    identities: dict[str, str | None] | None = None,
    damaged: str = "",
    forced: frozenset[str] = frozenset(),
) -> list[StepDecision]:
    return decide(
        ["eval", "judge"],
        {"eval": eval_parts, "judge": judge_parts},
        identities or {"eval": "eval-1", "judge": "judge-1"},
        steps,
        damage=lambda last: "responses.jsonl is gone" if last.identity == damaged else "",
        forced=forced,
    )


def words(decisions: list[StepDecision]) -> list[tuple[str, bool, str, int]]:
    return [(d.step, d.run, d.why, d.attempt) for d in decisions]


def test_a_new_entry_runs_everything() -> None:
    assert words(decided({})) == [("eval", True, "has not run", 1), ("judge", True, "eval runs first", 1)]


def test_what_is_done_and_intact_is_kept() -> None:
    assert words(decided(done())) == [("eval", False, "done", 2), ("judge", False, "done", 2)]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"status": "running"}, "was running when the runner died"),
        ({"status": "failed", "attempts": 3}, "failed in attempt 3"),
        ({"status": "timeout"}, "timeout in attempt 1"),
        ({"status": "stalled"}, "stalled in attempt 1"),
        ({"status": "interrupted"}, "interrupted in attempt 1"),
        ({"attempts": 0}, "has not run"),
    ],
)
def test_an_eval_that_is_not_ok_runs_and_its_judge_with_it(change: dict[str, Any], why: str) -> None:
    steps = {**done(), "eval": past("eval-1", EVAL, (1, 2), **change)}
    attempt = change.get("attempts", 1) + 1
    assert words(decided(steps)) == [("eval", True, why, attempt), ("judge", True, "eval runs again", 2)]


def test_a_judge_that_is_not_ok_runs_alone() -> None:
    steps = {**done(), "judge": past("judge-1", JUDGE, (3, 4), status="failed", attempts=2)}
    assert words(decided(steps)) == [("eval", False, "done", 2), ("judge", True, "failed in attempt 2", 3)]


def test_a_judge_that_never_ran_runs_alone() -> None:
    assert words(decided({"eval": done()["eval"]})) == [("eval", False, "done", 2), ("judge", True, "has not run", 1)]


def test_a_changed_pack_runs_the_entry_again() -> None:
    now = {**EVAL, "files": [["config.yaml", "c1"], ["pack.yaml", "p2"]]}
    decisions = decided(done(), eval_parts=now, identities={"eval": "eval-2", "judge": "judge-2"})
    assert words(decisions) == [("eval", True, "pack.yaml changed", 2), ("judge", True, "eval runs again", 2)]


def test_a_changed_judge_configuration_judges_again_only() -> None:
    now = {**JUDGE, "files": [["judge.yaml", "j2"]]}
    decisions = decided(done(), judge_parts=now, identities={"eval": "eval-1", "judge": "judge-2"})
    assert words(decisions) == [("eval", False, "done", 2), ("judge", True, "judge.yaml changed", 2)]


def test_another_identity_without_a_difference_in_words_still_runs() -> None:
    decisions = decided(done(), identities={"eval": "eval-1", "judge": "judge-2"})
    assert words(decisions)[1] == ("judge", True, "its identity changed", 2)


def test_a_file_that_cannot_be_read_now_runs_so_that_the_entry_fails_with_its_name() -> None:
    decisions = decided(done(), identities={"eval": None, "judge": None})
    assert words(decisions)[0] == ("eval", True, "a file it reads cannot be read now", 2)
    assert decisions[1].run


def test_damaged_answers_are_asked_for_again() -> None:
    decisions = decided(done(), damaged="eval-1")
    assert words(decisions) == [("eval", True, "responses.jsonl is gone", 2), ("judge", True, "eval runs again", 2)]


def test_damaged_scores_are_judged_again() -> None:
    decisions = decided(done(), damaged="judge-1")
    assert words(decisions) == [("eval", False, "done", 2), ("judge", True, "responses.jsonl is gone", 2)]


def test_an_eval_that_ran_again_makes_its_judge_run() -> None:
    # The runner died between the second eval (events 5 and 6) and its judge: the judge's scores are of the first.
    steps = {**done(), "eval": past("eval-1", EVAL, (5, 6), attempts=2)}
    assert words(decided(steps)) == [
        ("eval", False, "done", 3),
        ("judge", True, "the step before it ran again since", 2),
    ]


def test_forced_runs_and_what_follows_it() -> None:
    assert words(decided(done(), forced=frozenset({"eval"}))) == [
        ("eval", True, "asked for", 2),
        ("judge", True, "eval runs again", 2),
    ]
    assert words(decided(done(), forced=frozenset({"judge"}))) == [
        ("eval", False, "done", 2),
        ("judge", True, "asked for", 2),
    ]


def test_a_forced_judge_waits_for_an_eval_that_has_to_run() -> None:
    steps = {"eval": past("eval-1", EVAL, (1, 2), status="failed")}
    assert [d.run for d in decided(steps, forced=frozenset({"judge"}))] == [True, True]


# --- the numbers of entries -------------------------------------------------------------------------------------


def mark(pack: str, model: str, identity: str | None = None) -> EntryMark:
    return EntryMark(key=("config.yaml", pack, model), identity=identity or f"{pack}-{model}")


A, B, C, D = (mark("office", model) for model in "abcd")


def test_a_new_night_counts_from_nought() -> None:
    assert number_entries([A, B, C], {}) == [0, 1, 2]


def test_reordered_entries_keep_their_numbers() -> None:
    assert number_entries([C, A, B], {0: A, 1: B, 2: C}) == [2, 0, 1]


def test_an_inserted_entry_gets_the_next_number() -> None:
    assert number_entries([D, A, B, C], {0: A, 1: B, 2: C}) == [3, 0, 1, 2]


def test_the_number_of_a_removed_entry_is_not_given_again() -> None:
    assert number_entries([A, D], {0: A, 1: B, 2: C}) == [0, 3]


def test_a_renamed_pack_is_the_same_entry() -> None:
    renamed = EntryMark(key=("config.yaml", "packs/new-name.yaml", "b"), identity=B.identity)
    assert number_entries([renamed, A], {0: A, 1: B}) == [1, 0]


def test_an_edited_pack_is_the_same_entry() -> None:
    edited = EntryMark(key=B.key, identity="other content")
    assert number_entries([edited, A], {0: A, 1: B}) == [1, 0]


def test_content_counts_more_than_the_name() -> None:
    # The packs of two entries were swapped under their names.
    one = EntryMark(key=("c", "one", "m"), identity="first")
    two = EntryMark(key=("c", "two", "m"), identity="second")
    swapped = [EntryMark(key=one.key, identity="second"), EntryMark(key=two.key, identity="first")]
    assert number_entries(swapped, {0: one, 1: two}) == [1, 0]


def test_both_alike_counts_more_than_content_alone() -> None:
    # Two packs with the same content: each keeps its own.
    one = EntryMark(key=("c", "one", "m"), identity="same")
    two = EntryMark(key=("c", "two", "m"), identity="same")
    assert number_entries([two, one], {0: one, 1: two}) == [1, 0]


def test_an_entry_whose_files_cannot_be_read_is_known_by_its_key() -> None:
    unreadable = EntryMark(key=B.key, identity=None)
    assert number_entries([unreadable, A], {0: A, 1: B}) == [1, 0]
    other = EntryMark(key=("c", "p", "x"), identity=None)
    assert number_entries([other], {0: unreadable}) == [1], "two that cannot be read are not the same for that"
