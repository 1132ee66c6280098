"""A night at one glance."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runq.locks import night_locks, own_holder
from runq.resume_command import resume_command
from runq.status import status_data, status_line, status_text
from runq_journal import Sample
from runq_schemas import UsageError
from runq_schemas import events as ev


@contextmanager
def running(told: Any) -> Iterator[None]:
    """Hold the journal's lock, as a runner does."""
    holder = own_holder(since="2026-10-01T22:00:00+02:00", queue="/q.yaml", journal=told.path)
    with night_locks(told.path, [], holder):
        yield


def half_done(told: Any) -> None:
    told.plan("gemma", "qwen")
    told.say(ev.EntryStarted(), 0)
    told.started(0, "eval")
    told.finished(0, "eval")
    told.started(0, "judge")


def test_a_running_night(told: Any) -> None:
    half_done(told)
    with running(told):
        data = status_data(told.path, None)
    assert data["state"] == "running"
    assert data["runner"]["since"] == "2026-10-01T22:00:00+02:00"
    assert {key: data["now"][key] for key in ("kind", "entry", "step", "attempt")} == {
        "kind": "step.started",
        "entry": 0,
        "step": "judge",
        "attempt": 1,
    }
    lines = status_text(data).splitlines()
    assert lines[0] == f"night {told.night}  running (pid {data['runner']['pid']})"
    assert lines[1] == "0 of 2 entries complete, 0 failed, 2 pending"
    assert lines[3].split() == ["e0", "gemma", "eval", "ok", "1:01", "min", "judge", "running"]
    assert re.fullmatch(r"now: e0 judge running, for \S+ (h|min|s)", lines[-1])
    assert "go on with" not in status_text(data)
    json.dumps(data)


def test_a_night_whose_runner_died(told: Any) -> None:
    half_done(told)
    data = status_data(told.path, told.night)
    assert (data["state"], data["runner"]) == ("died", None)
    queue = told.runs.parent / "queue.yaml"
    assert f"its runner died; go on with: runq night {queue} --resume --night {told.night}" in status_text(data)


def test_the_command_to_go_on_with_can_be_pasted(tmp_path: Path, told: Any) -> None:
    told.plan("gemma")
    told.say(ev.NightInterrupted(reason="SIGINT"))
    data = status_data(told.path, None)
    assert data["state"] == "interrupted"
    assert status_text(data).splitlines()[-1] == f"go on with: {data['resume']}"


@pytest.mark.parametrize(
    ("runs", "base", "more"),
    [
        ("/my queues/runs", "/my queues", ""),
        ("/elsewhere", "/my queues", " --runs /elsewhere"),
        ("/my queues/runs", "/data", " --base-dir /data"),
    ],
)
def test_the_command_that_goes_on_is_exact(runs: str, base: str, more: str) -> None:
    plan = {"queue_path": "/my queues/a.yaml", "base_dir": base}
    expected = f"runq night '/my queues/a.yaml' --resume --night 2026-09-01_220000{more}"
    assert resume_command(plan, "2026-09-01_220000", Path(runs)) == expected


def test_a_finished_night_with_a_failed_entry_can_go_on(told: Any) -> None:
    told.plan("gemma")
    told.say(ev.EntryStarted(), 0)
    told.started(0, "eval")
    told.finished(0, "eval", "failed", reason="it exited\nwith 3")
    told.say(ev.StepSkipped(reason="eval"), 0, "judge")
    told.say(ev.EntryFinished(status="incomplete"), 0)
    told.say(ev.NightFinished(total=1, complete=0))
    text = status_text(status_data(told.path, None))
    assert "      it exited with 3" in text.splitlines(), "a reason stays on its line"
    assert "go on with: runq night" in text


def test_a_complete_night_has_nothing_to_go_on_with(told: Any) -> None:
    told.plan("gemma")
    for step in ("eval", "judge"):
        told.started(0, step)
        told.finished(0, step)
    told.say(ev.EntryFinished(status="complete"), 0)
    told.say(ev.NightFinished(total=1, complete=1))
    data = status_data(told.path, None)
    assert data["state"] == "finished"
    assert "go on with" not in status_text(data)


def test_the_last_warning_is_shown(told: Any) -> None:
    told.plan("gemma")
    told.say(ev.Warned(message="the disk is\x1b[31m full"))
    assert "1 warning: the disk is full" in status_text(status_data(told.path, None))
    told.say(ev.Warned(message="again"))
    assert "2 warnings, the last: again" in status_text(status_data(told.path, None))


@pytest.mark.parametrize("model", ["a\nnight over", "\x1b]0;title\x07model", "a\tb"])
def test_a_hostile_model_id_has_no_line_of_its_own(told: Any, model: str) -> None:
    told.plan("plain")
    plain = status_text(status_data(told.path, None))
    told.plan(model, cls=ev.NightResumed)
    text = status_text(status_data(told.path, None))
    assert len(text.splitlines()) == len(plain.splitlines())
    assert "\x1b" not in text and "\x07" not in text


