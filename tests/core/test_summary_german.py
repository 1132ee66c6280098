"""summary.md in German, held against what touchstone's queue would write for the same night."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runq.summary import build, write
from runq.summary_german import to_german
from runq_journal import JournalReader
from runq_schemas import events as ev


def german(told: Any) -> str:
    with JournalReader.open(told.path) as reader:
        return to_german(build(reader, told.night))


def test_a_night_line_for_line_as_touchstone_writes_it(told: Any) -> None:
    told.plan("google/gemma-4-12b", "qwen_3", "phi")
    told.say(ev.EntryStarted(), 0)
    told.settled(0, 4000.0, proven=False)
    told.started(0, "eval")
    told.finished(0, "eval", seconds=3600.46, facts={"answers": 40, "answers_failed": 0})
    told.started(0, "judge")
    told.finished(0, "judge", seconds=1800.6)
    told.say(ev.EntryFinished(status="complete"), 0)
    told.say(ev.EntryStarted(), 1)
    told.started(1, "eval")
    told.finished(1, "eval", "timeout", seconds=14400.4, reason="it ran past its timeout of 14400 s")
    told.say(ev.StepSkipped(reason="eval is not ok"), 1, "judge")
    told.say(ev.EntryFinished(status="incomplete"), 1)
    told.say(ev.EntryStarted(), 2)
    told.started(2, "eval")
    # The third entry runs: touchstone has no row for it yet.
    assert german(told) == (
        "# Nacht-Queue Summary\n"
        "\n"
        "**Start:** 2026-10-01T22:00:00+02:00 · **Einträge:** 3 · **Fertig:** 2\n"
        "\n"
        "| # | Modell | eval | judge | eval s | judge s | Bundle |\n"
        "|---|--------|------|-------|--------|---------|--------|\n"
        f"| 0 | google/gemma-4-12b | ok | ok | 3600 | 1801 | `runs/{told.night}_e0_model_eval_office` |\n"
        f"| 1 | qwen_3 | timeout | skipped | 14400 | 0 | `runs/{told.night}_e1_model_eval_office` |\n"
        "\n"
        "## Fehler\n"
        "\n"
        "- **qwen_3** (#1): eval timeout (>14400s)\n"
    )


@pytest.mark.parametrize(("seconds", "shown"), [(59.46, "59"), (61.46, "61"), (0.4, "0"), (60.5, "60"), (61.5, "62")])
def test_seconds_are_rounded_once(told: Any, seconds: float, shown: str) -> None:
    told.plan("gemma")
    told.say(ev.EntryStarted(), 0)
    told.started(0, "eval")
    told.finished(0, "eval", "failed", seconds=seconds)
    told.say(ev.EntryFinished(status="incomplete"), 0)
    assert f"| failed | skipped | {shown} | 0 |" in german(told)


def test_answers_that_failed_are_told(told: Any) -> None:
    told.plan("gemma")
    told.started(0, "eval")
    told.finished(0, "eval", facts={"answers": 40, "answers_failed": 3})
    told.started(0, "judge")
    told.finished(0, "judge")
    told.say(ev.EntryFinished(status="complete"), 0)
    assert german(told).endswith("\n## Fehler\n\n- **gemma** (#0): 3 von 40 Antworten fehlgeschlagen\n")


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("a|b", "a\\|b"),
        ("<script>", "&lt;script&gt;"),
        ("[x](javascript:1)", "\\[x\\](javascript:1)"),
        ("_it_", "\\_it\\_"),
        ("http://a.b", "http:\\//a.b"),
        ("a\n| 9 |", "a \\| 9 \\|"),
        ("snake_case-7b:q4_K_M@x", "snake_case-7b:q4_K_M@x"),
    ],
)
def test_a_name_from_outside_stays_a_name(told: Any, model: str, shown: str) -> None:
    told.plan(model)
    told.started(0, "eval")
    told.finished(0, "eval", "failed")
    told.say(ev.EntryFinished(status="incomplete"), 0)
    assert f"| 0 | {shown} | failed |" in german(told)


def test_a_night_is_written_in_the_language_it_was_told(told: Any, tmp_path: Path) -> None:
    told.plan("gemma", cls=lambda **fields: ev.NightStarted(**fields, lang="de"))
    with JournalReader.open(told.path) as reader:
        _, told_so = write(reader, told.night, tmp_path / "a")
        _, asked = write(reader, told.night, tmp_path / "b", lang="en")
    assert told_so.read_text().startswith("# Nacht-Queue Summary\n")
    assert asked.read_text().startswith("# Night queue summary\n")
