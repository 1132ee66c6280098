"""The table of a night in Markdown and CSV, against figures worked out by hand."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from runq.report.making import write
from runq.report.table import to_csv, to_markdown
from runq.report.verdict import headline, tone
from runq.status import status_data
from runq_schemas import UsageError
from runq_schemas import events as ev


def two_entries(told: Any) -> dict[str, Any]:
    """One complete entry with scores and a retry, one that timed out on a baseline that is not proven."""
    told.plan("gemma", "qwen|x")
    told.say(ev.EntryStarted(), 0)
    told.settled(0, 4000.0, proven=True)
    told.started(0, "eval")
    told.finished(0, "eval", "failed", seconds=10.0, reason="it exited with 1", exit_code=1)
    told.started(0, "eval", attempt=2)
    told.finished(
        0,
        "eval",
        attempt=2,
        seconds=3000.0,
        peak_mb={"system": 12000.0},
        model_delta_mb={"system": 8000.0},
        facts={"answers": 40, "answers_failed": 3, "tokens_per_second": 31.25},
        metrics=(
            ev.Metric(name="match/accuracy", value=0.42, stderr=0.05, n=50),
            ev.Metric(name="match/f1", value=0.5),
        ),
    )
    told.started(0, "judge")
    told.finished(0, "judge", seconds=61.0, metrics=(ev.Metric(name="score", value=4.0),))
    told.say(ev.EntryFinished(status="complete"), 0)
    told.say(ev.EntryStarted(), 1)
    told.settled(1, 4500.0, proven=False)
    told.started(1, "eval")
    told.finished(
        1,
        "eval",
        "timeout",
        seconds=14400.5,
        reason="it ran past its timeout of 14400 s",
        peak_mb={"system": 20000.0},
        model_delta_mb={"system": 15500.0},
    )
    told.say(ev.StepSkipped(reason="eval timed out"), 1, "judge")
    told.say(ev.EntryFinished(status="incomplete"), 1)
    told.say(ev.NightFinished(total=2, complete=1))
    return status_data(told.path, None)


def test_markdown(told: Any) -> None:
    assert (
        to_markdown(two_entries(told))
        == f"""\
# 1 of 2 entries complete, 1 failed by timeout

Night {told.night} (finished)

| entry | model | pack | result | eval | judge | first scores | tokens/s | baseline MB | model delta MB |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| e0 | gemma | packs/office.yaml | complete<br>3 of 40 answers failed | ok 50:00 min<br>2 attempts, 50:10 min in all\
 | ok 1:01 min | eval match/accuracy 0.42 ±0.05 (n=50)<br>judge score 4 | 31.2 | 4,000.0 | 8,000.0 |
| e1 | qwen\\|x | packs/office.yaml | failed<br>it ran past its timeout of 14400 s | timeout 4:00 h | skipped |  |  |\
 4,500.0\\* | 15,500.0\\* |

\\* The baseline is not proven: these memory figures may hold what an earlier model left behind.
"""
    )


def test_csv(told: Any) -> None:
    rows = list(csv.reader(io.StringIO(to_csv(two_entries(told)))))
    head, first, second = rows
    assert dict(zip(head, first, strict=True)) == {
        "entry": "0",
        "index": "0",
        "model_id": "gemma",
        "config": "config.yaml",
        "pack": "packs/office.yaml",
        "status": "complete",
        "reason": "",
        "eval_status": "ok",
        "eval_seconds": "3000.0",
        "judge_status": "ok",
        "judge_seconds": "61.0",
        "answers": "40",
        "answers_failed": "3",
        "tokens_per_second": "31.25",
        "baseline_mb": "4000.0",
        "baseline_proven": "true",
        "peak_mb": "12000.0",
        "model_delta_mb": "8000.0",
        "eval/match/accuracy": "0.42",
        "eval/match/f1": "0.5",
        "judge/score": "4.0",
        "bundle_dir": f"runs/{told.night}_e0_model_eval_office",
    }
    told_of_second = dict(zip(head, second, strict=True))
    assert (told_of_second["model_id"], told_of_second["baseline_proven"]) == ("qwen|x", "false")
    assert (told_of_second["eval_status"], told_of_second["judge_seconds"]) == ("timeout", "")
    assert told_of_second["judge/score"] == ""


@pytest.mark.parametrize("model", ["=1+1", "+1", "-1", "@SUM(1)"])
def test_no_text_in_csv_is_a_formula(told: Any, model: str) -> None:
    told.plan(model)
    (row,) = csv.DictReader(io.StringIO(to_csv(status_data(told.path, None))))
    assert row["model_id"] == f"'{model}"


def test_a_name_from_outside_breaks_no_row(told: Any) -> None:
    told.plan("a\n| b | <script> \x1b[31m")
    data = status_data(told.path, None)
    assert to_markdown(data).splitlines()[6].startswith("| e0 | a \\| b \\| &lt;script&gt; | packs/office.yaml |")
    assert len(list(csv.reader(io.StringIO(to_csv(data))))) == 2


@pytest.mark.parametrize(
    ("complete", "failed", "pending", "state", "words", "colour"),
    [
        (1, 0, 0, "finished", "The entry is complete", "good"),
        (3, 0, 0, "finished", "All 3 entries complete", "good"),
        (0, 1, 0, "finished", "0 of 1 entry complete, 1 failed", "bad"),
        (1, 2, 1, "died", "1 of 4 entries complete, 2 failed, 1 not run", "bad"),
        (1, 0, 2, "running", "1 of 3 entries complete, 2 still to run", "busy"),
        (1, 0, 2, "interrupted", "1 of 3 entries complete, 2 not run", "odd"),
    ],
)
def test_headline(complete: int, failed: int, pending: int, state: str, words: str, colour: str) -> None:
    data = {"total": complete + failed + pending, "complete": complete, "failed": failed, "pending": pending}
    data |= {"state": state, "entries": []}
    assert (headline(data), tone(data)) == (words, colour)


def test_where_a_report_goes(told: Any, tmp_path: Path) -> None:
    two_entries(told)
    made = write(told.path, night=None, form="html", output=None)
    assert made == told.runs / f"{told.night}_queue" / "report.html"
    assert made.stat().st_mode & 0o077 == 0
    assert write(told.path, night=told.night, form="csv", output=tmp_path / "t.csv") == tmp_path / "t.csv"
    text = write(told.path, night=None, form="csv", output=None)
    assert text == (tmp_path / "t.csv").read_text()
    assert str(write(told.path, night=None, form="html", output=Path("-"))).startswith("<!doctype html>")
    with pytest.raises(UsageError, match="cannot be written"):
        write(told.path, night=None, form="md", output=tmp_path / "no" / "where.md")


def test_a_page_never_takes_the_journals_place(told: Any, tmp_path: Path) -> None:
    two_entries(told)
    before = told.path.read_bytes()
    for name in (told.path.name, f"{told.path.name}-wal"):
        with pytest.raises(UsageError, match="is the journal's own"):
            write(told.path, night=None, form="html", output=told.path.parent / name)
    assert told.path.read_bytes() == before
