"""check.json and check.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runq.check_report import TOUCHSTONE_FIELDS, checked, to_json, to_markdown, write

ROW: dict[str, Any] = {
    "night": "2026-10-01_213000_check",
    "entry": 0,
    "model_id": "gemma-12b",
    "loaded": True,
    "status": "reasoning_only",
    "content_chars": 0,
    "ram_before_mb": 4000.04,
    "ram_after_mb": 12500.25,
    "ram_delta_mb": 8500.2,
    "ram_back_mb": 4001.0,
    "baseline_proven": True,
    "role": "eval",
    "endpoint": "http://127.0.0.1:1234/v1",
    "answered_by": "gemma-12b",
    "loaded_models": ["gemma-12b"],
    "context_length": 8192,
    "seconds": 31.25,
    "reset_verdict": "verified",
    "evict_verdict": "verified",
    "memory_back": True,
    "verdict": "ok",
    "problem": "",
    "remedy": "",
    "event": 7,
    "at": "2026-10-01T19:30:00.000000Z",
}
MISSING: dict[str, Any] = dict.fromkeys(
    ("ram_before_mb", "ram_after_mb", "ram_delta_mb", "ram_back_mb", "context_length", "endpoint", "answered_by")
)
BAD = {**ROW, **MISSING, "model_id": "a|b\nc", "loaded": False, "status": "error", "role": "judge"}
BAD |= {"baseline_proven": False, "evict_verdict": "failed", "verdict": "fail"}
BAD |= {"problem": "HTTP 404: no <model>", "remedy": "correct | its id", "loaded_models": None}


def test_the_fields_and_their_order() -> None:
    (row,) = checked([ROW])
    assert tuple(row)[:7] == TOUCHSTONE_FIELDS
    assert TOUCHSTONE_FIELDS == (
        "model", "loaded", "status", "content_chars", "ram_before_mb", "ram_after_mb", "ram_delta_mb",
    )  # fmt: skip
    assert row["model"] == "gemma-12b" and row["loaded"] is True
    assert set(ROW) - set(row) == {"night", "entry", "model_id", "event", "at"}


def test_json_is_an_array_with_nulls_for_what_is_not_known() -> None:
    text = to_json([ROW, {**BAD, "model_id": "käse"}])
    assert text.endswith("]\n") and "käse" in text
    one, two = json.loads(text)
    assert (one["ram_delta_mb"], one["loaded_models"]) == (8500.2, ["gemma-12b"])
    assert all(two[name] is None for name in (*MISSING, "loaded_models"))
    assert json.loads(to_json([])) == []


def test_the_table() -> None:
    text = to_markdown([ROW, BAD, {**ROW, "model_id": "loose", "baseline_proven": False}])
    lines = text.splitlines()
    assert lines[0] == "# Check"
    header, rule, *rows = [line for line in lines if line.startswith("|")]
    assert header.count("|") == rule.count("|") == 12
    assert rows[0] == (
        "| gemma-12b | eval | yes | reasoning_only | 0 | 4000.0 | 12500.2 | 8500.2 | 8192 | verified | ok |"
    )
    assert rows[1] == r"| a\|b c | judge | no | error | 0 |  |  |  |  | failed | fail |"
    assert rows[2].split(" | ")[7] == r"8500.2\*" and r"\* The baseline is not proven." in lines
    what_to_do = lines[lines.index("## What to do") :]
    assert len(what_to_do) == 3 and what_to_do[2].startswith(r"- a\|b c: HTTP 404: no") and "its id" in what_to_do[2]


def test_no_marks_and_no_advice_where_all_is_well() -> None:
    text = to_markdown([ROW])
    assert "What to do" not in text and "proven" not in text


def test_both_files_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "2026-10-01_213000_check"
    files = write([ROW], folder)
    assert write([BAD], folder) == files == (folder / "check.json", folder / "check.md")
    assert json.loads(files[0].read_text())[0]["verdict"] == "fail"
    assert sorted(path.name for path in folder.iterdir()) == ["check.json", "check.md"], "no temporary file is left"
