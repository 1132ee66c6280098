"""touchstone's own queue file, unchanged: its command lines, its summary, its defaults."""

import json
import os
import sys
from pathlib import Path

PYTHON = str(Path(sys.executable).parent / "python")


def argv_of(shop, entry, step):
    (started,) = [e for e in shop.events("step.started") if (e.entry, e.step) == (entry, step)]
    return started.data["argv"]


def test_a_touchstone_queue_file_runs_unchanged_with_exactly_its_command_lines(touchstone_queue):
    shop = touchstone_queue
    result = shop.night()
    assert result.returncode == 0, result.stderr
    night = shop.nights()[0]
    base = str(shop.folder)
    models = [
        [{"id": "one"}],
        [{"id": "two/b", "reasoning_headroom_tokens": 2000, "extra_body": {"think": False, "mode": "false"}}],
        [{"id": "three"}],
    ]
    for entry, slug in enumerate(("one", "two-b", "three")):
        bundle = f"{base}/runs/{night}_e{entry}_{slug}_eval_office"
        argv = argv_of(shop, entry, "eval")
        models_json = argv[9]
        assert argv == [
            PYTHON, "-m", "touchstone", "eval",
            "--config", f"{base}/config.yaml",
            "--pack", f"{base}/packs/office.yaml",
            "--models-json", models_json,
            "--run-dir", bundle,
            "--emit-events",
        ]  # fmt: skip
        assert json.loads(models_json) == models[entry]
        if entry < 2:
            assert argv_of(shop, entry, "judge") == [
                PYTHON, "-m", "touchstone", "judge",
                "--bundle", bundle,
                "--judge-config", f"{base}/judge.yaml",
                "--judge-model", "judge-a",
                "--emit-events",
            ]  # fmt: skip
    assert [e.step for e in shop.events("step.started") if e.entry == 2] == ["eval"]
    # What reached the server is what the file said: `false` a boolean, "false" a text.
    row = json.loads((shop.bundle(1, "eval") / "responses.jsonl").read_text().splitlines()[0])
    assert row["model"] == models[1][0]


def test_every_field_of_the_ancestors_summary_is_there_with_its_value(touchstone_queue):
    shop = touchstone_queue
    assert shop.night().returncode == 0
    summary, night = shop.summary(), shop.nights()[0]
    assert (summary["total"], summary["done"]) == (3, 3)
    # The night's id is its start.
    assert summary["started"][:19].replace("T", "_").replace(":", "") == night
    seconds = {(e.entry, e.step): e.data["seconds"] for e in shop.events("step.finished")}
    expected = [
        ("one", f"runs/{night}_e0_one_eval_office", "ok", round(seconds[0, "judge"], 1)),
        ("two/b", f"runs/{night}_e1_two-b_eval_office", "ok", round(seconds[1, "judge"], 1)),
        ("three", f"runs/{night}_e2_three_eval_office", "skipped", None),
    ]
    for index, (model, bundle, judge, judge_seconds) in enumerate(expected):
        entry = summary["entries"][index]
        assert {name: entry[name] for name in list(entry)[:10]} == {
            "index": index,
            "model_id": model,
            "config": "config.yaml",
            "pack": "packs/office.yaml",
            "bundle_dir": bundle,
            "eval_status": "ok",
            "judge_status": judge,
            "eval_seconds": round(seconds[index, "eval"], 1),
            "judge_seconds": judge_seconds,
            "error": None,
        }


def test_the_markdown_table_has_the_ancestors_columns_and_the_errors_below(touchstone_queue):
    shop = touchstone_queue
    shop.queue.write_text(shop.queue.read_text().replace("model: three", "model: crash"))
    assert shop.night().returncode == 1
    lines = shop.markdown().splitlines()
    assert lines[0] == "# Night queue summary"
    assert "- Entries: 3" in lines
    assert "- Done: 3 (2 complete, 1 failed, 0 pending)" in lines
    head = next(line for line in lines if line.startswith("| #"))
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    assert [c for c in columns if not c.endswith("MB")] == [
        "#", "model", "eval", "judge", "eval s", "judge s", "bundle",
    ]  # fmt: skip
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith(("| 0", "| 1", "| 2"))]
    assert [row[:4] for row in rows] == [
        ["0", "one", "ok", "ok"],
        ["1", "two/b", "ok", "ok"],
        ["2", "crash", "failed", "skipped"],
    ]
    assert lines[lines.index("## Errors") + 2] == "- 2 crash: eval failed — it exited with 3"


def test_the_ancestors_words_for_errors(touchstone_queue):
    shop = touchstone_queue
    text = shop.queue.read_text().replace("{ eval: 60, judge: 60 }", "{ eval_s: 60, judge_s: 60 }")
    text = text.replace("model: one", "model: crash")
    text = text.replace("model: three }", "model: wait, step_timeout_s: { eval: 1 } }")
    text = text.replace("    judge_model: judge-a\n", "    judge_model: crash\n")
    shop.queue.write_text(text)
    assert shop.night().returncode == 1
    told = [(e["eval_status"], e["judge_status"], e["error"]) for e in shop.summary()["entries"]]
    assert told == [
        ("failed", "skipped", "eval failed"),
        ("ok", "failed", "judge failed"),
        ("timeout", "skipped", "eval timeout (>1s)"),
    ]


def test_the_python_option_names_the_interpreter(touchstone_queue):
    shop = touchstone_queue
    wrapper = shop.write("venv/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    text = shop.queue.read_text().replace(
        "entries:", "  harness: { harness: touchstone, python: venv/python }\nentries:"
    )
    shop.queue.write_text(text)
    assert shop.night("--only", "e0").returncode == 0
    assert argv_of(shop, 0, "eval")[0] == argv_of(shop, 0, "judge")[0] == str(wrapper)


def test_by_default_the_interpreter_is_the_python_on_the_path_of_the_start(touchstone_queue):
    shop = touchstone_queue
    wrapper = shop.write("bin/python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    path = f"{wrapper.parent}{os.pathsep}{shop.env['PATH']}"
    assert shop.night("--only", "e2", env={"PATH": path}).returncode == 0
    assert argv_of(shop, 2, "eval")[0] == str(wrapper)