def test_a_night_by_its_folder(told: Any) -> None:
    told.plan("gemma")
    assert status_data(told.path, f"runs/{told.night}_queue")["night"] == told.night
    assert status_data(told.path, str(told.runs / f"{told.night}_queue/"))["night"] == told.night
    with pytest.raises(UsageError, match="there is no night '2020'") as caught:
        status_data(told.path, "2020")
    assert told.night in caught.value.remedy


def test_a_journal_without_a_night(told: Any) -> None:
    with pytest.raises(UsageError, match="no night yet"):
        status_data(told.path, None)


def test_the_columns_of_a_status_line_up(told: Any) -> None:
    told.plan("a", "a-much-longer/name")
    lines = status_text(status_data(told.path, None)).splitlines()
    first, second = (line for line in lines if line.startswith("e"))
    assert first == "e0   a                   pending"
    assert second == "e1   a-much-longer/name  pending"


def test_the_first_score_of_each_step_has_a_line(told: Any) -> None:
    told.plan("gemma")
    told.started(0, "eval")
    told.finished(
        0, "eval", metrics=(ev.Metric(name="match/accuracy", value=0.5, n=12), ev.Metric(name="other", value=1.0))
    )
    lines = status_text(status_data(told.path, told.night)).splitlines()
    assert lines[4] == "      eval: match/accuracy 0.5 (n=12)"
    assert "other" not in "\n".join(lines)


# --- programs, status bars and low screens ----------------------------------------------------------------------


def test_the_step_that_runs_in_figures(told: Any) -> None:
    told.plan("gemma", "qwen")
    told.settled(0, 4000.0, proven=True)
    told.started(0, "eval")
    at = told.start + timedelta(seconds=told.seconds)
    told.journal.add_samples(
        [
            Sample(night=told.night, at=at + timedelta(seconds=number), entry=0, step="eval", probe=probe, mb=mb)
            for number, (probe, mb) in enumerate(
                [("system", 9000.0), ("nvidia", 1.0), ("system", 9500.0), ("nvidia", 2.0)]
            )
        ]
    )
    with running(told):
        data = status_data(told.path, None)
    found = dict(data["running"])
    assert found.pop("seconds") > 0
    assert found == {
        "entry": 0,
        "model_id": "gemma",
        "step": "eval",
        "attempt": 1,
        "started_at": "2026-10-01T20:00:03.000000Z",
        "timeout_s": 14400.0,
        "usual_s": None,
        "log": str(told.runs / f"{told.night}_queue" / "logs" / "e0-eval-1.log"),
        "probe": "system",
        "baseline_mb": 4000.0,
        "baseline_proven": True,
        "memory_mb": 9500.0,
        "memory_at": "2026-10-01T20:00:05.000000Z",
    }
    assert re.fullmatch(r"running 0/2 · e0 gemma · eval \S+ (h|min|s) · 9,500 MB", status_line(data))
    assert status_data(told.path, None)["running"] is None, "nobody runs it any more"


def test_how_long_it_usually_takes_and_readings_of_an_earlier_attempt(told: Any) -> None:
    told.plan("gemma")
    told.started(0, "eval")
    told.finished(0, "eval")
    at = told.start + timedelta(seconds=told.seconds)
    told.journal.add_samples([Sample(night=told.night, at=at, entry=0, step="eval", probe="system", mb=9000.0)])
    told.seconds += 5
    told.started(0, "eval", attempt=2)
    with running(told):
        found = status_data(told.path, None)["running"]
    assert (found["attempt"], found["usual_s"], found["memory_mb"]) == (2, 61.0, None)


def test_between_steps_nothing_runs(told: Any) -> None:
    half_done(told)
    told.finished(0, "judge", "failed")
    with running(told):
        data = status_data(told.path, None)
    assert data["running"] is None
    assert status_line(data) == "running 0/2 · 1 failed"


def test_a_low_screen_counts_what_matters_least(told: Any) -> None:
    told.plan(*[f"model-{number}" for number in range(30)])
    for number in range(10):
        for step in ("eval", "judge"):
            told.started(number, step)
            told.finished(
                number, step, "failed" if number == 3 and step == "judge" else "ok", reason="it exited with 3"
            )
    told.started(10, "eval")
    with running(told):
        data = status_data(told.path, None)
    lines = status_text(data, height=12).splitlines()
    assert len(lines) == 12
    assert [line.split()[:2] for line in lines[3:7]] == [
        ["e3", "model-3"],
        ["it", "exited"],
        ["e10", "model-10"],
        ["e11", "model-11"],
    ]
    assert lines[9] == "… and 16 pending, 9 complete; `runq status --all` shows them"
    assert len(status_text(data).splitlines()) == 3 + 31 + 2
