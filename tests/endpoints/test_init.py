"""`runq init --yes` against a real llama.cpp router and a stand-in for Ollama; then plan, doctor, check and a night."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ..stand_ins.routers import llama_cpp, router

__all__ = ["llama_cpp", "router"]

pytestmark = [pytest.mark.real_model, pytest.mark.slow]

MODELS = ["smollm2-Q4_1", "smollm2-Q8_0", "smollm2-F16", "gemma3:4b", "qwen3:8b"]
"""The smallest first: 94, 138 and 258 MB as files; 3.1 and 4.9 GB as Ollama says."""


def test_the_written_file_passes_plan_doctor_and_check_and_runs(workshop: Any, router: Any, host: Any) -> None:
    ollama = host("ollama")
    wrote = workshop.runq("init", "--yes", "--url", router().url, "--url", ollama.url)
    assert wrote.returncode == 0, wrote.stderr
    plan = workshop.runq("plan", "queue.yaml", "--json")
    assert plan.returncode == 0, plan.stderr
    entries = json.loads(plan.stdout)["entries"]
    assert [entry["model"]["id"] for entry in entries] == MODELS
    assert [entry["settings"]["reset"]["name"] for entry in entries] == ["llamacpp"] * 3 + ["ollama"] * 2
    looked = workshop.runq("doctor", "queue.yaml", "--json")
    queue = [row for row in json.loads(looked.stdout)["findings"] if row["area"] == "queue"]
    assert len(queue) == 6 and all(row["status"] == "ok" for row in queue), queue
    # Faster than the figures for models of several GB: what is shown is that the file works, not how long memory takes.
    fast = "  settle: { timeout_s: 15, plateau_polls: 2, poll_interval_s: 0.3, epsilon_mb: 200 }\n"
    workshop.queue.write_text(workshop.queue.read_text().replace("defaults:\n", f"defaults:\n{fast}", 1))
    check = workshop.runq("check", "queue.yaml", "--json")
    assert check.returncode == 0, check.stderr
    rows = json.loads(check.stdout)
    assert [(row["model"], row["status"], row["verdict"]) for row in rows] == [(m, "ok", "ok") for m in MODELS]
    ran = workshop.night("--only", "e0,e3")
    assert ran.returncode == 0, ran.stderr
    summary = {entry["model_id"]: entry for entry in workshop.summary()["entries"]}
    assert [summary[model]["eval_status"] for model in (MODELS[0], MODELS[3])] == ["ok", "ok"]
    scores = (workshop.bundle(0, "eval") / "scores.csv").read_text().splitlines()
    assert len(scores) == 9 and "capital,true" in scores
