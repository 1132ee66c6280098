"""`runq compare` on nights of known answers: a planted regression, and no other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scipy import stats

SCORE = """
import json, os, random, sys
from pathlib import Path
model, bundle = sys.argv[1], Path(sys.argv[2])
drops = json.loads(os.environ["DROPS"]).get(model, {})
seed = os.environ["SEED"]
def answer(name, number):
    right = random.Random(f"{model} {name} {number}").random() < 0.7
    if random.Random(f"{seed} {model} {name} {number}").random() < 0.04:
        right = not right  # luck: every model changes a few answers from night to night
    return float(right and number >= drops.get(name, 0))
answers = {name: {f"q{n}": answer(name, n) for n in range(100)} for name in ("sums/acc", "words/acc", "maps/acc")}
(bundle / "answers.json").write_text(json.dumps(answers))
"""


def night(
    shop: Any, *, seed: int, drops: dict[str, Any] | None = None, harness: str = "scored", models: str = "abc"
) -> str:
    shop.write("score.py", SCORE)
    entries = "".join(f"  - model: model-{name}\n" for name in models)
    settle = "{ timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.02, epsilon_mb: 100000 }"
    shop.write("queue.yaml", f"defaults:\n  reset: none\n  settle: {settle}\n  harness: {harness}\nentries:\n{entries}")
    ran = shop.night(env={"DROPS": json.dumps(drops or {}), "SEED": str(seed)})
    assert ran.returncode == 0, ran.stderr
    return str(shop.nights()[0])


def compared(shop: Any, *words: str) -> tuple[int, dict[str, Any]]:
    ran = shop.runq("compare", *words, "--json")
    assert ran.stderr == ""
    return ran.returncode, json.loads(ran.stdout)


def answers(shop: Any, night: str, entry: int, score: str) -> dict[str, float]:
    found = shop.summary(night)["entries"][entry]
    return dict(json.loads((shop.folder / found["bundle_dir"] / "answers.json").read_text())[score])


def test_a_planted_regression_is_found_and_no_other(workshop: Any) -> None:
    first = night(workshop, seed=1)
    second = night(workshop, seed=2, drops={"model-b": {"words/acc": 25}})
    code, data = compared(workshop, first, second, "--fail-on-regression")
    assert code == 1
    worse = [(row["of"], row["name"]) for row in data["rows"] if row["verdict"] == "worse"]
    assert worse == [("model-b", "words/acc")]
    assert data["regressions"] == 1
    assert [row for row in data["rows"] if row["verdict"] == "better"] == []
    assert sum(row["what"] == "score" for row in data["rows"]) == 9
    (row,) = [row for row in data["rows"] if (row["of"], row["name"]) == worse[0]]
    a, b = (answers(workshop, one, 1, "words/acc") for one in (first, second))
    lost = sum(a[key] > b[key] for key in a)
    won = sum(a[key] < b[key] for key in a)
    assert (row["worse"], row["better"], row["pairs"]) == (lost, won, 100)
    assert row["p"] == pytest.approx(stats.binomtest(won, won + lost, 0.5).pvalue)
    assert row["a"] == pytest.approx(sum(a.values()) / 100)
    shown = workshop.runq("compare", first, second)
    assert shown.returncode == 0
    assert "worse: words/acc of model-b" in shown.stdout.replace("\n", " ")


def test_the_same_night_has_no_regression(workshop: Any) -> None:
    only = night(workshop, seed=1, models="a")
    code, data = compared(workshop, only, only, "--fail-on-regression")
    assert (code, data["regressions"]) == (0, 0)
    assert {row["p"] for row in data["rows"] if row["what"] == "score"} == {1.0}


def test_without_answers_the_standard_errors_decide(workshop: Any) -> None:
    """Means of about 0.7 and 0.5 with 0.03 each: a z of about 5; the bundles keep no answers."""
    harness = "{ harness: scored, stderr: 0.03, keeps: false }"
    first = night(workshop, seed=1, models="a", harness=harness)
    second = night(workshop, seed=2, models="a", harness=harness, drops={"model-a": {"sums/acc": 30}})
    code, data = compared(workshop, first, second, "--fail-on-regression")
    assert code == 1
    scores = [row for row in data["rows"] if row["what"] == "score"]
    assert [(row["name"], row["verdict"], row["test"]) for row in scores] == [
        ("sums/acc", "worse", "stderr"), ("words/acc", "", "stderr"), ("maps/acc", "", "stderr")
    ]  # fmt: skip
    for row in scores:
        z = (row["a"] - row["b"]) / (2 * 0.03**2) ** 0.5
        assert row["p"] == pytest.approx(2 * stats.norm.sf(abs(z)))
        low, high = stats.norm.interval(0.95, loc=row["b"] - row["a"], scale=(2 * 0.03**2) ** 0.5)
        assert (row["low"], row["high"]) == pytest.approx((low, high))


def test_without_standard_errors_the_numbers_decide(workshop: Any) -> None:
    """100 answers each, right or wrong: what chi-squared says of the two shares."""
    harness = "{ harness: scored, keeps: false }"
    first = night(workshop, seed=1, models="a", harness=harness)
    second = night(workshop, seed=2, models="a", harness=harness, drops={"model-a": {"sums/acc": 40}})
    code, data = compared(workshop, first, second, "--fail-on-regression")
    assert code == 1
    scores = [row for row in data["rows"] if row["what"] == "score"]
    assert [(row["name"], row["verdict"], row["test"]) for row in scores] == [
        ("sums/acc", "worse", "number"), ("words/acc", "", "number"), ("maps/acc", "", "number")
    ]  # fmt: skip
    for row in scores:
        right = [round(row[side] * 100) for side in ("a", "b")]
        table = [[count, 100 - count] for count in right]
        assert row["p"] == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)
        assert row["low"] < row["difference"] < row["high"]
    shown = workshop.runq("compare", first, second).stdout
    assert f"{scores[0]['low']:+.3g} to" in shown.replace("\n", " ")


def test_two_models_by_their_latest_results(workshop: Any) -> None:
    night(workshop, seed=1)
    night(workshop, seed=2, drops={"model-b": {"words/acc": 60}}, models="b")
    code, data = compared(workshop, "model-a", "model-b")
    assert (code, data["kind"]) == (0, "model")
    (row,) = [row for row in data["rows"] if row["name"] == "words/acc"]
    assert row["b"] < 0.4, "the later night's"
    assert row["verdict"] == "worse"


def test_less_may_be_better(workshop: Any) -> None:
    first = night(workshop, seed=1, models="a")
    second = night(workshop, seed=2, models="a", drops={"model-a": {"sums/acc": 40}})
    _, data = compared(workshop, first, second, "--lower-is-better", "sums/acc", "--fail-on-regression")
    assert [row["verdict"] for row in data["rows"] if row["name"] == "sums/acc"] == ["better"]


def test_an_entry_that_was_complete_and_is_not_is_a_regression(workshop: Any) -> None:
    first = night(workshop, seed=1, models="a")
    workshop.write("score.py", "raise SystemExit(3)")
    assert workshop.night(env={"DROPS": "{}", "SEED": "1"}).returncode == 1
    code, data = compared(workshop, first, workshop.nights()[0], "--fail-on-regression")
    assert code == 1
    assert next((row["what"], row["a"], row["verdict"]) for row in data["rows"]) == ("status", "complete", "worse")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nobody", "model-a"], "neither a night of this journal nor a model"),
        (["NIGHT", "model-a"], "compare two nights"),
    ],
)
def test_what_cannot_be_compared_is_said(workshop: Any, words: list[str], message: str) -> None:
    only = night(workshop, seed=1, models="a")
    ran = workshop.runq("compare", *[only if word == "NIGHT" else word for word in words])
    assert ran.returncode == 2
    assert message in ran.stderr


TABLE = """
import json, os, sys
from pathlib import Path
pack, bundle = Path(sys.argv[1]), Path(sys.argv[2])
wrong = json.loads(os.environ["WRONG"])
rows = ["prompt_id,repeat,passed,mark"]
for number in range(40):
    for repeat in (1, 2, 3):
        right = number not in wrong
        rows.append(f"q{number},{repeat},{str(right).lower()},{5 if right else 4}")
