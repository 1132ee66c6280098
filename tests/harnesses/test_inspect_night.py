"""Nights of the `inspect` harness: a pack with a judge, a plain task with its own scorer, an eval that was cut off."""

from __future__ import annotations

import csv
import json
import subprocess
from statistics import mean
from typing import Any

import pytest

from ..stand_ins.scripted_judge import KEY, RED, judge, score_of
from .conftest import ANSWERS, PROMPTS, night, pack_text, queue

pytestmark = [pytest.mark.real_model, pytest.mark.slow]

MODELS = ("smollm2-Q4_1", "smollm2-Q8_0")


def rows(shop: Any, entry: int, name: str, step: str = "eval") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shop.bundle(entry, step) / name).read_text().splitlines()]


def test_two_models_a_pack_and_a_judge(router: Any, workshop: Any, harness_python: str) -> None:
    server = router()
    workshop.write("pack.yaml", pack_text())
    workshop.env["JUDGE_KEY_OF_THE_TEST"] = KEY
    with judge(clarity=4, safety=2) as grader:
        harness = (
            f"{{ harness: inspect, python: {harness_python},"
            f" endpoint: {{ base_url: '{server.url}/v1', engine: llamacpp }},"
            f" judge_endpoint: {{ base_url: '{grader.url}', api_key_env: JUDGE_KEY_OF_THE_TEST }} }}"
        )
        queue(
            workshop, server.url, harness, [f"{{ model: {m}, pack: pack.yaml, judge_model: grader-1 }}" for m in MODELS]
        )
        plan = workshop.runq("plan", "queue.yaml")
        assert plan.returncode == 0, plan.stderr
        night(workshop)
    assert grader.refused == 0
    assert len(grader.prompts) == 2 * (ANSWERS + 2 * 2), (
        "each answer, and each of two qualities for each of two variants"
    )
    summary = workshop.summary()
    for number, (entry, model) in enumerate(zip(summary["entries"], MODELS, strict=True)):
        assert (entry["eval_status"], entry["judge_status"], entry["baseline_proven"]) == ("ok", "ok", True)
        answers = rows(workshop, number, "responses.jsonl")
        assert len(answers) == entry["answers"] == ANSWERS
        assert {row["prompt_id"] for row in answers} == {prompt for prompt, *_ in PROMPTS}
        assert {(row["variant"], row["model_id"], row["ok"]) for row in answers} == {
            ("plain", model, True), ("terse", model, True)
        }  # fmt: skip
        assert max(row["completion_tokens"] for row in answers) <= 12
        assert_scores(workshop, number, entry, answers)
        # Inspect's own command reads what is left.
        log = workshop.bundle(number, "judge") / "scored.eval"
        dump = subprocess.run(
            [harness_python, "-m", "inspect_ai", "log", "dump", "--header-only", str(log)],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert dump.returncode == 0, dump.stderr
        header = json.loads(dump.stdout)
        assert (header["status"], header["eval"]["dataset"]["samples"]) == ("success", ANSWERS)
    assert_no_key(workshop)


def assert_scores(shop: Any, number: int, entry: Any, answers: list[dict[str, Any]]) -> None:
    """Scores, reports and metrics, worked out again from the answers."""
    expected = [score_of(row["response_text"]) for row in answers]
    with (shop.bundle(number, "judge") / "scores.csv").open(newline="") as stream:
        scores = list(csv.DictReader(stream))
    given = [row for row in scores if row["kind"] == "answer"]
    assert sorted((r["variant"], r["id"], r["repeat"], float(r["score"])) for r in given) == sorted(
        (row["variant"], row["prompt_id"], str(row["repeat"]), float(score))
        for row, score in zip(answers, expected, strict=True)
    )
    dimensions = {(r["variant"], r["id"]): float(r["score"]) for r in scores if r["kind"] == "dimension"}
    assert dimensions == {(v, d): s for v in ("plain", "terse") for d, s in (("clarity", 4.0), ("safety", 2.0))}
    reports = rows(shop, number, "reports.jsonl", "judge")
    # (4 x 3 + 2 x 1) / 4, and safety 2 is below the threshold of 3
    assert [(r["variant"], r["weighted_score"], r["knocked_out"], r["knock_out_reason"]) for r in reports] == [
        (variant, 3.5, True, "safety 2 is below 3") for variant in ("plain", "terse")
    ]
    metrics = {metric["name"]: metric for metric in entry["metrics"]}
    assert metrics["flags/mean"]["value"] == pytest.approx(mean(expected))
    assert metrics["flags/mean"]["n"] == ANSWERS
    assert metrics["plain/weighted"]["value"] == metrics["terse/weighted"]["value"] == 3.5
    flagged = {row["id"] for row in given if RED in row["red_flags"]}
    cut = {row["prompt_id"] for row in answers if not row["response_text"].strip().endswith((".", "!", "?"))}
    assert flagged == cut


def assert_no_key(shop: Any) -> None:
    """The judge's key is nowhere below the runs folder, and in no command line that the journal has."""
    assert not any(KEY in " ".join(event.data["argv"]) for event in shop.events("step.started"))
    for file in shop.runs.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

@task
def sums(n: int = 5):
    asked = "What is {} + 1? Answer with the number."
    samples = [Sample(id=f"s{i}", input=asked.format(i), target=str(i + 1)) for i in range(n)]
    return Task(dataset=samples, solver=generate(), scorer=includes())
"""


def test_a_plain_task_with_its_own_scorer(router: Any, workshop: Any, harness_python: str) -> None:
    server = router()
    workshop.write("tasks.py", TASK)
    harness = (
        f"{{ harness: inspect, python: {harness_python}, endpoint: {{ base_url: '{server.url}/v1' }},"
        " task_args: { n: 12 }, args: ['--max-tokens', '16'] }"
    )
    queue(workshop, server.url, harness, [f"{{ model: {model}, pack: 'tasks.py@sums' }}" for model in MODELS])
    night(workshop)
    read = "import json, sys\nfrom inspect_ai.log import read_eval_log\nlog = read_eval_log(sys.argv[1])\n"
    read += "print(json.dumps([[s.output.completion, s.target] for s in log.samples]))"
    for number, entry in enumerate(workshop.summary()["entries"]):
        log = workshop.bundle(number, "eval") / "answers.eval"
        out = subprocess.check_output([harness_python, "-c", read, str(log)], text=True, timeout=120)
        pairs = json.loads(out)
        assert len(pairs) == entry["answers"] == 12
        right = sum(target.lower() in text.lower() for text, target in pairs)
        metric = entry["metrics"][0]
        assert (metric["name"], metric["n"]) == ("includes/accuracy", 12)
        assert metric["value"] == pytest.approx(right / 12)


def test_a_killed_eval_goes_on_without_asking_finished_samples_again(workshop: Any, harness_python: str) -> None:
    """The endpoint is the scripted one, which counts: it hangs once, in the eighth of twelve samples."""
    workshop.write("tasks.py", TASK)
    with judge() as server:
        workshop.env["ENDPOINT_KEY_OF_THE_TEST"] = KEY
        harness = (
            f"{{ harness: inspect, python: {harness_python}, score: false, task_args: {{ n: 12 }},"
            f" endpoint: {{ base_url: '{server.url}', api_key_env: ENDPOINT_KEY_OF_THE_TEST }},"
            " args: ['--max-connections', '1', '--max-retries', '0', '--attempt-timeout', '60'] }"
        )
        lines = [
            "defaults:",
            "  reset: none",
            f"  harness: {harness}",
            "  retries: 1",
            "  step_timeout_s: { eval: 45 }",
        ]
        lines += ["  settle: { timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.02, epsilon_mb: 100000 }"]
        workshop.write("queue.yaml", "\n".join([*lines, "entries:", "  - { model: m, pack: 'tasks.py@sums' }"]) + "\n")
        server.hang_at = 8
        night(workshop)
    assert workshop.attempts(0, "eval") == [(1, "timeout"), (2, "ok")]
    finished = [prompt for number, prompt in enumerate(server.prompts, start=1) if number != 8]
    assert len(finished) == len(set(finished)) == 12, "seven before the hang, five after; none twice"
    assert workshop.summary()["entries"][0]["answers"] == 12
