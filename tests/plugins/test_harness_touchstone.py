"""touchstone: its command lines word for word, and its artifacts read."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs
import pytest

from runq.plugin import Metric, ModelSpec, PluginError
from runq.testing import make_entry
from runq_plugins.harness.interpreter import find_python
from runq_plugins.harness.touchstone import TouchstoneHarness

MODEL = ModelSpec(
    id="google/gemma-4-12b",
    reasoning_headroom_tokens=2000,
    extra_body={"chat_template_kwargs": {"enable_thinking": False}},
    extra={"engine": "mlx"},
)


@pytest.fixture
def entry(tmp_path):
    for name, url in (("config.yaml", "http://127.0.0.1:1234/v1"), ("judge.yaml", "http://box:8000/v1")):
        (tmp_path / name).write_text(f"endpoint: {{base_url: {url}, api_key: s}}\nmodel: qwen/judge\nextra: &a [*a]\n")
    (tmp_path / "judge.yaml").write_text("endpoint:\n  base_url: http://box:8000/v1\nmodel: qwen/judge\n")
    (tmp_path / "config.yaml").write_text("endpoint: {base_url: 'http://127.0.0.1:1234/v1', api_key: s}\nmodels: [a]\n")
    return make_entry(
        tmp_path,
        model=MODEL,
        config=tmp_path / "config.yaml",
        pack=tmp_path / "packs" / "büro.yaml",
        judge_config=tmp_path / "judge.yaml",
        judge_model="qwen/qwen3.6-27b",
    )


def without(entry, **changes):
    return attrs.evolve(entry, **changes)


def test_steps(entry, tmp_path):
    evaluate, judge = TouchstoneHarness().steps(entry)
    assert (evaluate.name, evaluate.artifacts) == ("eval", ("responses.jsonl",))
    assert evaluate.reads == (tmp_path / "config.yaml", tmp_path / "packs" / "büro.yaml")
    assert (evaluate.settings, evaluate.model) == ({}, MODEL)
    assert (judge.name, judge.artifacts) == ("judge", ("reports.jsonl", "scores.csv"))
    assert judge.reads == (tmp_path / "judge.yaml",)
    assert judge.settings == {"judge_model": "qwen/qwen3.6-27b"}
    assert judge.model == ModelSpec(id="qwen/qwen3.6-27b")


def test_the_judge_runs_only_with_a_judge_config(entry):
    assert [step.name for step in TouchstoneHarness().steps(without(entry, judge_config=None))] == ["eval"]


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("model: qwen/judge", ModelSpec(id="qwen/judge")),
        ("model: {id: qwen/judge, quant: q4}", ModelSpec(id="qwen/judge")),
        ("model: 5", None),
        ("model: ''", None),
        ("model: {}", None),
        ("endpoint: {}", None),
        ("{", None),
    ],
)
def test_the_judges_model_is_its_configurations_where_the_entry_has_none(entry, written, model):
    entry.judge_config.write_text(written)
    assert TouchstoneHarness().steps(without(entry, judge_model=None))[1].model == model


def test_the_command_lines_are_touchstones(entry, tmp_path):
    harness = TouchstoneHarness(python="/opt/py/bin/python")
    evaluate, judge = harness.steps(entry)
    argv = list(harness.argv(entry, evaluate, tmp_path / "b"))
    assert json.loads(argv[9]) == [
        {
            "id": "google/gemma-4-12b",
            "reasoning_headroom_tokens": 2000,
            "extra_body": {"chat_template_kwargs": {"enable_thinking": False}},
            "engine": "mlx",
        }
    ]
    argv[9] = "JSON"
    assert argv == [
        "/opt/py/bin/python", "-m", "touchstone", "eval", "--config", f"{tmp_path}/config.yaml", "--pack",
        f"{tmp_path}/packs/büro.yaml", "--models-json", "JSON", "--run-dir", f"{tmp_path}/b", "--emit-events",
    ]  # fmt: skip
    expected = [
        "/opt/py/bin/python", "-m", "touchstone", "judge", "--bundle", f"{tmp_path}/b", "--judge-config",
        f"{tmp_path}/judge.yaml", "--judge-model", "qwen/qwen3.6-27b", "--emit-events",
    ]  # fmt: skip
    assert harness.argv(entry, judge, tmp_path / "b") == expected
    del expected[8:10]
    assert harness.argv(without(entry, judge_model=None), judge, tmp_path / "b") == expected


def test_a_plain_model_travels_as_its_id_alone(entry, tmp_path):
    plain = without(entry, model=ModelSpec(id="m"))
    harness = TouchstoneHarness()
    assert json.loads(harness.argv(plain, harness.steps(plain)[0], tmp_path)[9]) == [{"id": "m"}]


def test_what_is_missing_is_told():
    entry = make_entry(Path("/q"), pack=Path("/q/p"))
    with pytest.raises(PluginError, match="needs a config"):
        TouchstoneHarness().steps(entry)
    assert TouchstoneHarness().requires() == ("config", "pack")


def test_the_interpreter(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    assert find_python(None, tmp_path) == sys.executable
    for name in ("python3", "python"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
        assert find_python(None, tmp_path) == str(folder / name)
    assert find_python("python3", tmp_path) == str(folder / "python3")
    assert find_python("pypy", tmp_path) == "pypy"
    assert find_python("venv/bin/python", tmp_path) == f"{tmp_path}/venv/bin/python"
    assert find_python("/abs/python", tmp_path) == "/abs/python"
    monkeypatch.setenv("HOME", "/home/me")
    assert find_python("~/v/bin/python", tmp_path) == "/home/me/v/bin/python"


def test_an_empty_python_is_refused():
    with pytest.raises(ValueError, match="python must not be empty"):
        TouchstoneHarness(python=" ")


def test_targets_are_read_from_both_configurations(entry):
    evaluated, judged = TouchstoneHarness().targets(entry)
    assert (evaluated.step, evaluated.base_url, evaluated.model) == ("eval", "http://127.0.0.1:1234/v1", entry.model)
    assert (judged.step, judged.base_url, judged.model) == (
        "judge",
        "http://box:8000/v1",
        TouchstoneHarness().steps(entry)[1].model,
    )
    assert evaluated.api_key == "s"
    entry.judge_config.unlink()
    assert [target.step for target in TouchstoneHarness().targets(entry)] == ["eval"]


def test_a_targets_key_is_read_and_never_shown(entry):
    entry.config.write_text("endpoint: { base_url: http://box/v1, api_key: sk-secret-1 }\n")
    target = TouchstoneHarness().targets(entry)[0]
    assert target.api_key == "sk-secret-1"
    assert "sk-secret-1" not in repr(target)
    (entry.config.parent / "key.txt").write_text("sk-secret-2\n")
    entry.config.write_text("endpoint: { base_url: http://box/v1, api_key_file: key.txt }\n")
    assert TouchstoneHarness().targets(entry)[0].api_key == "sk-secret-2"
    entry.config.write_text("endpoint: { base_url: http://box/v1, api_key_file: gone.txt }\n")
    assert TouchstoneHarness().targets(entry)[0].api_key is None


@pytest.mark.parametrize(
    "content",
    [b"", b"a: [", b"- 1", b"endpoint: 5", b"endpoint: {base_url: 5}", b"endpoint: {base_url: ' '}", b"\x00", b"\xff",
     b"a: !python/object:os.system x", b"a: b\na: c", b"#" * (2**20 + 1)],
)  # fmt: skip
def test_a_configuration_that_cannot_be_read_names_no_endpoint(entry, content):
    entry.config.write_bytes(content)
    assert TouchstoneHarness().targets(without(entry, judge_config=None)) == ()
    entry.config.unlink()
    assert TouchstoneHarness().targets(without(entry, judge_config=None)) == ()


# --- the artifacts --------------------------------------------------------------------------------------------------


@pytest.fixture
def check(entry, tmp_path):
    def run(step: int, **files: str):
        bundle = tmp_path / "bundle"
        bundle.mkdir()
        for name, text in files.items():
            (bundle / name.replace("_", ".")).write_text(text)
        harness = TouchstoneHarness()
        return harness.check(entry, harness.steps(entry)[step], bundle)

    return run


OK = '{"ok": true, "response_text": "x"}\n'
BAD = '{"ok": false, "error": "Connection refused"}\n'


def test_an_eval_with_answers_is_ok(check):
    found = check(0, responses_jsonl=OK * 3)
    assert found.ok and found.facts == {"answers": 3, "answers_failed": 0}


def test_an_eval_whose_every_answer_failed_is_failed(check):
    found = check(0, responses_jsonl=BAD * 7)
    assert not found.ok
    assert found.reason == "7 of 7 answers failed, none is ok; the first error: Connection refused"
    assert found.facts == {"answers": 7, "answers_failed": 7, "first_error": "Connection refused"}


def test_an_eval_that_partly_failed_is_ok_and_counted(check):
    found = check(0, responses_jsonl=OK + BAD + OK + '{"ok"')
    assert found.ok
    assert found.facts == {"answers": 3, "answers_failed": 1, "first_error": "Connection refused", "torn_rows": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "holds no complete row"), ('{"ok"', "holds no complete row"), (OK + "x\n", "line 2 of responses.jsonl")],
)
def test_an_eval_without_readable_rows_is_failed(check, text, reason):
    found = check(0, responses_jsonl=text)
    assert not found.ok and reason in found.reason


def test_a_missing_file_is_evidence_too(check):
    found = check(0)
    assert not found.ok and found.reason == "responses.jsonl cannot be read: No such file or directory"


SCORES = "prompt_id,score\na,4\nb,5\n"


def test_a_judge_with_reports_and_scores_is_ok(check):
    found = check(1, reports_jsonl='{"model": "m"}\n', scores_csv=SCORES)
    assert found.ok and found.facts == {"reports": 1, "scores": 2}
    assert found.metrics == (Metric(name="score", value=4.5, stderr=0.5, n=2),)


def test_the_dimensions_are_scores_too(check):
    scores = "model,variant,metric_type,metric,score\nm,terse,dimension,Q1,4\nm,terse,prompt,A1,5\nm,,dimension,Q2,\n"
    found = check(1, reports_jsonl='{"model": "m"}\n', scores_csv=scores)
    assert found.metrics == (Metric(name="terse/Q1", value=4.0),)


@pytest.mark.parametrize(
    "row", ['{"_error": "holistic call timed out"}', '{"report": {"_error": "holistic call timed out"}}']
)
def test_a_judge_whose_last_call_failed_is_failed(check, row):
    found = check(1, reports_jsonl='{"model": "m"}\n' + row + "\n", scores_csv=SCORES)
    assert not found.ok and "call timed out" in found.reason
    assert found.facts == {"reports": 2, "scores": 2}


@pytest.mark.parametrize("scores", ["", "prompt_id,score\n", "prompt_id,score\n\n,\n"])
def test_a_judge_without_a_score_is_failed(check, scores):
    found = check(1, reports_jsonl='{"model": "m"}\n', scores_csv=scores)
    assert not found.ok and found.reason == "scores.csv holds no score"


def test_a_judge_with_unreadable_files_is_failed(check):
    found = check(1, reports_jsonl='{"model": "m"}\n{"x', scores_csv="a\n" + "x" * 200_000 + "\n")
    assert not found.ok and "scores.csv cannot be read" in found.reason
    assert found.facts == {"reports": 1, "scores": 0, "torn_rows": 1}


def test_a_judge_without_reports_is_failed(check):
    assert check(1, reports_jsonl="", scores_csv=SCORES).reason == "reports.jsonl holds no complete row"
