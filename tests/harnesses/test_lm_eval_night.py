"""A night of the `lm_eval` harness on a local task of 50 questions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import night, queue

pytestmark = [pytest.mark.real_model, pytest.mark.slow]

TASK = """
task: local_sums
dataset_path: json
dataset_kwargs: { data_files: { test: DATA } }
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: { until: ["\\n"], max_gen_toks: 8, do_sample: false }
filter_list:
  - name: number
    filter:
      - { function: regex, regex_pattern: "([0-9]+)", group_select: -1 }
      - { function: take_first }
metric_list:
  - { metric: exact_match, aggregation: mean, higher_is_better: true }
metadata: { version: 1.0 }
"""


def test_the_metric_is_the_one_of_lm_evals_own_file(router: Any, workshop: Any, harness_python: str) -> None:
    server = router()
    questions = [{"question": f"What is {n} + 1? Answer:", "answer": str(n + 1)} for n in range(50)]
    data = workshop.write("tasks/sums.jsonl", "".join(json.dumps(one) + "\n" for one in questions))
    workshop.write("tasks/sums.yaml", TASK.replace("DATA", str(data)))
    workshop.env |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(workshop.folder / "hf")}
    harness = (
        f"{{ harness: lm_eval, python: {harness_python}, endpoint: {{ base_url: '{server.url}/v1' }},"
        " include_path: tasks }"
    )
    queue(workshop, server.url, harness, ["{ model: smollm2-Q4_1, pack: local_sums }"])
    plan = workshop.runq("plan", "queue.yaml")
    assert plan.returncode == 0, plan.stderr
    night(workshop)
    (entry,) = workshop.summary()["entries"]
    (results,) = (workshop.bundle(0, "eval") / "lm-eval").rglob("results_*.json")
    own = json.loads(results.read_text())["results"]["local_sums"]
    (metric,) = entry["metrics"]
    assert (metric["name"], metric["step"], metric["n"]) == ("local_sums/exact_match,number", "eval", 50)
    assert metric["value"] == own["exact_match,number"]
    assert metric["stderr"] == own["exact_match_stderr,number"]
    # and lm-eval's figure is that of its samples, one by one
    (samples,) = (workshop.bundle(0, "eval") / "lm-eval").rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    right = sum(line["filtered_resps"] == [line["doc"]["answer"]] for line in lines)
    assert (len(lines), right / 50) == (50, metric["value"])
    assert entry["answers"] == 50
