"""`runq import`: what becomes of touchstone's summaries and of Inspect's logs, and that nothing else changes."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from runq.importing import inspect_logs
from runq_journal import JournalReader
from runq_schemas.event_parts import Metric

SUMMARY: dict[str, Any] = {
    "started": "2026-08-30_221500",
    "total": 3,
    "done": 2,
    "entries": [
        {"index": 0, "model_id": "gemma", "config": "config.yaml", "pack": "packs/office.yaml", "bundle_dir": "runs/x",
         "eval_status": "ok", "judge_status": "ok", "eval_seconds": 3600.0, "judge_seconds": 900.5, "error": None},
        {"index": 1, "model_id": "qwen", "config": "config.yaml", "pack": "packs/office.yaml", "bundle_dir": "runs/y",
         "eval_status": "timeout", "judge_status": "skipped", "eval_seconds": 14400.0, "judge_seconds": None,
         "error": "eval timeout (>14400s)"},
        {"index": 2, "model_id": "late", "config": "config.yaml", "pack": "packs/office.yaml", "bundle_dir": None,
         "eval_status": "pending", "judge_status": "pending", "eval_seconds": None, "judge_seconds": None,
         "error": None},
    ],
}  # fmt: skip

LOG: dict[str, Any] = {
    "version": 2,
    "status": "success",
    "eval": {"created": "2026-09-01T22:00:00+00:00", "task": "capitals", "task_file": "tasks/capitals.py",
             "model": "openai-api/lmstudio/qwen/qwen3-8b", "dataset": {"samples": 50}, "config": {}},
    "results": {"total_samples": 50, "completed_samples": 50, "scores": [
        {"name": "includes", "scorer": "includes", "scored_samples": 50, "params": {}, "metrics": {
            "accuracy": {"name": "accuracy", "value": 0.42, "params": {}},
            "stderr": {"name": "stderr", "value": 0.07, "params": {}}}},
        {"name": "cost", "scorer": "cost", "reducer": "max", "scored_samples": 50, "metrics": {
            "mean": {"name": "mean", "value": 3.5}, "odd": {"name": "odd", "value": None}}}]},
    "stats": {"started_at": "2026-09-01T22:00:00+00:00", "completed_at": "2026-09-01T22:30:00+00:00"},
}  # fmt: skip


def write_eval(path: Path, header: Any, name: str = "header.json") -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", "{}")
        archive.writestr(name, json.dumps(header))


def view(runs: Path, name: str, *columns: str) -> list[tuple[Any, ...]]:
    with JournalReader.open(runs / "journal.db") as reader:
        assert reader.verify() is None
        return [tuple(row[column] for column in columns) for row in reader.view(name)]


def test_a_summary_of_touchstone_becomes_history(runq: Any, home: Path) -> None:
    folder = home / "old" / "2026-08-30_221500_queue"
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(SUMMARY))
    ran = runq("import", "old")
    assert ran.code == 0, ran.err
    assert ran.out == f"+ {folder}/summary.json: 2 entries, 3 steps, 0 scores\n"
    runs = home / "runs"
    assert view(runs, "imported_step", "model_id", "step", "status", "seconds", "reason") == [
        ("gemma", "eval", "ok", 3600.0, None),
        ("gemma", "judge", "ok", 900.5, None),
        ("qwen", "eval", "timeout", 14400.0, "eval timeout (>14400s)"),
    ]
    assert view(runs, "duration_estimate", "step", "model_id", "pack", "seconds", "n") == [
        ("eval", "gemma", "packs/office.yaml", 3600.0, 1),
        ("judge", "gemma", "packs/office.yaml", 900.5, 1),
    ]
    plan = json.loads(runq("plan", "queue.yaml", "--json").out)
    assert [step["usual_s"] for step in plan["entries"][0]["steps"]] == [3600.0, 900.5]


def test_twice_is_once_and_no_night_comes_of_it(runq: Any, past: Path, home: Path) -> None:
    (home / "summary.json").write_text(json.dumps(SUMMARY))
    (home / "copy").mkdir()
    (home / "copy" / "summary.json").write_text(json.dumps(SUMMARY))
    before = {name: view(past, name, "night") for name in ("night", "night_plan", "baseline", "todo", "entry_result")}
    assert runq("import", "summary.json").code == 0
    again = runq("import", "summary.json", "copy", "--json")
    assert again.code == 0
    assert [(row["status"], row["steps"]) for row in json.loads(again.out)] == [("known", 0), ("known", 0)]
    assert len(view(past, "imported_step", "event")) == 3
    assert {name: view(past, name, "night") for name in before} == before, "no night, no baseline, nothing to resume"
    assert runq("replay", "--verify").code == 0
    assert "2026-09-01_220000" in runq("nights").out and "_import" not in runq("nights").out
    assert runq("status").out.startswith("night 2026-09-01_220000  finished")


def test_durations_of_nights_and_imports_have_one_median(runq: Any, past: Path, home: Path) -> None:
    (home / "summary.json").write_text(json.dumps(SUMMARY))
    runq("import", "summary.json")
    names = ("step", "model_id", "seconds", "n")
    found = {row[:2]: row[2:] for row in view(past, "duration_estimate", *names)}
    assert found["eval", "gemma"] == ((3600.0 + 5.0) / 2, 2), "the night's took 5 s"


def test_logs_of_inspect_become_durations_and_scores(runq: Any, home: Path) -> None:
    logs = home / "logs"
    logs.mkdir()
    (logs / "a.json").write_text(json.dumps(LOG, indent=2))
    failed = LOG | {"status": "error", "error": {"message": "Connection refused\ntraceback"}, "results": None}
    failed["eval"] = LOG["eval"] | {"model": "ollama/qwen3:8b"}
    write_eval(logs / "b.eval", failed)
    (logs / "other.json").write_text('{"version": "x"}')
    ran = runq("import", "logs")
    assert ran.code == 0, ran.out
    assert ran.out.splitlines() == [
        f"+ {logs}/b.eval: 1 entries, 1 steps, 0 scores",
        f"+ {logs}/a.json: 1 entries, 2 steps, 2 scores",
    ]
    runs = home / "runs"
    pack = "tasks/capitals.py@capitals"
    assert view(runs, "imported_step", "model_id", "pack", "step", "status", "seconds", "reason") == [
        ("qwen3:8b", pack, "eval", "failed", 1800.0, "Connection refused"),
        ("qwen/qwen3-8b", pack, "eval", "ok", 1800.0, None),
        ("qwen/qwen3-8b", pack, "judge", "ok", None, None),
    ]
    assert view(runs, "metric", "step", "name", "value", "stderr", "n", "imported", "newest", "at") == [
        ("judge", "includes/accuracy", 0.42, 0.07, 50, True, True, "2026-09-01T22:30:00+00:00"),
        ("judge", "cost/max/mean", 3.5, None, 50, True, True, "2026-09-01T22:30:00+00:00"),
    ]


def test_the_newest_score_is_of_a_night_else_of_the_latest_import(home: Path, past: Path, runq: Any) -> None:
    from runq_journal import Journal
    from runq_schemas import events as ev

    with Journal.open(past / "journal.db") as journal:
        for name in ("score", "other"):
            metric = Metric(name=f"includes/{name}" if name == "other" else "includes/accuracy", value=0.5)
            journal.append(
                ev.StepFinished(status="ok", metrics=(metric,)),
                night="2026-09-01_220000",
                entry=0,
                step="judge",
                attempt=9,
            )
    for number, (day, model) in enumerate((("03", "gemma"), ("02", "gemma"), ("05", "new"), ("04", "new"))):
        log = json.loads(json.dumps(LOG).replace("2026-09-01", f"2026-09-{day}"))
        log["eval"] |= {"model": f"ollama/{model}", "task": "packs/office.yaml", "task_file": None}
        (home / f"{number}.json").write_text(json.dumps(log))
        assert runq("import", f"{number}.json").code == 0
    rows = view(past, "metric", "model_id", "name", "at", "imported", "newest")
    newest = [(model, name, at[:10]) for model, name, at, imported, new in rows if new and imported]
    assert ("new", "includes/accuracy", "2026-09-05") in newest
    # The night's entry has a config, which an Inspect log has not: they are not the same; its own stay the newest.
    assert [new for model, _, _, imported, new in rows if model == "gemma" and not imported] == [True, True]
    assert [imported for *_, imported, _ in rows] == sorted((i for *_, i, _ in rows), reverse=True), (
        "imports come first"
    )


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("summary.json", "{", "it is no JSON"),
        ("summary.json", '{"entries": []}', "neither a summary of touchstone nor a log of Inspect"),
        ("summary.json", json.dumps(SUMMARY | {"entries": SUMMARY["entries"][2:]}), "no step of it ran"),
        ("a.eval", "not a zip", "it is no log of Inspect"),
        (
            "summary.json",
            json.dumps(SUMMARY | {"entries": [SUMMARY["entries"][0] | {"steps": []}]}),
            "runq wrote it itself",
        ),
    ],
)
def test_what_cannot_be_taken_over_is_told_and_costs_only_itself(
    runq: Any, home: Path, name: str, content: str, reason: str
) -> None:
    (home / name).write_text(content)
    (home / "good").mkdir()
    (home / "good" / "summary.json").write_text(json.dumps(SUMMARY))
    ran = runq("import", name, "good")
    assert ran.code == 1
    first, second = ran.out.splitlines()
    assert first.startswith(f"! {home / name}: ") and reason in first
    assert second.startswith("+ ")


def test_an_eval_that_never_ended(runq: Any, home: Path) -> None:
    write_eval(home / "a.eval", {}, name="samples/1_epoch_1.json")
    ran = runq("import", "a.eval")
    assert ran.code == 1 and "its eval never ended" in ran.out


def test_a_path_without_anything(runq: Any, home: Path) -> None:
    (home / "empty").mkdir()
    assert runq("import", "empty").code == 2
    ran = runq("import", "nowhere")
    assert ran.code == 2 and "there is no nowhere" in ran.err
    assert not (home / "runs").exists()


def test_while_a_night_writes_nothing_is_taken_over(runq: Any, past: Path, home: Path) -> None:
    from runq.locks import night_locks, own_holder

    (home / "summary.json").write_text(json.dumps(SUMMARY))
    journal = past / "journal.db"
    with night_locks(journal, (), own_holder(since="now", queue="q", journal=journal)):
        assert runq("import", "summary.json").code == 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ollama/qwen3:8b", "qwen3:8b"), ("openai-api/lmstudio/qwen/qwen3-8b", "qwen/qwen3-8b"),
        ("vllm/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"), ("openai/gemma", "gemma"), ("gemma", "gemma"),
        ("google/gemma-4", "google/gemma-4"), ("openai-api/one", "one"),
    ],
)  # fmt: skip
def test_a_model_is_called_as_its_server_calls_it(name: str, expected: str) -> None:
    assert inspect_logs.model_id(name) == expected


WRITE = """
import json, sys
from inspect_ai.log import EvalLog, write_eval_log
log = EvalLog.model_validate(json.load(sys.stdin))
for name in sys.argv[1:]:
    write_eval_log(log, name)
