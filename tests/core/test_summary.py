"""summary.json and summary.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq import summary
from runq.markdown import escaped
from runq.summary import TOUCHSTONE_FIELDS, build, to_json, to_markdown, write
from runq_journal import JournalReader
from runq_schemas import events as ev


def built(told: Any) -> dict[str, Any]:
    with JournalReader.open(told.path) as reader:
        return build(reader, told.night)


def rows(markdown: str) -> list[list[str]]:
    """The cells of the table's rows, split where a Markdown reader splits."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_a_night_as_touchstone_tells_it(told: Any) -> None:
    told.plan("gemma", "qwen")
    told.say(ev.EntryStarted(), 0)
    told.settled(0, 4000.0, proven=True)
    told.started(0, "eval")
    told.finished(
        0,
        "eval",
        seconds=3600.04,
        peak_mb={"system": 12500.0},
        model_delta_mb={"system": 8500.0},
        baseline_proven=True,
        facts={"answers": 40, "answers_failed": 0},
    )
    told.started(0, "judge")
    told.finished(0, "judge", seconds=1800.0)
    told.say(ev.EntryFinished(status="complete"), 0)
    told.say(ev.EntryStarted(), 1)
    told.started(1, "eval")
    told.finished(1, "eval", "timeout", seconds=14400.4, reason="it ran past its timeout of 14400 s")
    told.say(ev.StepSkipped(reason="eval is not ok"), 1, "judge")
    told.say(ev.EntryFinished(status="incomplete"), 1)
    data = built(told)
    assert (data["started"], data["total"], data["done"]) == ("2026-10-01T22:00:00+02:00", 2, 2)
    first, second = data["entries"]
    assert {name: first[name] for name in TOUCHSTONE_FIELDS} == {
        "index": 0,
        "model_id": "gemma",
        "config": "config.yaml",
        "pack": "packs/office.yaml",
        "bundle_dir": f"runs/{told.night}_e0_model_eval_office",
        "eval_status": "ok",
        "judge_status": "ok",
        "eval_seconds": 3600.0,
        "judge_seconds": 1800.0,
        "error": None,
    }
    assert (second["eval_status"], second["judge_status"]) == ("timeout", "skipped")
    assert second["error"] == "eval timeout (>14400s)"
    assert second["reason"] == "it ran past its timeout of 14400 s"
    assert [step["name"] for step in first["steps"]] == ["eval", "judge"]
    (attempt,) = first["steps"][0]["attempts"]
    assert attempt["log"] == f"runs/{told.night}_queue/logs/e0-eval-1.log"

    table = rows(to_markdown(data))
    assert table[0] == ["#", "model", "eval", "judge", "eval s", "judge s", "baseline MB", "model delta MB", "bundle"]
    bundle = f"`runs/{told.night}_e0_model_eval_office`"
    assert table[2] == ["0", "gemma", "ok", "ok", "3600.0", "1800.0", "4000.0", "8500.0", bundle]
    assert table[3][:6] == ["1", "qwen", "timeout", "skipped", "14400.4", ""]
    assert "- 1 qwen: eval timeout (>14400s)" in to_markdown(data).replace("&gt;", ">")
    assert "\\*" not in to_markdown(data)


def test_an_unproven_baseline_has_a_star_wherever_it_is_used(told: Any) -> None:
    told.plan("gemma")
    told.say(ev.EntryStarted(), 0)
    told.settled(0, 4000.0, proven=False)
    told.started(0, "eval")
    told.finished(0, "eval", model_delta_mb={"system": 8500.0}, baseline_proven=False)
    data = built(told)
    assert data["entries"][0]["baseline_proven"] is False
    markdown = to_markdown(data)
    assert rows(markdown)[2][6:8] == ["4000.0\\*", "8500.0\\*"]
    assert "\\* The baseline is not proven" in markdown


def test_partly_failed_answers_are_shown(told: Any) -> None:
    told.plan("gemma")
    told.started(0, "eval")
    told.finished(0, "eval", facts={"answers": 40, "answers_failed": 3})
    assert rows(to_markdown(built(told)))[2][2] == "ok (3 of 40 answers failed)"


def test_a_night_without_any_figure(told: Any) -> None:
    told.plan("gemma")
    data = built(told)
    assert rows(to_markdown(data))[2][2:] == ["pending", "pending", "", "", "", "", ""]
    assert json.loads(to_json(data)) == data


HOSTILE = [
    "a|b",
    "a\nb",
    "a\r\n| 0 | fake | ok |",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](http://evil.example)",
    "![pixel](http://evil.example/x.png)",
    "https://evil.example/x",
    "WWW.evil.example",
    "`code`",
    "``",
    "*bold* _it_ ~~gone~~",
    "a\\|b",
    "a\\",
    "&lt;b&gt; &amp;",
    "$x^2$",
    "\x1b[31mred\x1b[0m",
    "a\u2028b\x85c",
    "\u202egnp.exe",
    "# heading",
    "../../etc/passwd",
]


@pytest.mark.parametrize("model", HOSTILE)
def test_a_hostile_model_id_is_only_text(told: Any, model: str) -> None:
    told.plan(model, "plain")
    told.started(0, "eval")
    told.finished(0, "eval", "failed", reason=f"it says {model}")
    told.say(ev.Warned(message=model, remedy=model), 0)
    data = built(told)
    assert data["entries"][0]["model_id"] == model, "summary.json keeps it as it is"
    markdown = to_markdown(data)
    table = rows(markdown)
    assert len(table) == 4 and all(len(row) == 9 for row in table), "no cell or row of its own"
    assert_harmless(markdown)