(bundle / "scores.csv").write_text("\\n".join(rows) + "\\n")
"""


def test_repeats_are_no_further_evidence(workshop: Any) -> None:
    """5 of 40 questions get worse, each asked 3 times: p is 2 * 0.5**5 = 0.0625, and not 2 * 0.5**15 = 0.00006."""
    workshop.write("table.py", TABLE)
    workshop.write("office.yaml", "id: office\n")
    settle = "{ timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.02, epsilon_mb: 100000 }"
    step = "{ argv: ['{python}', table.py, '{pack}', '{bundle}'], artifacts: [scores.csv] }"
    workshop.write(
        "queue.yaml",
        f"defaults:\n  reset: none\n  settle: {settle}\n  harness:\n    harness: command\n    steps:\n"
        f"      eval: {step}\nentries:\n  - {{ model: m, pack: office.yaml }}\n",
    )
    assert workshop.night(env={"WRONG": "[]"}).returncode == 0
    assert workshop.night(env={"WRONG": "[1, 2, 3, 4, 5]"}).returncode == 0
    code, data = compared(workshop, "--fail-on-regression")
    scores = {row["name"]: row for row in data["rows"] if row["what"] == "score"}
    assert code == 0
    assert {name: (row["a"], row["b"]) for name, row in scores.items()} == {
        "passed": (1.0, 0.875),
        "mark": (5.0, 4.875),
    }
    assert [(row["pairs"], row["better"], row["worse"], row["p"]) for row in scores.values()] == [
        (40, 0, 5, 0.0625)
    ] * 2
    assert data["notes"] == []


def test_without_names_the_latest_night_and_the_one_before_of_its_queue(workshop: Any) -> None:
    first = night(workshop, seed=1, models="a")
    refused = workshop.runq("compare")
    assert refused.returncode == 2 and "is the first night of its queue" in refused.stderr
    second = night(workshop, seed=2, models="a")
    other = workshop.write("other.yaml", (workshop.folder / "queue.yaml").read_text())
    assert workshop.runq("night", other.name, env={"DROPS": "{}", "SEED": "3"}).returncode == 0
    third = night(workshop, seed=4, models="a")
    sides = [compared(workshop, *words)[1] for words in ((), (second,), (third, first))]
    assert [(data["a"], data["b"]) for data in sides] == [(second, third), (first, second), (third, first)]
    refused = workshop.runq("compare", "model-a")
    assert refused.returncode == 2 and "give two nights or two models" in refused.stderr


def test_that_something_else_was_asked_is_noted(workshop: Any) -> None:
    settle = "{ timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.02, epsilon_mb: 100000 }"
    workshop.write("config.yaml", "endpoint: { base_url: 'http://127.0.0.1:1/v1' }\n")
    workshop.write("packs/office.yaml", "id: office\n")
    entry = "{ model: m, config: config.yaml, pack: packs/office.yaml }"
    workshop.write("queue.yaml", f"defaults: {{ reset: none, settle: {settle} }}\nentries:\n  - {entry}\n")
    assert workshop.night().returncode == 0
    workshop.write("packs/office.yaml", "id: office\ntitle: other questions\n")
    assert workshop.night().returncode == 0
    _, data = compared(workshop)
    of = "m · packs/office.yaml · config.yaml"
    assert data["notes"] == [{"of": of, "text": "eval was not the same: office.yaml changed"}]
    assert f"note: {of}: eval was not the same: office.yaml changed" in workshop.runq("compare").stdout


def test_a_memory_figure_without_a_proven_baseline_is_marked_on_its_side(workshop: Any) -> None:
    """With `reset: none` nothing proves a baseline."""
    first = night(workshop, seed=1, models="a")
    second = night(workshop, seed=2, models="a")
    _, data = compared(workshop, first, second)
    (memory,) = [row for row in data["rows"] if row["what"] == "memory"]
    entries = [workshop.summary(name)["entries"][0] for name in (first, second)]
    assert (memory["a"], memory["b"]) == tuple(entry["model_delta_mb"] for entry in entries)
    assert (memory["a_proven"], memory["b_proven"]) == (False, False)
    shown = workshop.runq("compare", first, second).stdout
    assert shown.count(" MB*") == 2 and "* the baseline is not proven" in shown