"""


def test_what_inspect_itself_writes_is_read(runq: Any, home: Path, inspect_python: str) -> None:
    """Its newest archives are packed so that Python 3.11 cannot read them: then its own reader does."""
    logs = home / "logs"
    logs.mkdir()
    content = LOG | {"plan": {}, "eval": LOG["eval"] | {"task_id": "t", "run_id": "r"}}
    for score in content["results"]["scores"]:
        score["metrics"].pop("odd", None)
    names = [str(logs / "a.eval"), str(logs / "b.json")]
    made = subprocess.run(
        [inspect_python, "-c", WRITE, *names], input=json.dumps(content), capture_output=True, text=True, timeout=120
    )
    assert made.returncode == 0, made.stderr
    (logs / "c.eval").write_bytes((logs / "a.eval").read_bytes()[:-200])
    ran = runq("import", "logs", "--python", inspect_python, "--json")
    rows = {Path(row["path"]).name: row for row in json.loads(ran.out)}
    assert [rows[n]["status"] for n in ("a.eval", "b.json", "c.eval")] == ["new", "new", "refused"]
    assert ran.code == 1
    seen = view(home / "runs", "imported_step", "model_id", "step", "status", "seconds")
    assert seen == [("qwen/qwen3-8b", "eval", "ok", 1800.0), ("qwen/qwen3-8b", "judge", "ok", None)] * 2
    assert view(home / "runs", "metric", "name", "value")[:2] == [("includes/accuracy", 0.42), ("cost/max/mean", 3.5)]
    assert "does not exist" not in ran.err
