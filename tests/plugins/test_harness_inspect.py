"""What the `inspect` and `lm_eval` harnesses say and read, without running either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runq.plugin import Metric, PluginError
from runq.testing.stand_ins import make_entry
from runq_plugins.harness.inspect_harness import InspectHarness
from runq_plugins.harness.lm_eval_harness import LmEvalHarness
from runq_plugins.harness.server_endpoint import ServerEndpoint
from runq_schemas.queue import ModelSpec

HERE = ServerEndpoint(base_url="http://127.0.0.1:8080/v1")
EVAL = {
    "status": "success", "samples": 10, "expected": 10, "limit": None, "failed": 0, "empty": 0, "first_error": "",
    "error": "", "metrics": [],
}  # fmt: skip


@pytest.fixture
def entry(tmp_path: Path) -> Any:
    def make(pack: str | None, **more: Any) -> Any:
        return make_entry(tmp_path, pack=None if pack is None else tmp_path / pack, **more)

    return make


def evidence(harness: Any, entry: Any, step: str, folder: Path, data: Any, name: str = "inspect-eval.json") -> Any:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(data))
    (found,) = [one for one in harness.steps(entry) if one.name == step]
    return harness.check(entry, found, folder)


@pytest.mark.parametrize(
    ("change", "ok", "reason"),
    [
        ({}, True, ""),
        ({"failed": 3, "first_error": "refused"}, True, ""),
        (
            {"failed": 10, "first_error": "refused"},
            False,
            "10 of 10 answers failed, none is ok; the first error: refused",
        ),
        ({"samples": 9}, False, "the log holds 9 of 10 samples"),
        ({"samples": 9, "limit": 9}, True, ""),
        ({"samples": 0}, False, "the log holds no sample"),
        ({"status": "cancelled", "error": "by hand"}, False, "Inspect's log says cancelled: by hand"),
    ],
)
def test_an_eval_is_ok_only_with_every_sample_and_one_answer(
    change: dict[str, Any], ok: bool, reason: str, entry: Any, tmp_path: Path
) -> None:
    found = evidence(InspectHarness(endpoint=HERE), entry("task.py"), "eval", tmp_path / "b", {**EVAL, **change})
    assert (found.ok, found.reason) == (ok, reason)
    assert found.facts["answers_failed"] == change.get("failed", 0)


METRICS = [{"name": "match/accuracy", "value": 0.5, "stderr": 0.1, "n": 10}]


@pytest.mark.parametrize(
    ("data", "reports", "ok", "reason"),
    [
        ({**EVAL, "metrics": METRICS}, '{"variant": "plain"}\n', True, ""),
        ({**EVAL, "metrics": []}, '{"variant": "plain"}\n', False, "no answer got a score"),
        ({**EVAL, "metrics": METRICS}, '{"_error": "no score for safety"}\n', False, "no score for safety"),
    ],
)
def test_a_judge_is_ok_only_with_scores_and_no_error_among_its_reports(
    data: Any, reports: str, ok: bool, reason: str, entry: Any, tmp_path: Path
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "reports.jsonl").write_text(reports)
    judged = entry("pack.yaml", judge_model="j")
    found = evidence(InspectHarness(endpoint=HERE), judged, "judge", tmp_path / "b", data, "inspect-judge.json")
    assert found.ok is ok
    assert reason in found.reason
    if ok:
        assert found.metrics == (Metric(name="match/accuracy", value=0.5, stderr=0.1, n=10),)


@pytest.mark.parametrize(
    ("pack", "file"),
    [
        ("task.py", "task.py"),
        ("tasks/all.py@one", "tasks/all.py"),
        ("packs/office.yaml", "packs/office.yaml"),
        ("./folder", "./folder"),
        ("inspect_evals/gsm8k", None),
    ],
)
def test_a_pack_is_a_file_or_a_registered_task(pack: str, file: str | None) -> None:
    assert InspectHarness(endpoint=HERE).pack_file(pack) == file
    assert LmEvalHarness(endpoint=HERE).pack_file(pack) is None


def test_which_steps_there_are(entry: Any) -> None:
    harness = InspectHarness(endpoint=HERE)
    names = [
        [step.name for step in harness.steps(one)]
        for one in (entry("pack.yaml"), entry("pack.yaml", judge_model="j"), entry("task.py"), entry("evals/gsm8k"))
    ]
    assert names == [["eval"], ["eval", "judge"], ["eval", "judge"], ["eval", "judge"]]
    assert [step.name for step in InspectHarness(endpoint=HERE, score=False).steps(entry("task.py"))] == ["eval"]


def test_a_key_is_never_in_a_command_line_nor_in_what_identifies_a_step(
    entry: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_KEY", "sesame")
    (tmp_path / "key").write_text("from-a-file\n")
    for option, source, key in (
        (ServerEndpoint(base_url="http://127.0.0.1:1/v1", api_key_env="MY_KEY"), "env:MY_KEY", "sesame"),
        (
            ServerEndpoint(base_url="http://127.0.0.1:1/v1", api_key_file="key"),
            f"file:{tmp_path / 'key'}",
            "from-a-file",
        ),
    ):
        for harness in (InspectHarness(endpoint=option, judge_endpoint=option), LmEvalHarness(endpoint=option)):
            one = entry("task.py", judge_model="j")
            for step in harness.steps(one):
                argv = harness.argv(one, step, tmp_path)
                assert source in argv
                assert key not in " ".join(argv) + repr(step)
            assert {target.api_key for target in harness.targets(one)} == {key}


def test_a_key_by_two_ways_is_refused() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        ServerEndpoint(base_url="http://127.0.0.1:1/v1", api_key_env="A", api_key_file="b")


@pytest.mark.parametrize("harness", [InspectHarness(), LmEvalHarness()])
def test_without_an_endpoint_the_remedy_is_named(harness: Any, entry: Any) -> None:
    with pytest.raises(PluginError, match="names an endpoint") as caught:
        harness.steps(entry("task.py"))
    assert "base_url" in caught.value.remedy


def test_the_models_own_settings_reach_inspect(entry: Any, tmp_path: Path) -> None:
    model = ModelSpec(id="m", max_tokens_default=700, reasoning_headroom_tokens=300, extra_body={"think": False})
    one = entry("task.py", model=model)
    argv = list(InspectHarness(endpoint=HERE).argv(one, InspectHarness(endpoint=HERE).steps(one)[0], tmp_path))
    assert argv[argv.index("--max-tokens") + 1] == "1000"
    assert json.loads(argv[argv.index("--extra-body") + 1]) == {"think": False}


LM_EVAL = {
    "results": {
        "sums": {"alias": "sums", "exact_match,number": 0.25, "exact_match_stderr,number": 0.07, "bleu,none": 3.5,
                 "bleu_stderr,none": "N/A", "sample_len": 40},
        "all": {"acc,none": float("nan"), "acc_stderr,none": 0.1},
    },
    "n-samples": {"sums": {"original": 50, "effective": 40}},
}  # fmt: skip


def test_lm_evals_metrics(entry: Any, tmp_path: Path) -> None:
    found = evidence(LmEvalHarness(endpoint=HERE), entry("sums,all"), "eval", tmp_path / "b", LM_EVAL, "lm-eval.json")
    assert found.ok
    assert found.metrics == (
        Metric(name="sums/exact_match,number", value=0.25, stderr=0.07, n=40),
        Metric(name="sums/bleu", value=3.5, stderr=None, n=40),
    )
    assert found.facts == {"answers": 40, "tasks": 1}


@pytest.mark.parametrize("data", [{}, {"results": {}}, {"results": {"a": {"acc,none": "N/A"}}}, []])
def test_results_without_a_metric_prove_nothing(data: Any, entry: Any, tmp_path: Path) -> None:
    assert not evidence(LmEvalHarness(endpoint=HERE), entry("a"), "eval", tmp_path / "b", data, "lm-eval.json").ok


def test_the_tasks_and_the_limit_are_the_steps_identity(entry: Any) -> None:
    steps = [
        LmEvalHarness(endpoint=HERE, limit=limit).steps(entry(pack))[0].settings
        for pack, limit in (("a", None), ("b", None), ("a", 5))
    ]
    assert steps[0] != steps[1] != steps[2] != steps[0]
    assert (
        steps[0] == LmEvalHarness(endpoint=ServerEndpoint(base_url="http://other:1/v1")).steps(entry("a"))[0].settings
    )
