"""The views against the golden nights, by hand, and against nights told event by event."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from runq_journal import Journal, JournalReader, Sample
from runq_schemas import events as ev

BASE = "/home/nora/runs"


def columns(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


# --- the golden nights, every value worked out from make_golden.py ------------------------------------------------


@pytest.fixture
def reader(golden_db: Path) -> Any:
    with JournalReader.open(golden_db) as opened:
        yield opened


def test_the_golden_file_is_what_its_script_tells(golden_db: Path, golden: ModuleType, tmp_path: Path) -> None:
    golden.make(tmp_path / "again.db")
    with JournalReader.open(golden_db) as old, JournalReader.open(tmp_path / "again.db") as new:
        for was, now in zip(old.events(), new.events(), strict=True):
            assert (was.id, was.night, was.at, was.elapsed_s, was.kind) == (
                now.id,
                now.night,
                now.at,
                now.elapsed_s,
                now.kind,
            )
            assert (was.entry, was.step, was.attempt) == (now.entry, now.step, now.attempt)
            assert was.data.items() <= now.data.items()  # a later version adds fields, and changes none
        assert old.verify() is None


def test_the_golden_file_can_be_written_on(golden_db: Path) -> None:
    with Journal.open(golden_db) as journal:
        assert journal.append(ev.Warned(message="later"), night="2026-09-03_220000").id == 69
        assert journal.reader().verify() is None


def test_touchstones_fields(reader: JournalReader, golden: ModuleType) -> None:
    names = ("index", "model_id", "config", "pack", "bundle_dir", "eval_status", "judge_status", "eval_seconds")
    names += ("judge_seconds", "error")
    files = ("config.yaml", "packs/buero.yaml")
    one, two = golden.COMPLETE, golden.RESUMED
    assert columns(reader.entry_results(one), *names) == [
        (0, "gemma-12b", *files, f"{BASE}/{one}_e0", "ok", "ok", 3600.0, 1800.0, None),
        (1, "qwen-27b", *files, f"{BASE}/{one}_e1", "ok", "ok", 5400.1, 1800.0, None),
    ]
    assert columns(reader.entry_results(two), *names) == [
        (0, "gemma-12b", *files, f"{BASE}/{two}_e0", "ok", "ok", 3000.0, 1500.0, None),
        (1, "slow-70b", *files, f"{BASE}/{two}_e2", "timeout", "skipped", 14400.5, None, "eval timeout (>14400s)"),
        (2, "broken-1b", *files, f"{BASE}/{two}_e1", "failed", "skipped", 12.3, None, "eval failed"),
        (3, "gone-3b", *files, None, "failed", "skipped", None, None, "The pack packs/buero.yaml cannot be read."),
    ]


def test_added_fields(reader: JournalReader, golden: ModuleType) -> None:
    names = ("entry", "status", "reset_verdict", "settle_status", "baseline_proven", "baseline_mb", "peak_mb")
    names += ("model_delta_mb", "answers", "answers_failed", "eval_step", "judge_step", "reason")
    steps = ("eval", "judge")
    assert columns(reader.entry_results(golden.COMPLETE), *names) == [
        (0, "complete", "unverified", "settled", False, 4000.0, 12500.0, 8500.0, 40, 0, *steps, None),
        (1, "complete", "verified", "settled", True, 4100.0, 21100.0, 17000.0, 40, 3, *steps, None),
    ]
    slow, broken = "The step ran longer than 14400 s and was ended.", "The process exited with 1."
    good, nothing = ("verified", "settled", True), (None, None, None)
    assert columns(reader.entry_results(golden.RESUMED), *names) == [
        (0, "complete", *good, 4000.0, 12000.0, 8000.0, 40, 0, *steps, None),
        (2, "failed", *good, 4050.0, 50050.0, 46000.0, None, None, "eval", None, slow),
        (1, "failed", *good, 4060.0, None, None, None, None, *steps, broken),
        (3, "failed", *nothing, None, None, None, None, None, *steps, "The pack packs/buero.yaml cannot be read."),
    ]


def test_night_and_night_summary(reader: JournalReader, golden: ModuleType) -> None:
    first = {
        "night": golden.COMPLETE,
        "queue_path": "/home/nora/queue.yaml",
        "queue_sha256": "ab" * 32,
        "queue_dir": f"{BASE}/{golden.COMPLETE}_queue",
        "started": "2026-09-01 20:00:00",
        "state": "finished",
        "stopped": None,
        "started_at": "2026-09-01T20:00:00.000000Z",
        # two entries of 5 s before the eval, 3600.04 s and 5400.06 s of eval, 1800 s of judge each
        "finished_at": "2026-09-01T23:30:10.100000Z",
        "last_at": "2026-09-01T23:30:10.100000Z",
        "first_event": 1,
        "last_event": 27,
        "seconds": 12610.1,
        "resumes": 0,
    }
    second = {
        **first,
        "night": golden.RESUMED,
        "queue_dir": f"{BASE}/{golden.RESUMED}_queue",
        "started": "2026-09-02 20:30:00",
        "started_at": "2026-09-02T20:30:00.000000Z",
        # resumed at 05:00: 1500 s of judge, 5 s and 14400.5 s, 5 s and 12.34 s
        "finished_at": "2026-09-03T09:25:22.840000Z",
        "last_at": "2026-09-03T09:25:22.840000Z",
        "first_event": 28,
        "last_event": 68,
        "seconds": 46522.84,
        "resumes": 1,
    }
    assert reader.nights() == [second, first]
    counts = {"total": 2, "done": 2, "complete": 2, "failed": 0, "pending": 0}
    assert reader.night_summary(golden.COMPLETE) == first | counts
    counts = {"total": 4, "done": 4, "complete": 1, "failed": 3, "pending": 0}
    assert reader.night_summary(golden.RESUMED) == second | counts
    assert reader.unfinished_nights() == []


def test_night_state_over_time(golden_db: Path, golden: ModuleType) -> None:
    for upto, state, pending in ((38, "running", 3), (40, "interrupted", 3), (41, "running", 4), (68, "finished", 0)):
        with JournalReader.open(golden_db, upto=upto) as reader:
            row = reader.night_summary(golden.RESUMED)
            assert row is not None
            assert (row["state"], row["pending"]) == (state, pending), upto
            assert reader.unfinished_nights() == ([golden.RESUMED] if state == "running" else [])


def test_step_states_and_results(reader: JournalReader, golden: ModuleType) -> None:
    assert columns(reader.step_states(golden.RESUMED), "entry", "step", "status", "attempt", "seconds", "event") == [
        (0, "eval", "ok", 1, 3000.0, 36),
        (0, "judge", "ok", 2, 1500.0, 45),
        (1, "eval", "failed", 1, 12.34, 63),
        (1, "judge", "skipped", None, None, 64),
        (2, "eval", "timeout", 1, 14400.5, 54),
    ]
    names = ("entry", "index", "step", "position", "status", "attempt", "started_event", "word_event")
    assert columns(reader.step_results(golden.RESUMED), *names) == [
        (0, 0, "eval", 0, "ok", 1, 34, 36),
        (0, 0, "judge", 1, "ok", 2, 43, 45),
        (2, 1, "eval", 0, "timeout", 1, 52, 54),
        (1, 2, "eval", 0, "failed", 1, 61, 63),
        (1, 2, "judge", 1, "skipped", None, None, 64),
        (3, 3, "eval", 0, "pending", None, None, None),
        (3, 3, "judge", 1, "pending", None, None, None),
    ]


def test_planned(reader: JournalReader, golden: ModuleType) -> None:
    entries = reader.view("planned_entry", golden.RESUMED)
    assert columns(entries, "entry", "index", "model_id", "judge_config", "judge_model", "plan_event") == [
        (0, 0, "gemma-12b", "judge.yaml", "judge-27b", 41),
        (2, 1, "slow-70b", "judge.yaml", "judge-27b", 41),
        (1, 2, "broken-1b", "judge.yaml", "judge-27b", 41),
        (3, 3, "gone-3b", "judge.yaml", "judge-27b", 41),
    ]
    assert entries[0]["model"] == {"id": "gemma-12b"}
    assert entries[0]["settings"] == {"retries": 0}
    assert [step["name"] for step in entries[1]["steps"]] == ["eval"]
    steps = reader.view("planned_step", golden.RESUMED)
    assert columns(steps[1:3], "entry", "step", "position", "identity", "run", "why") == [
        (0, "judge", 1, "1:judge-0", True, "has not run"),
        (2, "eval", 0, "1:eval-2", True, "has not run"),
    ]


def test_attempts(reader: JournalReader, golden: ModuleType) -> None:
    rows = reader.attempts(golden.RESUMED)
    names = ("entry", "step", "attempt", "started_event", "finished_event", "status", "exit_code", "signal", "pid")
    assert columns(rows, *names) == [
        (0, "eval", 1, 34, 36, "ok", 0, None, 5034),
        (0, "judge", 1, 37, 39, "interrupted", None, None, 5037),
        (0, "judge", 2, 43, 45, "ok", 0, None, 5043),
        (1, "eval", 1, 61, 63, "failed", 1, None, 5061),
        (2, "eval", 1, 52, 54, "timeout", None, "SIGTERM", 5052),
    ]
    assert rows[0] == {
        "night": golden.RESUMED,
        "entry": 0,
        "step": "eval",
        "attempt": 1,
        "started_event": 34,
        "finished_event": 36,
        "status": "ok",
        "exit_code": 0,
        "signal": None,
        "seconds": 3000.0,
        "reason": None,
        "bundle": f"{BASE}/{golden.RESUMED}_e0",
        "log": f"{BASE}/{golden.RESUMED}_queue/logs/e0-eval-1.log",
        "argv": ["python", "-m", "touchstone", "eval"],
        "identity": "1:eval-0",
        "timeout_s": 14400.0,
        "stall_timeout_s": None,
        "pid": 5034,
        "created_at": 1788300000.25,
        "boot_id": "boot-1",
        "probe": "system",
        "baseline_mb": 4000.0,
        "peak_mb": 12000.0,
        "model_delta_mb": 8000.0,
        "baseline_proven": True,
        "facts": {"answers": 40, "answers_failed": 0},
        "started_at": "2026-09-02T20:30:05.000000Z",
        "finished_at": "2026-09-02T21:20:05.000000Z",
    }
    assert len(reader.attempts()) == 9


def test_unfinished(golden_db: Path, golden: ModuleType) -> None:
    with JournalReader.open(golden_db, upto=38) as reader:
        (row,) = reader.unfinished()
        assert row == {
            "night": golden.RESUMED,
            "entry": 0,
            "step": "judge",
            "attempt": 1,
            "kind": "step.started",
            "log": f"{BASE}/{golden.RESUMED}_queue/logs/e0-judge-1.log",
            "pid": 5037,
            "created_at": 1788300000.25,
            "boot_id": "boot-1",
            "started_at": "2026-09-02T21:20:05.000000Z",
            "host": None,
            "started_event": 37,
        }
    with JournalReader.open(golden_db, upto=37) as reader:
        assert columns(reader.unfinished(), "step", "pid") == [("judge", None)]
    with JournalReader.open(golden_db) as reader:
        assert reader.unfinished() == []


def test_memory(reader: JournalReader, golden: ModuleType) -> None:
    names = ("entry", "step", "probe", "baseline_mb", "peak_mb", "model_delta_mb", "baseline_proven")
    assert columns(reader.model_deltas(golden.COMPLETE), *names) == [
        (0, "eval", "system", 4000.0, 12500.0, 8500.0, False),
        (0, "judge", "system", 4000.0, 9000.0, 5000.0, False),
        (1, "eval", "system", 4100.0, 21100.0, 17000.0, True),
        (1, "judge", "system", 4100.0, 9000.0, 4900.0, True),
    ]
    names = ("entry", "probe", "baseline_mb", "status", "baseline_proven", "reset_verdict", "boot_id", "event")
    assert columns(reader.view("baseline", golden.COMPLETE), *names) == [
        (0, "system", 4000.0, "settled", False, "unverified", "boot-1", 7),
        (1, "system", 4100.0, "settled", True, "verified", "boot-1", 19),
    ]
    assert reader.references(golden.COMPLETE, "boot-1") == {"system": 4100.0}
    assert reader.references(golden.COMPLETE, "boot-2") == {}
    assert reader.references(golden.RESUMED, "boot-1") == {"system": 4060.0}


def test_durations_are_medians_of_ok_attempts_over_all_nights(reader: JournalReader) -> None:
    assert columns(reader.durations(), "step", "model_id", "pack", "seconds", "n") == [
        ("eval", "gemma-12b", "packs/buero.yaml", (3600.04 + 3000.0) / 2, 2),
        ("judge", "gemma-12b", "packs/buero.yaml", 1650.0, 2),
        ("eval", "qwen-27b", "packs/buero.yaml", 5400.06, 1),
        ("judge", "qwen-27b", "packs/buero.yaml", 1800.0, 1),
    ]


def test_failures_and_warnings(reader: JournalReader, golden: ModuleType) -> None:
    names = ("entry", "model_id", "step", "status", "exit_code", "signal", "log_tail", "event")
    tail = "Traceback (most recent call last):\nConnectionRefusedError"
    assert columns(reader.failures(), *names) == [
        (0, "gemma-12b", "judge", "interrupted", None, None, None, 39),
        (2, "slow-70b", "eval", "timeout", None, "SIGTERM", None, 54),
        (1, "broken-1b", "eval", "failed", 1, None, tail, 63),
    ]
    names = ("night", "entry", "step", "message", "remedy", "event")
    assert columns(reader.warnings(), *names) == [
        (golden.COMPLETE, None, None, "The machine runs on battery", "Plug it in.", 2)
    ]


def test_spans(reader: JournalReader, golden: ModuleType) -> None:
    names = ("entry", "what", "step", "attempt", "status", "began_at", "ended_at", "seconds", "event")
    day = "2026-09-01T"
    assert columns(reader.view("span", golden.COMPLETE), *names)[:4] == [
        (
            0,
            "reset",
            "eval",
            None,
            "unverified",
            f"{day}20:00:00.000000Z",
            f"{day}20:00:01.000000Z",
            1.0,
            4,
        ),
        (0, "settle", None, None, "settled", f"{day}20:00:01.000000Z", f"{day}20:00:05.000000Z", 4.0, 6),
        (0, "step", "eval", 1, "ok", f"{day}20:00:05.000000Z", f"{day}21:00:05.040000Z", 3600.04, 8),
        (0, "step", "judge", 1, "ok", f"{day}21:00:05.040000Z", f"{day}21:30:05.040000Z", 1800.0, 11),
    ]
    assert columns(reader.view("span", golden.RESUMED), "entry", "what", "step", "attempt", "status", "seconds") == [
        (0, "reset", "eval", None, "verified", 1.0),
        (0, "settle", None, None, "settled", 4.0),
        (0, "step", "eval", 1, "ok", 3000.0),
        # Its runner died right after it began, and was followed in the morning: nobody knows of any later sign of life.
        (0, "step", "judge", 1, "interrupted", 0.0),
        (0, "step", "judge", 2, "ok", 1500.0),
        (2, "reset", "eval", None, "verified", 1.0),
        (2, "settle", None, None, "settled", 4.0),
        (2, "step", "eval", 1, "timeout", 14400.5),
        (1, "reset", "eval", None, "verified", 1.0),
        (1, "settle", None, None, "settled", 4.0),
        (1, "step", "eval", 1, "failed", 12.34),
    ]


def test_todo(reader: JournalReader, golden: ModuleType) -> None:
    assert reader.todo(golden.COMPLETE) == []
    assert columns(reader.todo(golden.RESUMED), "entry", "step", "status", "reason") == [
        (2, "eval", "timeout", "it timed out"),
        (1, "eval", "failed", "it failed"),
        (1, "judge", "skipped", "it was skipped"),
        (3, "eval", "pending", "it has not run yet"),
        (3, "judge", "pending", "it has not run yet"),
    ]


# --- nights told as they go ---------------------------------------------------------------------------------------


def result(story: Any, index: int = 0) -> tuple[Any, ...]:
    return columns([story.entry(index)], "status", "eval_status", "judge_status", "error")[0]


def test_an_entry_from_nothing_to_complete(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    assert result(story) == ("pending", "pending", "pending", None)
    assert story.todo() == [(0, "eval", "it has not run yet"), (0, "judge", "it has not run yet")]
    story.say(ev.EntryStarted(), 0)
    story.baseline(0, 100.0)
    assert (story.entry()["baseline_mb"], story.entry()["reset_verdict"]) == (100.0, "verified")
    story.start(0, "eval")
    assert result(story) == ("running", "pending", "pending", None)
    assert story.entry()["bundle_dir"].endswith("_e0")
    assert story.todo()[0] == (0, "eval", "it has not ended")
    story.finish(0, "eval", seconds=1.25)
    assert result(story) == ("pending", "ok", "pending", None)
    assert story.entry()["eval_seconds"] == 1.3
    story.start(0, "judge")
    assert result(story) == ("running", "ok", "pending", None)
    story.finish(0, "judge", seconds=2.0)
    assert result(story) == ("complete", "ok", "ok", None)
    assert story.todo() == []


@pytest.mark.parametrize(
    ("status", "limits", "words", "error"),
    [
        ("failed", {}, "failed", "eval failed"),
        ("timeout", {"timeout_s": 14400.0}, "timeout", "eval timeout (>14400s)"),
        ("timeout", {"timeout_s": 0.5}, "timeout", "eval timeout (>0.5s)"),
        ("stalled", {"stall_timeout_s": 600.0}, "timeout", "eval stalled (>600s)"),
    ],
)
def test_a_first_step_that_is_not_ok(story: Any, status: Any, limits: Any, words: str, error: str) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.start(0, "eval", **limits)
    story.finish(0, "eval", status, seconds=3.0, reason="Because.")
    assert result(story) == ("failed", words, "skipped", error)  # also before the skip is written
    story.say(ev.StepSkipped(reason="eval is not ok"), 0, "judge")
    assert result(story) == ("failed", words, "skipped", error)
    assert story.entry()["reason"] == "Because."
    assert story.entry()["eval_seconds"] == 3.0


@pytest.mark.parametrize(
    ("status", "words", "error"),
    [
        ("failed", "failed", "judge failed"),
        ("timeout", "timeout", "judge timeout"),
        ("stalled", "timeout", "judge stalled"),
    ],
)
def test_a_second_step_that_is_not_ok(story: Any, status: Any, words: str, error: str) -> None:
    story.plan([story.planned(0, 0, "m")])
    for step, end in (("eval", "ok"), ("judge", status)):
        story.start(0, step)
        story.finish(0, step, end, seconds=3.0)
    assert result(story) == ("failed", "ok", words, error)
    said = {"timeout": "timed out"}
    assert story.todo() == [(0, "judge", f"it {said.get(status, status)}")]


def died(story: Any) -> None:
    story.say(ev.NightInterrupted(reason="the runner died"))


def deaths(story: Any) -> list[tuple[int, int]]:
    return [(row["entry"], row["deaths"]) for row in story.view("entry_death")]


def test_only_an_entry_that_ran_when_the_runner_died_is_counted(story: Any) -> None:
    entries = [story.planned(0, 0, "m"), story.planned(1, 1, "n")]
    story.plan(entries)
    story.say(ev.EntryStarted(), 0)
    story.say(ev.EntryFinished(status="complete"), 0)
    died(story)  # between two entries
    story.plan(entries, resumed=True)
    died(story)  # before the first
    story.plan(entries, resumed=True)
    story.say(ev.EntryStarted(), 1)
    story.say(ev.EntryFinished(status="interrupted"), 1)
    story.say(ev.NightInterrupted(reason="SIGINT"))  # Ctrl-C is no death
    assert deaths(story) == []
    for count in (1, 2):
        story.plan(entries, resumed=True)
        story.say(ev.EntryStarted(), 1)
        died(story)
        assert deaths(story) == [(1, count)]
    story.plan(entries, resumed=True, lifted=(0,))
    assert deaths(story) == [(1, 2)]
    story.plan(entries, resumed=True, lifted=(1,))
    assert deaths(story) == []
    story.say(ev.EntryStarted(), 1)
    died(story)
    assert deaths(story) == [(1, 1)]  # it counts anew


@pytest.mark.parametrize(("ok", "words"), [((), ("failed", "skipped")), (("eval",), ("ok", "failed"))])
def test_an_entry_that_is_set_aside_reads_failed_and_is_not_to_do(story: Any, ok: Any, words: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.say(ev.EntryStarted(), 0)
    for step in ok:
        story.start(0, step)
        story.finish(0, step, "ok", seconds=3.0)
    halted = "judge" if ok else "eval"
    story.start(0, halted)
    story.finish(0, halted, "interrupted", seconds=3.0)
    died(story)
    assert story.entry()["status"] == "interrupted"
    story.plan([story.planned(0, 0, "m")], resumed=True)
    story.say(ev.EntryStarted(), 0)
    story.say(ev.StepSkipped(reason="set aside", gave_up=True), 0, halted)
    story.say(ev.EntryFinished(status="gave_up", reason="set aside"), 0)
    entry = story.entry()
    assert (entry["status"], entry["reason"], entry["error"]) == ("gave_up", "set aside", "set aside")
    assert (entry["eval_status"], entry["judge_status"]) == words
    assert story.view("step_state")[-1]["status"] == "gave_up"
    assert story.todo() == []
    (night,) = story.view("night_summary")
    assert (night["failed"], night["pending"], night["complete"]) == (1, 0, 0)
    story.start(0, halted)  # somebody had it run again
    assert [row[1] for row in story.todo()] == [halted, *(["judge"] if not ok else [])]


def test_what_the_deadline_left_is_pending_until_it_starts(story: Any) -> None:
    def left() -> list[tuple[int, str, float | None]]:
        return [(row["entry"], row["step"], row["usual_s"]) for row in story.view("deferred")]

    story.plan([story.planned(0, 0, "m")])
    until = "2026-10-02T07:00:00+02:00"
    for step, usual_s in (("eval", 60.0), ("judge", None)):
        story.say(ev.StepDeferred(reason="late", until=until, left_s=5.0, usual_s=usual_s), 0, step)
    assert left() == [(0, "eval", 60.0), (0, "judge", None)]
    assert result(story) == ("pending", "pending", "pending", None)
    assert story.todo() == [(0, "eval", "it has not run yet"), (0, "judge", "it has not run yet")]
    story.start(0, "eval")
    assert left() == [(0, "judge", None)]
    story.plan([story.planned(0, 0, "m")], resumed=True)  # that plan decides anew
    assert left() == []


def test_a_harness_names_its_own_steps(story: Any) -> None:
    story.plan([story.planned(0, 0, "m", ("bench", "score", "plot"))])
    for step, end in (("bench", "ok"), ("score", "ok"), ("plot", "timeout")):
        story.start(0, step)
        story.finish(0, step, end, seconds=3.0, reason=f"{step}!")
    assert result(story) == ("failed", "ok", "ok", "plot timeout")
    assert story.entry()["reason"] == "plot!"
    assert story.todo() == [(0, "plot", "it timed out")]


def test_an_interrupted_step_is_pending_in_touchstones_words(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.start(0, "eval")
    story.finish(0, "eval", "interrupted", seconds=3.0, reason="Ctrl-C.")
    story.say(ev.StepSkipped(reason="eval is not ok"), 0, "judge")
    story.say(ev.EntryFinished(status="interrupted"), 0)
    assert result(story) == ("interrupted", "pending", "pending", None)
    assert (story.entry()["eval_seconds"], story.entry()["reason"]) == (None, "Ctrl-C.")
    assert story.todo() == [(0, "eval", "it was interrupted"), (0, "judge", "it was skipped")]


def test_a_changed_pack_makes_the_entry_pending(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    for step in ("eval", "judge"):
        story.start(0, step)
        story.finish(0, step, seconds=3.0)
    story.say(ev.EntryFinished(status="failed", reason="An older reason."), 0)
    story.plan([story.planned(0, 0, "m", identity_eval="1:new", identity_judge="1:newer")], resumed=True)
    assert result(story) == ("pending", "pending", "pending", None)
    assert story.entry()["bundle_dir"] is None
    why = "what it reads has changed since it ran"
    assert story.todo() == [(0, "eval", why), (0, "judge", why)]
    assert columns(story.view("step_result"), "status", "stale") == [("pending", "changed")] * 2
    story.start(0, "eval", 2, identity="1:new")
    story.finish(0, "eval", attempt=2, seconds=4.0)
    assert result(story) == ("pending", "ok", "pending", None)
    story.start(0, "judge", 2, identity="1:newer")
    story.finish(0, "judge", attempt=2, seconds=4.0)
    assert result(story) == ("complete", "ok", "ok", None)


def test_a_changed_judge_config_runs_only_the_judge(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    for step in ("eval", "judge"):
        story.start(0, step)
        story.finish(0, step, seconds=3.0)
    story.plan([story.planned(0, 0, "m", identity_judge="1:new")], resumed=True)
    assert result(story) == ("pending", "ok", "pending", None)
    assert story.todo() == [(0, "judge", "what it reads has changed since it ran")]


def test_an_eval_that_ran_again_makes_its_judge_run_again(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    for step in ("eval", "judge"):
        story.start(0, step)
        story.finish(0, step, seconds=3.0)
    story.plan([story.planned(0, 0, "m")], resumed=True)
    assert story.todo() == []
    story.start(0, "eval", 2)
    assert result(story) == ("running", "pending", "pending", None)
    story.finish(0, "eval", attempt=2, seconds=3.0)
    assert result(story) == ("pending", "ok", "pending", None)
    assert story.todo() == [(0, "judge", "an earlier step ran again after it")]


def test_the_bundle_of_an_entry_is_where_its_latest_step_that_counts_wrote(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    assert story.entry()["bundle_dir"] is None
    story.start(0, "eval", bundle="/runs/e0")
    story.finish(0, "eval", seconds=3.0)
    story.start(0, "judge", bundle="/runs/e0")
    story.finish(0, "judge", seconds=3.0)
    assert story.entry()["bundle_dir"] == "/runs/e0"
    story.plan([story.planned(0, 0, "m", identity_judge="1:new")], resumed=True)
    assert story.entry()["bundle_dir"] == "/runs/e0"
    story.start(0, "judge", 2, identity="1:new", bundle="/runs/e0_judge_a2")
    assert story.entry()["bundle_dir"] == "/runs/e0_judge_a2"
    story.start(0, "eval", 2, bundle="/runs/e0_a2")
    assert story.entry()["bundle_dir"] == "/runs/e0_a2"


def test_what_the_last_attempt_left(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    started = story.start(0, "eval", bundle="/runs/e0")
    finished = story.finish(0, "eval", seconds=3.0)
    story.start(0, "judge", bundle="/runs/e0")
    story.finish(0, "judge", "failed", seconds=3.0, reason="it exited with 1")
    again = story.start(0, "judge", 2, bundle="/runs/e0")
    first, second = story.view("step_evidence")
    assert (first["step"], first["status"], first["attempt"], first["bundle"]) == ("eval", "ok", 1, "/runs/e0")
    assert (first["started_event"], first["finished_event"]) == (started, finished)
    assert first["identity"] == "1:eval-0"
    assert isinstance(first["identity_parts"], dict)
    assert isinstance(first["artifacts"], list)
    assert isinstance(first["outputs"], list)
    assert (second["step"], second["status"], second["attempt"], second["reason"]) == ("judge", "running", 2, None)
    assert (second["started_event"], second["finished_event"], second["artifacts"]) == (again, None, None)


def test_a_judge_whose_eval_is_to_run_again_is_in_todo(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    for step in ("eval", "judge"):
        story.start(0, step)
        story.finish(0, step, seconds=3.0)
    story.plan([story.planned(0, 0, "m", identity_eval="1:new")], resumed=True)
    assert story.todo()[1] == (0, "judge", "an earlier step runs again")


def test_a_file_edited_during_the_night_does_not_undo_what_then_ran(story: Any) -> None:
    story.plan([story.planned(0, 0, "m", ("eval",))])
    story.start(0, "eval", identity="1:edited meanwhile")
    story.finish(0, "eval", seconds=3.0)
    assert result(story) == ("complete", "ok", "skipped", None)


def test_a_retry_counts_by_its_last_attempt(story: Any) -> None:
    story.plan([story.planned(0, 0, "m", ("eval",))])
    story.start(0, "eval")
    story.finish(0, "eval", "failed", seconds=3.0)
    story.start(0, "eval", 2)
    assert result(story) == ("running", "pending", "skipped", None)
    story.finish(0, "eval", attempt=2, seconds=4.0)
    assert result(story) == ("complete", "ok", "skipped", None)
    assert columns(story.view("attempt"), "attempt", "status") == [(1, "failed"), (2, "ok")]
    assert columns(story.view("failure"), "attempt", "status") == [(1, "failed")]


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_an_entry_that_never_came_to_its_first_step(story: Any, status: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.say(ev.EntryStarted(), 0)
    story.say(ev.EntryFinished(status=status, reason="The reset failed."), 0)
    assert result(story) == (status, "failed", "skipped", "The reset failed.")
    assert story.view("night_summary")[0]["failed"] == 1
    story.plan([story.planned(0, 0, "m")], resumed=True)
    assert result(story) == (status, "failed", "skipped", "The reset failed.")
    story.say(ev.EntryStarted(), 0)
    assert result(story) == ("pending", "pending", "pending", None)


def test_a_resumed_entry_that_never_came_to_its_next_attempt(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.say(ev.EntryStarted(), 0)
    story.start(0, "eval")
    story.finish(0, "eval", "interrupted", seconds=3.0)
    story.say(ev.EntryFinished(status="interrupted", reason="the night was interrupted"), 0)
    story.plan([story.planned(0, 0, "m")], resumed=True)
    story.say(ev.EntryStarted(), 0)
    story.say(ev.StepSkipped(reason="The pack is gone."), 0, "eval")
    story.say(ev.StepSkipped(reason="The pack is gone."), 0, "judge")
    story.say(ev.EntryFinished(status="failed", reason="The pack is gone."), 0)
    assert result(story) == ("failed", "failed", "skipped", "The pack is gone.")


def test_an_entry_that_ended_before_its_judge(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.say(ev.EntryStarted(), 0)
    story.start(0, "eval")
    story.finish(0, "eval", seconds=1.0)
    story.say(ev.EntryFinished(status="failed"), 0)
    assert result(story) == ("failed", "ok", "failed", "judge failed")


def test_steps_that_were_skipped_for_a_dirty_baseline(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.say(ev.EntryStarted(), 0)
    for step in ("eval", "judge"):
        story.say(ev.StepSkipped(reason="The memory is not back."), 0, step)
    story.say(ev.EntryFinished(status="skipped", reason="The memory is not back."), 0)
    assert result(story) == ("skipped", "failed", "skipped", "The memory is not back.")


def test_an_entry_without_steps_is_not_lost(story: Any) -> None:
    story.plan([story.planned(0, 0, "m", ())])
    assert result(story) == ("pending", "pending", "skipped", None)
    assert story.todo() == [(0, None, "it has not run yet")]
    story.say(ev.EntryStarted(), 0)
    story.say(ev.EntryFinished(status="failed"), 0)
    assert result(story) == ("failed", "failed", "skipped", "entry failed")


def test_an_entry_dropped_from_the_file_leaves_the_summary_but_not_the_history(story: Any) -> None:
    story.plan([story.planned(0, 0, "m"), story.planned(1, 1, "n")])
    story.start(0, "eval")
    story.finish(0, "eval", seconds=8.0)
    story.plan([story.planned(1, 0, "n"), story.planned(2, 1, "o")], resumed=True)
    assert columns(story.view("entry_result"), "entry", "index") == [(1, 0), (2, 1)]
    assert story.view("night_summary")[0]["total"] == 2
    with JournalReader.open(story.path) as reader:
        assert columns(reader.durations(), "model_id", "seconds", "n") == [("m", 8.0, 1)]


def test_median_of_three(story: Any) -> None:
    story.plan([story.planned(0, 0, "m", ("eval",))])
    for attempt, seconds in enumerate((10.0, 90.0, 20.0), 1):
        story.start(0, "eval", attempt)
        story.finish(0, "eval", attempt=attempt, seconds=seconds)
    story.start(0, "eval", 4)
    story.finish(0, "eval", "failed", attempt=4, seconds=1.0)
    with JournalReader.open(story.path) as reader:
        assert columns(reader.durations(), "seconds", "n") == [(20.0, 3)]


def test_what_a_bundle_takes_is_the_largest_of_a_packs_ok_attempts(story: Any) -> None:
    without = attrs.evolve(story.planned(2, 2, "n", ("eval",)), pack=None)
    story.plan([story.planned(0, 0, "m"), story.planned(1, 1, "k", ("eval",)), without])
    for entry, step, status, mb in (
        (0, "eval", "ok", 3.5),
        (0, "judge", "ok", 4.25),
        (1, "eval", "failed", 900.0),
        (1, "eval", "ok", None),  # as an earlier version wrote it
        (2, "eval", "ok", 0.5),
    ):
        story.start(entry, step)
        story.finish(entry, step, status, seconds=1.0, written_mb=mb)
    with JournalReader.open(story.path) as reader:
        rows = columns(reader.view("pack_disk"), "pack", "mb", "n")
        assert rows == [(None, 0.5, 1), ("packs/buero.yaml", 4.25, 2)]


def test_an_entry_was_on_battery_when_it_began_or_ended_so(story: Any) -> None:
    story.plan([story.planned(number, number, f"m{number}") for number in range(4)])
    for entry, began, ended in (
        (0, (False, 90.0), (False, 91.0)),
        (1, (True, 55.0), (False, 54.0)),
        (2, (False, 60.0), (True, 40.5)),
    ):
        story.say(ev.EntryStarted(on_battery=began[0], battery_percent=began[1]), entry)
        story.say(ev.EntryFinished(status="complete", on_battery=ended[0], battery_percent=ended[1]), entry)
    story.say(ev.EntryStarted(), 3)  # a machine without one
    assert columns(story.view("entry_power"), "entry", "on_battery", "battery_percent") == [
        (0, False, 90.0),
        (1, True, 54.0),
        (2, True, 40.5),
    ]


def test_two_probes(story: Any) -> None:
    story.plan([story.planned(0, 0, "m", ("eval",))])
    probes = tuple(
        ev.SettledProbe(
            probe=name,
            status=status,
            proven=proven,
            waited_s=1.0,
            start_mb=mb,
            final_mb=mb,
            polls=1,
            reference_mb=None,
            still_loaded=None,
        )
        for name, mb, status, proven in (("vram.0", 500.0, "settled", True), ("system", 4000.0, "dirty", False))
    )
    story.say(ev.ResetFinished(backend="x", verdict="verified", loaded_before=(), loaded_after=(), seconds=0.1), 0)
    story.say(
        ev.SettleFinished(
            status="dirty", proven=False, waited_s=1.0, baseline_mb={"vram.0": 500.0, "system": 4000.0}, probes=probes
        ),
        0,
    )
    story.start(0, "eval")
    story.finish(0, "eval", seconds=1.0, peak_mb={"vram.0": 9000.0, "system": 4500.0, "late": 1.0})
    names = ("probe", "baseline_mb", "peak_mb", "model_delta_mb", "baseline_proven")
    assert columns(story.view("model_delta"), *names) == [
        ("late", None, 1.0, None, False),
        ("system", 4000.0, 4500.0, 500.0, False),
        ("vram.0", 500.0, 9000.0, 8500.0, True),
    ]
    with JournalReader.open(story.path) as reader:
        assert reader.references(story.night, "boot-1") == {"vram.0": 500.0}


def test_servers(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    started = ev.ServerStarted(argv=("llama-server",), log="/l", model="m")
    for attempt in (1, 2, 3):
        story.say(started, 0, "server", attempt)
        story.say(ev.ServerSpawned(pid=70 + attempt, created_at=1.5, boot_id="boot-1"), 0, "server", attempt)
    story.say(ev.ServerFinished(stopped=True, signal="SIGTERM", seconds=9.0), 0, "server", 1)
    story.say(ev.ServerFinished(stopped=False, exit_code=1, reason="Out of memory."), 0, "server", 2)
    names = ("attempt", "status", "model_id", "argv", "pid", "signal", "exit_code", "reason")
    assert columns(story.view("server"), *names) == [
        (1, "stopped", "m", ["llama-server"], 71, "SIGTERM", None, None),
        (2, "ended", "m", ["llama-server"], 72, None, 1, "Out of memory."),
        (3, "running", "m", ["llama-server"], 73, None, None, None),
    ]
    with JournalReader.open(story.path) as reader:
        assert columns(reader.unfinished(), "kind", "step", "attempt", "pid") == [("server.started", "server", 3, 73)]
    assert story.todo()[0][1] == "eval"


def test_an_end_without_a_start_is_an_attempt_too(story: Any) -> None:
    story.plan([story.planned(0, 0, "m", ("eval",))])
    story.finish(0, "eval", "failed", seconds=0.0, reason="No such program.")
    assert result(story) == ("failed", "failed", "skipped", "eval failed")
    assert columns(story.view("attempt"), "status", "started_event", "reason") == [("failed", None, "No such program.")]


def test_what_a_check_found(tmp_path: Path) -> None:
    check = "2026-10-01_213000_check"
    common: dict[str, Any] = {"baseline_proven": True, "role": "eval", "endpoint": "http://127.0.0.1:1234/v1"}
    found = [
        ev.CheckedModel(
            model="gemma-12b",
            loaded=True,
            status="reasoning_only",
            content_chars=0,
            ram_before_mb=4000.5,
            ram_after_mb=12500.25,
            ram_delta_mb=8499.75,
            ram_back_mb=4001.0,
            answered_by="gemma-12b",
            loaded_models=("gemma-12b", "qwen-27b"),
            context_length=8192,
            seconds=31.25,
            reset_verdict="verified",
            evict_verdict="unverified",
            memory_back=True,
            verdict="warn",
            problem="loaded beside it: qwen-27b",
            remedy="close the other program",
            **common,
        ),
        ev.CheckedModel(
            model="nosuch",
            loaded=False,
            status="error",
            content_chars=0,
            ram_before_mb=None,
            ram_after_mb=None,
            ram_delta_mb=None,
            ram_back_mb=None,
            answered_by=None,
            loaded_models=None,
            context_length=None,
            seconds=0.5,
            reset_verdict="failed",
            evict_verdict="failed",
            memory_back=False,
            verdict="fail",
            problem="HTTP 404: no such model",
            remedy="correct its id",
            **{**common, "baseline_proven": False, "role": "judge", "endpoint": None},
        ),
    ]
    with Journal.open(tmp_path / "journal.db") as journal:
        events = [journal.append(one, night=check, entry=number) for number, one in enumerate(found)]
        other = journal.append(found[0], night="2026-10-02_213000_check", entry=0)
        with journal.reader() as reader:
            one, two = reader.checks(check)
            assert [row["night"] for row in reader.checks()] == [check, check, "2026-10-02_213000_check"]
            assert reader.nights() == [] and reader.unfinished_nights() == [], "a check is no night"
    assert other.id == 3
    assert one == {
        "night": check,
        "entry": 0,
        "model_id": "gemma-12b",
        "loaded": True,
        "status": "reasoning_only",
        "content_chars": 0,
        "ram_before_mb": 4000.5,
        "ram_after_mb": 12500.25,
        "ram_delta_mb": 8499.75,
        "ram_back_mb": 4001.0,
        "baseline_proven": True,
        "role": "eval",
        "endpoint": "http://127.0.0.1:1234/v1",
        "answered_by": "gemma-12b",
        "loaded_models": ["gemma-12b", "qwen-27b"],
        "context_length": 8192,
        "seconds": 31.25,
        "reset_verdict": "verified",
        "evict_verdict": "unverified",
        "memory_back": True,
        "verdict": "warn",
        "problem": "loaded beside it: qwen-27b",
        "remedy": "close the other program",
        "event": 1,
        "at": events[0].at,
    }
    assert isinstance(one["loaded"], bool) and isinstance(one["memory_back"], bool)
    missing = ("ram_before_mb", "ram_after_mb", "ram_delta_mb", "ram_back_mb", "endpoint", "answered_by")
    assert columns([two], *missing, "loaded_models", "context_length") == [(None,) * 8]
    names = ("entry", "model_id", "loaded", "baseline_proven", "memory_back", "verdict", "evict_verdict", "event")
    assert columns([two], *names) == [(1, "nosuch", False, False, False, "fail", "failed", 2)]


def test_unknown_kinds_change_nothing(story: Any) -> None:
    story.plan([story.planned(0, 0, "m", ("eval",))])
    story.start(0, "eval")
    story.say(ev.UnknownEvent(name="step.paused", data={"status": "?"}), 0, "eval", 1)
    assert result(story) == ("running", "pending", "skipped", None)


def test_the_stored_views_say_the_same(golden_db: Path) -> None:
    """What Datasette shows is what the code reads, once this version has opened the journal for writing."""
    Journal.open(golden_db).close()
    conn = sqlite3.connect(golden_db)
    conn.row_factory = sqlite3.Row
    with JournalReader.open(golden_db) as reader:
        for name in ("entry_result", "night_summary", "todo", "attempt"):
            stored = [tuple(row) for row in conn.execute(f"SELECT * FROM {name}")]
            temporary = reader._conn.execute(f"SELECT * FROM {name}").fetchall()
            assert stored == temporary
    conn.close()


def test_scores_over_all_nights_and_those_of_a_night_that_count(story: Any) -> None:
    names = ("entry", "step", "attempt", "model_id", "pack", "position", "name", "value", "stderr", "n", "newest")
    story.plan([story.planned(0, 0, "m"), story.planned(1, 1, "other")])
    accuracy, f1 = ev.Metric(name="accuracy", value=0.25, stderr=0.1, n=12), ev.Metric(name="f1", value=3.5)
    for attempt, status, metrics in ((1, "ok", (accuracy, f1)), (2, "failed", (accuracy,)), (3, "ok", (accuracy,))):
        story.start(0, "eval", attempt)
        event = story.finish(0, "eval", status, attempt=attempt, seconds=3.0, metrics=metrics)
    story.start(1, "eval")
    story.finish(1, "eval", seconds=3.0)  # an eval that reports no score
    pack = story.entry()["pack"]
    first = (0, "eval", 1, "m", pack)
    assert columns(story.view("metric"), *names) == [
        (*first, 0, "accuracy", 0.25, 0.1, 12, False),
        (*first, 1, "f1", 3.5, None, None, True),
        (0, "eval", 3, "m", pack, 0, "accuracy", 0.25, 0.1, 12, True),
    ]
    assert columns(story.view("step_metric"), "index", "attempt", "name", "value", "event") == [
        (0, 3, "accuracy", 0.25, event)
    ]
    story.plan([story.planned(0, 0, "m", identity_eval="1:new")], resumed=True)
    assert story.view("step_metric") == []  # its pack changed: the score is of something else
    assert len(story.view("metric")) == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True])
def test_a_score_is_a_finite_number(value: Any) -> None:
    with pytest.raises(ValueError, match="value must be a finite number"):
        ev.Metric(name="accuracy", value=value)


# --- what the time went to ----------------------------------------------------------------------------------------


def spans(story: Any) -> list[tuple[Any, ...]]:
    return columns(story.view("span"), "what", "step", "status", "seconds")


def test_spans_of_every_kind(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.say(ev.NightWaiting(until="2026-10-01T23:00:00+02:00"))
    story.clock.tick(60)
    story.say(ev.EntryStarted(), 0)
    story.baseline(0, 100.0)
    story.say(ev.CooldownStarted(seconds=5.0), 0)
    story.clock.tick(2)
    story.say(ev.Warned(message="this ends no cooldown"))
    story.clock.tick(3)
    story.say(ev.ServerStarted(argv=("llama-server",), log="/l", model="m"), 0, "eval", 1)
    story.clock.tick(4)
    story.say(ev.ServerSpawned(pid=1, created_at=1.0, boot_id="b"), 0, "eval", 1)
    story.start(0, "eval")
    story.finish(0, "eval", "stalled", seconds=7.0)
    story.say(ev.RestartStarted(argv=("restart",), log="/r"), 0)
    story.clock.tick(6)
    story.say(ev.RestartFinished(exit_code=0, signal=None, seconds=6.0), 0)
    story.say(ev.RetryWaiting(number=1, of=2, seconds=30.0), 0, "eval")
    story.clock.tick(30)
    story.say(ev.NightPaused(by="nora"))
    story.clock.tick(100)
    story.say(ev.NightAsked(what="unpause", by="nora"))
    story.say(ev.NightUnpaused(by="nora", seconds=100.0))
    story.start(0, "eval", 2)
    assert spans(story) == [
        ("start", None, "done", 60.0),
        ("reset", "eval", "verified", 1.0),
        ("settle", None, "settled", 4.0),
        ("cooldown", None, "done", 5.0),
        ("server", "eval", "done", 4.0),
        ("step", "eval", "stalled", 7.0),
        ("restart", None, "done", 6.0),
        ("retry", "eval", "done", 30.0),
        ("pause", None, "done", 100.0),
        ("step", "eval", "running", None),
    ]
    assert story.view("span")[-1]["ended_at"] is None


def test_the_span_of_a_step_whose_runner_died_ends_with_its_last_sign_of_life(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.say(ev.EntryStarted(), 0)
    story.baseline(0, 100.0)
    story.start(0, "eval")
    story.clock.tick(90)
    story.journal.add_samples(
        [Sample(night=story.night, at=story.clock.now(), entry=0, step="eval", probe="system", mb=1.0)]
    )
    story.clock.tick(30000)
    story.say(ev.StepFinished(status="interrupted", seconds=None, reason="the runner died"), 0, "eval", 1)
    story.say(ev.NightInterrupted(reason="the runner died"))
    story.plan([story.planned(0, 0, "m")], resumed=True)
    assert spans(story)[-1] == ("step", "eval", "interrupted", 90.0)


def test_the_span_of_a_settling_whose_runner_died_is_no_longer_than_its_runner(story: Any) -> None:
    story.plan([story.planned(0, 0, "m")])
    story.say(ev.EntryStarted(), 0)
    story.say(ev.SettleStarted(reference_mb={}), 0)
    story.clock.tick(3)
    story.say(ev.Warned(message="the last sign of life"), 0)
    story.clock.tick(30000)
    story.plan([story.planned(0, 0, "m")], resumed=True)
    story.baseline(0, 100.0)
    assert spans(story) == [
        ("settle", None, "interrupted", 3.0),
        ("reset", "eval", "verified", 1.0),
        ("settle", None, "settled", 4.0),
    ]
