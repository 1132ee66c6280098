"""In which order turns come, and which may follow each other without a reset."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from runq import planning
from runq.deadline import Usual, forecast
from runq.phases import turns

HEAD = """\
order: phases
defaults:
  reset: { backend: ollama, host: 127.0.0.1:9 }
  harness:
    harness: command
    steps:
      eval: { argv: [a, "{model}"], artifacts: [e] }
      judge: { argv: [a, "{judge_model}"], artifacts: [j] }
entries:
"""


def works(prepared: Any, *entries: str) -> tuple[planning.Work, ...]:
    return planning.fresh(prepared(HEAD + "".join(f"  - {{ {entry} }}\n" for entry in entries)))


def told(found: Any) -> list[tuple[int, list[str]]]:
    return [(turn.work.prepared.entry.id, turn.running()) for turn in found]


THREE = ("model: a, judge_model: x", "model: b, judge_model: y", "model: c, judge_model: x")


def test_first_steps_first_then_the_judges_by_their_model(prepared: Any) -> None:
    found = turns(works(prepared, *THREE), "phases")
    assert told(found) == [
        (0, ["eval"]), (1, ["eval"]), (2, ["eval"]), (0, ["judge"]), (2, ["judge"]), (1, ["judge"]),
    ]  # fmt: skip
    groups = [turn.group for turn in found]
    assert groups[:3] == [None] * 3
    assert groups[3] == groups[4] != groups[5]
    assert [turn.opens for turn in found] == [True] * 3 + [False] * 3


def test_entry_by_entry_is_the_default(prepared: Any) -> None:
    found = turns(works(prepared, *THREE), "entries")
    assert told(found) == [(0, ["eval", "judge"]), (1, ["eval", "judge"]), (2, ["eval", "judge"])]
    assert all(turn.opens and turn.group is None for turn in found)


@pytest.mark.parametrize(
    "other",
    ["reset: { backend: ollama, host: 127.0.0.1:8 }", "env: { A: '1' }", "reset: none", "probes: [psutil_used]"],
)
def test_another_server_or_figure_is_another_group(prepared: Any, other: str) -> None:
    found = turns(works(prepared, THREE[0], f"model: b, judge_model: x, {other}"), "phases")
    assert found[2].group != found[3].group


def test_a_judge_whose_eval_is_done_opens_its_entry(prepared: Any) -> None:
    first, second, third = works(prepared, *THREE)
    done = attrs.evolve(first, decisions=(attrs.evolve(first.decisions[0], run=False), first.decisions[1]))
    left_out = attrs.evolve(third, selected=False)
    found = turns((done, second, left_out), "phases", {0: 5.0, 1: 6.0})
    assert told(found) == [(1, ["eval"]), (0, ["judge"]), (1, ["judge"])]
    assert [(turn.opens, turn.ended_s) for turn in found] == [(True, 6.0), (True, 5.0), (False, None)]


def test_the_second_step_is_reset_before_in_phases(prepared: Any) -> None:
    (work,) = works(prepared, THREE[0])
    assert work.prepared.reset_before == {"eval", "judge"}


def test_a_forecast_of_phases_leaves_the_judge_of_an_eval_that_does_not_start() -> None:
    hour, long = Usual(seconds=3600, n=1), Usual(seconds=9000, n=1)
    rulings = forecast([[hour], [long], [hour], [hour]], 7300, "07:00", [0, 1, 0, 1])
    assert [[one.starts for one in part] for part in rulings] == [[True], [False], [True], [False]]
    assert rulings[3][0].reason == "the step before it is not started"
