"""`order: phases`: what runs when, which resets it takes, whose baseline a judge's memory stands on, and a resume."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

MEMORY = {"alpha": 1500, "beta": 1800, "judge": 4000, "other": 2500}

EVAL = f"Path('memory').write_text(str({MEMORY}[model]))\ntime.sleep(0.3)\nif model in FAILING: sys.exit(3)\ndone()"
JUDGE = (
    f"Path('memory').write_text(str({MEMORY}[os.environ['JUDGE_OF_' + model]]))\ntime.sleep(0.3)\n"
    "if Path('slow').exists(): time.sleep(60)\ndone()"
)

JUDGES = {"alpha": "judge", "beta": "judge", "gamma": "other"}


@pytest.fixture
def shop(workshop: Any) -> Any:
    """An endpoint whose memory is a file; three entries, two of which have the same judge."""
    workshop.commands(
        ["alpha", "beta"],
        {"eval": EVAL.replace("FAILING", "('gamma',)"), "judge": JUDGE},
        defaults="probes: [fake]\nreset: { backend: fake, mb: 1000, verdict: verified }",
        entries={model: f"judge_model: {JUDGES[model]}" for model in ("alpha", "beta")},
    )
    text = workshop.queue.read_text()
    at = text.index("  settle:")
    settle = "  settle: { timeout_s: 0.5, plateau_polls: 2, poll_interval_s: 0.02, epsilon_mb: 100 }\n"
    text = "order: phases\n" + text[:at] + settle + text[text.index("\n", at) + 1 :]
    # The judge's step names its own model, and so its group.
    text = text.replace(
        "argv: ['{python}', judge.py, '{model}', '{bundle}']",
        "model: '{judge_model}', argv: ['{python}', judge.py, '{model}', '{bundle}']",
    )
    workshop.queue.write_text(text)
    workshop.env |= {f"JUDGE_OF_{model}": judge for model, judge in JUDGES.items()}
    workshop.write("memory", "3000")
    return workshop


def course(shop: Any) -> list[tuple[str, int, str]]:
    return [
        (event.kind, event.entry, event.step or event.data.get("before_step"))
        for event in shop.events("reset.started", "step.started")
    ]


def test_two_models_one_judge_one_reset_for_both_judges(shop: Any) -> None:
    plan = shop.runq("plan", "queue.yaml")
    assert "    e0 eval, e1 eval\n    e0 judge, e1 judge, with judge loaded once\n" in plan.stdout
    ran = shop.night()
    assert ran.returncode == 0, ran.stderr
    assert course(shop) == [
        ("reset.started", 0, "eval"), ("step.started", 0, "eval"),
        ("reset.started", 1, "eval"), ("step.started", 1, "eval"),
        ("reset.started", 0, "judge"), ("step.started", 0, "judge"), ("step.started", 1, "judge"),
    ]  # fmt: skip
    assert shop.events("step.skipped") == []
    first, second = shop.summary()["entries"]
    assert (first["eval_status"], first["judge_status"], second["eval_status"], second["judge_status"]) == ("ok",) * 4
    with shop.reader() as reader:
        deltas = {
            (r["entry"], r["step"]): (r["baseline_mb"], r["peak_mb"], r["model_delta_mb"])
            for r in reader.view("model_delta")
        }
        attempts = {(r["entry"], r["step"]): r["baseline_mb"] for r in reader.view("attempt")}
        settled = [e.id for e in reader.events(kinds=("settle.finished",))]
        started = {(e.entry, e.step): e.data["baseline_event"] for e in reader.events(kinds=("step.started",))}
        assert reader.latest_plan(shop.nights()[0])["order"] == "phases"
    assert deltas[0, "judge"] == deltas[1, "judge"] == (1000.0, 4000.0, 3000.0)
    assert deltas[0, "eval"] == (1000.0, 1500.0, 500.0)
    assert attempts[1, "judge"] == 1000.0
    assert started == {(0, "eval"): None, (1, "eval"): None, (0, "judge"): None, (1, "judge"): settled[2]}
    assert [(e.entry, e.data["status"]) for e in shop.events("entry.finished")] == [
        (0, "waiting"), (1, "waiting"), (0, "complete"), (1, "complete"),
    ]  # fmt: skip


def test_a_failed_eval_has_no_judge_and_another_judge_has_its_own_reset(shop: Any) -> None:
    extra = "  - model: gamma\n    judge_model: other\n"
    shop.queue.write_text(shop.queue.read_text() + extra)
    queue = shop.queue.read_text().replace(
        "  - model: beta\n    judge_model: judge", "  - model: beta\n    judge_model: other"
    )
    shop.queue.write_text(queue)
    shop.env["JUDGE_OF_beta"] = "other"
    (shop.folder / "eval.py").write_text((shop.folder / "eval.py").read_text().replace("[model]", ".get(model, 1200)"))
    assert shop.night().returncode == 1
    assert course(shop)[6:] == [
        ("reset.started", 0, "judge"), ("step.started", 0, "judge"),
        ("reset.started", 1, "judge"), ("step.started", 1, "judge"),
    ]  # fmt: skip
    statuses = [(e["eval_status"], e["judge_status"]) for e in shop.summary()["entries"]]
    assert statuses == [("ok", "ok"), ("ok", "ok"), ("failed", "skipped")]


def test_a_night_that_is_ended_among_the_judges_goes_on_with_them(shop: Any) -> None:
    import signal

    shop.write("slow", "")
    process = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned", step="judge")
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 130
    assert [e["eval_status"] for e in shop.summary()["entries"]] == ["ok", "ok"]
    assert [e["judge_status"] for e in shop.summary()["entries"]] == ["pending", "pending"]
    (shop.folder / "slow").unlink()
    plan = json.loads(shop.runq("plan", "queue.yaml", "--resume", "--json").stdout)
    assert [(turn["entry"], turn["steps"]) for turn in plan["turns"]] == [(0, ["judge"]), (1, ["judge"])]
    assert shop.night("--resume").returncode == 0
    assert course(shop)[6:] == [
        ("reset.started", 0, "judge"), ("step.started", 0, "judge"), ("step.started", 1, "judge"),
    ]  # fmt: skip
    assert shop.summary()["done"] == 2
    rebuilt = shop.queue_folder() / "summary.json"
    before = rebuilt.read_bytes()
    assert shop.runq("replay").returncode == 0 and rebuilt.read_bytes() == before


def test_a_judge_that_failed_leaves_nothing_to_build_on(shop: Any) -> None:
    code = (shop.folder / "judge.py").read_text()
    (shop.folder / "judge.py").write_text(
        code.replace("done()", "sys.exit(4) if model == 'alpha' else done()").replace(
            "def sys.exit(4) if model == 'alpha' else done()", "def done()"
        )
    )
    assert shop.night().returncode == 1
    assert course(shop)[4:] == [
        ("reset.started", 0, "judge"), ("step.started", 0, "judge"),
        ("reset.started", 1, "judge"), ("step.started", 1, "judge"),
    ], sys.version  # fmt: skip
