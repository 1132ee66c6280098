"""What harnesses read of single answers: by question, and as scores; every figure worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.plugin import Metric, TellsAnswers
from runq_plugins.harness.answer_scores import AnswerScores, number, read_table
from runq_plugins.harness.command import CommandHarness
from runq_plugins.harness.inspect_harness import InspectHarness
from runq_plugins.harness.lm_eval_harness import LmEvalHarness
from runq_plugins.harness.touchstone import TouchstoneHarness


def table(folder: Path, text: str) -> Path:
    (folder / "scores.csv").write_text(text, encoding="utf-8")
    return folder / "scores.csv"


def test_repeats_of_a_question_count_once() -> None:
    found = AnswerScores()
    for repeat, figure in enumerate((1.0, 0.0, 0.0, 1.0)):
        found.add("acc", "q1", figure, answer=str(repeat))
    found.add("acc", "q2", 1.0)
    assert found.by_question() == {"acc": {"q1": 0.5, "q2": 1.0}}
    # The mean of 0.5 and 1 is 0.75; their standard deviation 0.35355..., by the square root of 2 questions: 0.25.
    (metric,) = found.metrics()
    assert (metric.name, metric.value, metric.n) == ("acc", 0.75, 2)
    assert metric.stderr == pytest.approx(0.25)


def test_a_single_question_has_no_standard_error() -> None:
    found = AnswerScores()
    found.add("acc", "q", 3.0)
    assert found.metrics() == (Metric(name="acc", value=3.0, stderr=None, n=1),)


def test_a_table_of_answers(tmp_path: Path) -> None:
    rows = ("prompt_id,variant,repeat,passed,mark,why", "a,x,1,true,5,good", "a,x,2,FALSE,3,bad", "a,y,1,true,,none")
    text = "\n".join((*rows, "b,x,1,false,1,-", ""))
    found = read_table(table(tmp_path, text)).by_question()
    assert found == {"passed": {"a/x": 0.5, "a/y": 1.0, "b/x": 0.0}, "mark": {"a/x": 4.0, "b/x": 1.0}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "prompt_id,score\n",
        "dimension,score\nquality,4\n",  # nothing names a question
        "prompt_id,note\na,1\nb,two\n",  # one cell is text
        "prompt_id,score\n,4\n",  # of no question
        "prompt_id,score\na,nan\n",
        "prompt_id,score\na\n",
    ],
)
def test_what_holds_no_answer_has_no_score(tmp_path: Path, text: str) -> None:
    assert read_table(table(tmp_path, text)).metrics() == ()


def test_a_table_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="field larger"):
        read_table(table(tmp_path, f"prompt_id,score\na,{'x' * 200_000}\n"))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("table") / "scores.csv"
    path.write_bytes(b"prompt_id,score\n" + data)
    try:
        found = read_table(path)
    except ValueError:
        return
    assert all(metric.n and metric.n > 0 for metric in found.metrics())


@pytest.mark.parametrize(
    ("value", "figure"),
    [(4, 4.0), (True, 1.0), ("false", 0.0), (" True ", 1.0), ("1e-3", 0.001), ("", None), ("x", None), (None, None),
     ("inf", None), (float("nan"), None), ([], None), (10**400, None)],
)  # fmt: skip
def test_what_is_a_figure(value: object, figure: float | None) -> None:
    assert number(value) == figure


def row(prompt: str, score: object, **more: object) -> dict[str, object]:
    shared = {"model": "m", "variant": "none", "repeat": 0, "category": "A", "red_flag": False, "rationale": "r"}
    return {**shared, "prompt_id": prompt, "score": score, "unscored": False, **more}


def test_touchstone_by_its_judgements(tmp_path: Path) -> None:
    rows = [
        row("A1", 4), row("A1", 2, repeat=1), row("A1", 5, variant="terse"), row("A2", 1),
        row("A2", 3),  # judged again: the later one counts
        row("A3", None), row("A4", 0, unscored=True), row("A5", "5"), {"no": "prompt", "score": 3},
    ]  # fmt: skip
    text = "".join(json.dumps(one) + "\n" for one in rows) + '{"torn'
    (tmp_path / "judgements.jsonl").write_text(text)
    table(tmp_path, "model,variant,metric_type,metric,score\nm,none,dimension,Q1,4\nm,none,dimension,Q2,\n")
    assert TouchstoneHarness.answers(tmp_path) == {"score": {"A1/none": 3.0, "A1/terse": 5.0, "A2/none": 3.0}}


def test_touchstone_by_a_table_where_there_are_no_judgements(tmp_path: Path) -> None:
    table(tmp_path, "prompt_id,run,score,other\na,1,4,9\na,2,2,9\n")
    assert TouchstoneHarness.answers(tmp_path) == {"score": {"a": 3.0}}


def test_inspect_by_what_its_driver_wrote(tmp_path: Path) -> None:
    rows = [
        {"score": "match/accuracy", "question": "1", "answer": "#1", "value": 1.0},
        {"score": "match/accuracy", "question": "1", "answer": "#2", "value": 0.0},
        {"score": "match/accuracy", "question": "2", "answer": "#1", "value": 1.0},
    ]
    (tmp_path / "sample-scores.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    assert InspectHarness.answers(tmp_path) == {"match/accuracy": {"1": 0.5, "2": 1.0}}


def test_lm_eval_by_its_samples(tmp_path: Path) -> None:
    folder = tmp_path / "lm-eval" / "model"
    folder.mkdir(parents=True)
    rows = [
        {"doc_id": 0, "filter": "strict-match", "metrics": ["exact_match"], "exact_match": 1.0},
        {"doc_id": 0, "filter": "flexible-extract", "metrics": ["exact_match"], "exact_match": 0.0},
        {"doc_id": 1, "filter": "strict-match", "metrics": ["exact_match", "pair"], "exact_match": 0, "pair": [1, 2]},
    ]
    text = "".join(json.dumps(one) + "\n" for one in rows)
    (folder / "samples_my_task_2026-12-01T23-00-00.123456.jsonl").write_text(text)
    assert LmEvalHarness.answers(tmp_path) == {
        "my_task/exact_match,strict-match": {"0": 1.0, "1": 0.0},
        "my_task/exact_match,flexible-extract": {"0": 0.0},
    }


@pytest.mark.parametrize("harness", [TouchstoneHarness, InspectHarness, LmEvalHarness, CommandHarness])
def test_an_empty_bundle_has_none(tmp_path: Path, harness: type[TellsAnswers]) -> None:
    assert harness.answers(tmp_path) == {}
