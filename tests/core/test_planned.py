"""The plan as data and as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runq.planned import plan_data, plan_text
from runq.text import duration
from runq_schemas import UsageError
from runq_schemas import events as ev

QUEUE = """\
defaults:
  reset: none
  step_timeout_s: { eval: 600 }
entries:
  - { config: config.yaml, pack: packs/office.yaml, model: gemma, judge_config: judge.yaml }
  - { config: config.yaml, pack: packs/home.yaml, model: { id: qwen, extra_body: { think: false } } }
"""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "?"),
        (0, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1:00 min"),
        (60, "1:00 min"),
        (185, "3:05 min"),
        (3599.6, "1:00 h"),
        (14400, "4:00 h"),
        (21_660, "6:01 h"),
        (100 * 3600, "100:00 h"),
    ],
)
def test_durations_for_people(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def plan(prepared: Any, runs: Path, text: str = QUEUE, **changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"resume": False, "night": None, "only": None, "environ": {}, **changes}
    return plan_data(prepared(text), runs, **given)


def test_a_first_night(prepared: Any, folder: Path) -> None:
    runs = folder / "runs"
    data = plan(prepared, runs)
    assert not runs.exists(), "a plan writes nothing"
    assert data["queue"] == str(folder / "queue.yaml")
    first, second = data["entries"]
    assert (first["id"], first["index"], first["model"]) == (0, 0, {"id": "gemma"})
    assert second["model"] == {"id": "qwen", "extra_body": {"think": False}}
    steps = [(s["name"], s["run"], s["why"], s["attempt"], s["timeout_s"], s["usual_s"]) for s in first["steps"]]
    assert steps == [
        ("eval", True, "has not run", 1, 600.0, None),
        ("judge", True, "eval runs first", 1, 21600.0, None),
    ]
    assert [s["name"] for s in second["steps"]] == ["eval"]
    assert first["settings"]["on_dirty"] == "warn"
    assert first["settings"]["reset_before"] == ["eval"]
    assert {plugin["name"] for plugin in data["plugins"]} == {"none", "touchstone", "system"}
    json.dumps(data)

    lines = plan_text(data).splitlines()
    assert lines[0].split() == ["queue", str(folder / "queue.yaml")]
    assert "e0  gemma · packs/office.yaml" in lines
    assert "    run  eval: has not run (timeout 10:00 min)" in lines
    assert "    run  judge: eval runs first (timeout 6:00 h)" in lines
    assert lines[-1] == "2 entries, 3 steps to run"


def test_only_selected_entries_run(prepared: Any, folder: Path) -> None:
    data = plan(prepared, folder / "runs", only=frozenset({1}))
    assert [[s["run"] for s in e["steps"]] for e in data["entries"]] == [[False, False], [True]]
    assert "    keep eval: not selected by --only" in plan_text(data)
    with pytest.raises(UsageError, match="there is no entry e7") as caught:
        plan(prepared, folder / "runs", only=frozenset({7}))
    assert caught.value.remedy == "entries are e0, e1"


def test_secrets_do_not_stand_in_a_plan(prepared: Any, folder: Path) -> None:
    key = "sk-0123456789abcdef"
    text = QUEUE.replace(
        "reset: none", f"reset: none\n  env: {{ OPENAI_API_KEY: '${{MY_KEY}}', OTHER_TOKEN: {key}-b }}"
    )
    spec = prepared(text, environ={"MY_KEY": key})
    data = plan_data(spec, folder / "runs", resume=False, night=None, only=None, environ={"MY_KEY": key})
    assert data["entries"][0]["settings"]["env"] == {"OPENAI_API_KEY": "***", "OTHER_TOKEN": "***"}
    assert key not in json.dumps(data) and key not in plan_text(data)


def test_a_resume_without_a_journal_says_what_to_do(prepared: Any, folder: Path) -> None:
    with pytest.raises(UsageError, match="has no journal to resume from") as caught:
        plan(prepared, folder / "runs", resume=True)
    assert caught.value.remedy == "start a night without --resume"


def test_how_long_it_took_before(prepared: Any, told: Any) -> None:
    # The nights before took 100, 300 and 120 seconds: the median is 120.
    told.plan("gemma")
    for attempt, seconds in enumerate((100.0, 300.0, 120.0), start=1):
        told.started(0, "eval", attempt)
        told.finished(0, "eval", attempt=attempt, seconds=seconds)
    data = plan(prepared, told.runs)
    first, second = data["entries"]
    assert (first["steps"][0]["usual_s"], first["steps"][0]["usual_n"]) == (120.0, 3)
    assert (first["steps"][1]["usual_s"], second["steps"][0]["usual_s"]) == (None, None)
    text = plan_text(data)
    assert "(timeout 10:00 min, usually 2:00 min (n=3))" in text
    assert text.splitlines()[-1] == "about 2:00 min by earlier nights, 2 steps without history"


def test_a_plan_to_resume_names_the_night(prepared: Any, told: Any) -> None:
    told.plan("gemma")
    told.say(ev.NightInterrupted(reason="SIGINT"))
    data = plan(prepared, told.runs, resume=True, night=f"{told.night}_queue")
    assert data["night"] == told.night
    assert f"resumes {told.night}" in plan_text(data)
    with pytest.raises(UsageError, match="has no night '2020'"):
        plan(prepared, told.runs, resume=True, night="2020")
    with pytest.raises(UsageError, match="has no night of"):
        plan(prepared, told.runs, resume=True)


def test_hostile_names_stay_on_their_line(prepared: Any, folder: Path) -> None:
    data = plan(prepared, folder / "runs")
    plain = plan_text(data)
    data["entries"][0]["model"]["id"] = "a\n\x1b[31mb"
    data["entries"][0]["steps"][0]["why"] = "one\ntwo"
    text = plan_text(data)
    assert "e0  a b · packs/office.yaml" in text and "\x1b" not in text
    assert len(text.splitlines()) == len(plain.splitlines())