def assert_harmless(markdown: str) -> None:
    outside_code = re.sub(r"`[^`\n]*`", "", markdown.replace("\\`", ""))
    assert "<" not in outside_code and ">" not in outside_code, "no HTML"
    assert "://" not in outside_code and "www." not in outside_code.lower(), "no bare link"
    unescaped = re.sub(r"\\[\\`*_\[\]|~$/.]", "", outside_code)
    assert "[" not in unescaped and "]" not in unescaped, "no link, no image"
    assert not re.search(r"[*~$`]", unescaped), "no emphasis, no formula, no code"
    assert all(letter == "\n" or ord(letter) >= 32 for letter in markdown), "no terminal escape"
    assert len(markdown.split("\n")) == len(markdown.splitlines()) + 1


@given(st.text(max_size=30))
def test_any_text_is_harmless(text: str) -> None:
    assert_harmless(escaped(text) + "\n")
    cell = escaped(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", cell), "no unescaped bar"


def test_ordinary_names_stay_readable() -> None:
    assert escaped("google/gemma-4-12b") == "google/gemma-4-12b"
    assert escaped("qwen2.5:8b") == "qwen2.5:8b"


def test_a_hostile_bundle_path_leaves_no_code_span() -> None:
    assert summary._path("runs/x_e0") == "`runs/x_e0`"
    assert summary._path("runs/two  blanks") == "`runs/two  blanks`"
    assert summary._path("runs/`x`|<b>") == "runs/\\`x\\`\\|&lt;b&gt;"
    assert summary._path("") == ""


def test_both_files_are_written_and_replaced(told: Any, tmp_path: Path) -> None:
    told.plan("gemma")
    folder = tmp_path / "out"
    with JournalReader.open(told.path) as reader:
        files = write(reader, told.night, folder)
        assert files == (folder / "summary.json", folder / "summary.md")
        first = [path.read_bytes() for path in files]
        assert [path.read_bytes() for path in write(reader, told.night, folder)] == first, "byte for byte the same"
    assert sorted(path.name for path in folder.iterdir()) == ["summary.json", "summary.md"], "nothing is left behind"
    assert json.loads(files[0].read_text())["night"] == told.night
    assert folder.stat().st_mode & 0o077 == 0


def test_a_summary_that_cannot_be_written_leaves_the_old_one(
    told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told.plan("gemma")
    with JournalReader.open(told.path) as reader:
        (json_file, _) = write(reader, told.night, tmp_path)
        before = json_file.read_bytes()

        def no_room(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", no_room)
        with pytest.raises(OSError, match="No space left"):
            write(reader, told.night, tmp_path)
    assert json_file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["summary.json", "summary.md"]


SCORES = (
    ev.Metric(name="match/accuracy", value=0.4166666, stderr=0.05, n=12),
    ev.Metric(name="match/total", value=1234567.0),
)


def test_scores_stand_with_their_entry_and_in_a_table(told: Any) -> None:
    told.plan("gem|ma", "qwen")
    told.started(0, "eval")
    told.finished(0, "eval", metrics=SCORES)
    data = built(told)
    assert data["entries"][0]["metrics"] == [
        {"step": "eval", "name": "match/accuracy", "value": 0.4166666, "stderr": 0.05, "n": 12},
        {"step": "eval", "name": "match/total", "value": 1234567.0, "stderr": None, "n": None},
    ]
    assert data["entries"][1]["metrics"] == []
    table = rows(to_markdown(data).split("## Scores")[1])
    assert table[0] == ["#", "model", "pack", "step", "score", "value", "stderr", "n"]
    assert table[2] == ["0", "gem\\|ma", "packs/office.yaml", "eval", "match/accuracy", "0.4167", "0.05", "12"]
    assert table[3][4:] == ["match/total", "1234567", "", ""]


def test_scores_of_a_step_that_runs_again_do_not_count(told: Any) -> None:
    told.plan("gemma")
    told.started(0, "eval")
    told.finished(0, "eval", metrics=SCORES)
    told.started(0, "eval", 2)
    data = built(told)
    assert data["entries"][0]["metrics"] == []
    assert "## Scores" not in to_markdown(data)


def test_what_a_process_left_that_died_while_it_wrote_a_file_goes_with_the_next(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    left = tmp_path / f".summary.json.{gone.pid}.part"
    ours = tmp_path / f".summary.json.{os.getpid()}.part"
    other = tmp_path / f".summary.json.{os.getppid()}.part"  # a replay that runs at the same time
    foreign = [tmp_path / ".summary.json.part", tmp_path / ".summary.json.x.part", tmp_path / ".summary.md.1.part"]
    for path in (left, ours, other, *foreign):
        path.write_text("half")
    summary.replace_file(tmp_path / "summary.json", "whole\n")
    assert (tmp_path / "summary.json").read_text() == "whole\n"
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "summary.json", other, *foreign])


def test_a_file_is_never_written_through_a_link_that_somebody_laid(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".queue.yaml.{os.getpid()}.part").symlink_to(victim)
    summary.replace_file(tmp_path / "queue.yaml", "text")
    assert (victim.read_text(), (tmp_path / "queue.yaml").read_text()) == ("precious", "text")
