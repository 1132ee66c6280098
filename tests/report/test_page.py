"""The page's text: what it says of a night, what no text from outside can do, and what it does without plots."""

from __future__ import annotations

import re
from typing import Any

import pytest

from runq.report.best import best, comparable, worked_s
from runq.report.failing import failed_entries
from runq.report.gathered import gather
from runq.report.page import to_html
from runq.report.points import points
from runq_schemas import events as ev

EVIL = "<script>alert(1)</script>"


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)).split())


def scored(told: Any, entry: int, value: float, **fields: Any) -> None:
    told.started(entry, "eval")
    metrics = (ev.Metric(name="accuracy", value=value, n=40), ev.Metric(name="f1", value=1 - value))
    told.finished(entry, "eval", metrics=metrics, **fields)
    told.started(entry, "judge")
    told.finished(entry, "judge", seconds=30.0)
    told.say(ev.EntryFinished(status="complete"), entry)


def test_what_stands_at_the_top(told: Any) -> None:
    told.plan("gemma", "qwen", "phi", "llama")
    told.settled(0, 4000.0, proven=True)
    scored(told, 0, 0.5, model_delta_mb={"system": 8000.0})
    told.settled(1, 4500.0, proven=False)
    scored(told, 1, 0.75, model_delta_mb={"system": 16000.0})
    told.started(2, "eval")
    told.finished(2, "eval", "failed", reason="it exited with `1`.", exit_code=1, log_tail=("Killed",))
    told.say(ev.EntryFinished(status="incomplete"), 2)
    told.say(ev.NightFinished(total=4, complete=2))
    found = gather(told.path, None)
    leading = best(found.entries)
    assert points(found, failed_entries(found), leading) == [
        "1 October 2026, 22:00 to 22:00 (UTC+2), 16 s of work, on box.",
        "Not complete: e2 phi: it exited with '1'.",
        "Highest `accuracy` on packs/office.yaml: qwen with 0.75, in 1:31 min with 16,000 MB (not proven),"
        " of 2 entries.",
        "Baseline not proven: e1. Memory figures on it may hold what an earlier model left.",
    ]
    text = text_of(to_html(found))
    assert "2 of 4 entries complete, 1 failed, 1 not run" in text
    assert "e2 phi failed" in text and "The end of its log: Killed" in text


def test_who_is_best_is_said_only_where_scores_can_be_compared(told: Any) -> None:
    told.plan("gemma", "qwen", "phi")
    scored(told, 0, 0.5)
    scored(told, 1, 0.75)
    scored(told, 2, 0.75)
    entries = gather(told.path, None).entries
    (group,) = comparable(entries)
    assert (group.pack, group.step, group.name, len(group.members)) == ("packs/office.yaml", "eval", "accuracy", 3)
    (top,) = best(entries)
    assert [entry["model_id"] for entry, _ in top.entries] == ["qwen", "phi"]
    assert worked_s(entries[0]) == 91.0  # 61 s and 30 s
    changed = [{**entry, "pack": str(number)} for number, entry in enumerate(entries)]
    assert comparable(changed) == best(changed) == []


def test_no_text_from_outside_does_anything(told: Any) -> None:
    told.plan(EVIL, f"a\x1b[31m{EVIL}", pack=f"packs/{EVIL}.yaml")
    for entry in (0, 1):
        told.settled(entry, 4000.0, proven=False)
        told.started(entry, "eval")
        metrics = (ev.Metric(name=EVIL, value=entry, n=4),)
        told.finished(entry, "eval", metrics=metrics, peak_mb={EVIL: 1.0}, model_delta_mb={EVIL: 1.0})
        told.started(entry, "judge")
        told.finished(entry, "judge", "failed", reason=f"{EVIL} `{EVIL}`", log_tail=(EVIL, "\x1b]0;x\x07\x9b31mred"))
    told.say(ev.Warned(message=EVIL, remedy=f"`{EVIL}`"), 0)
    html = to_html(gather(told.path, None))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 20
    assert not re.search(r"\son[a-z]+\s*=\s*[\"']", html)
    assert not set("\x1b\x9b\x07") & set(html)
    assert "default-src 'none'" in html


def test_nothing_is_loaded_from_elsewhere(told: Any) -> None:
    told.plan("gemma", "qwen")
    scored(told, 0, 0.5)
    scored(told, 1, 0.25)
    html = to_html(gather(told.path, None))
    named = set(re.findall(r"https?://[^\s\"'<>)]+", html))
    assert named <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names of vocabularies
    assert not re.search(r"<(?:link|script|img|iframe|object|embed)\b", html)
    assert "url(" not in html and "@import" not in html
    assert set(re.findall(r'(?:href|src)="([^"#:]*)', html)) <= {"", "data"}


def test_a_page_without_plots_says_so_and_has_their_figures(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told.plan("gemma", "qwen")
    for entry in (0, 1):
        told.settled(entry, 4000.0, proven=True)
        scored(told, entry, 0.5, peak_mb={"system": 12000.5}, model_delta_mb={"system": 8000.5})
    monkeypatch.setattr("runq.report.figures.find_spec", lambda name: None if name == "altair" else object())
    html = to_html(gather(told.path, None))
    assert "<figure" not in html
    assert "made without plots: altair missing" in text_of(html)
    assert "<code>pip install 'runq[report]'</code>" in html.replace("&#39;", "'")
    assert html.count('<data value="8000.5">8,000.5</data>') >= 4


def test_a_night_that_runs_tells_how_far_it_is(told: Any) -> None:
    from runq.locks import night_locks, own_holder

    told.plan("gemma", "qwen")
    scored(told, 0, 0.5)
    told.started(1, "eval")
    holder = own_holder(since="2026-10-01T22:00:00+02:00", queue="/q.yaml", journal=told.path)
    with night_locks(told.path, [], holder):
        text = text_of(to_html(gather(told.path, None)))
    assert "1 of 2 entries complete, 1 still to run" in text
    assert "until now" in text
    assert "--resume" not in text
    died = text_of(to_html(gather(told.path, None)))
    assert "Its runner died. This command goes on with everything that is not complete: runq night" in died


def test_a_night_that_has_just_begun_has_a_page(told: Any) -> None:
    told.plan("gemma")
    assert "0 of 1 entry complete, 1 not run" in text_of(to_html(gather(told.path, None)))


def test_of_perplexity_the_lowest_is_best(told: Any) -> None:
    told.plan("gemma", "qwen")
    for entry, value in enumerate((12.5, 9.25)):
        told.started(entry, "eval")
        told.finished(entry, "eval", metrics=(ev.Metric(name="wikitext/word_perplexity,none", value=value),))
    found = gather(told.path, None)
    (one,) = best(found.entries)
    assert [entry["model_id"] for entry, _ in one.entries] == ["qwen"]
    assert "Lowest `wikitext/word_perplexity,none` on packs/office.yaml: qwen with 9.25" in " ".join(
        points(found, [], [one])
    )


def another_night(told: Any, value: float, stderr: float, *, second: str = "ok") -> None:
    told.plan("gemma", "qwen")
    told.started(0, "eval")
    told.finished(0, "eval", metrics=(ev.Metric(name="accuracy", value=value, stderr=stderr, n=100),))
    told.started(0, "judge")
    told.finished(0, "judge")
    told.started(1, "eval")
    told.finished(1, "eval", second)
    told.started(1, "judge")
    told.finished(1, "judge")
    told.say(ev.NightFinished(total=2, complete=2))


def test_what_changed_since_the_night_before(told: Any) -> None:
    another_night(told, 0.9, 0.03)
    told.night = "2026-10-02_220000"
    another_night(told, 0.5, 0.05, second="failed")  # 0.4 apart: 6.860 standard errors, p = 6.9e-12
    found = gather(told.path, None)
    assert found.earlier is not None and found.earlier.a.name == "2026-10-01_220000"
    told_at_the_top = points(found, [], [])
    gemma, qwen = (f"{model} · packs/office.yaml · config.yaml" for model in ("gemma", "qwen"))
    assert told_at_the_top[1] == (
        f"Since night 2026-10-01_220000: accuracy of {gemma} is 0.5, was 0.9; {qwen} is failed, was complete."
    )
    text = text_of(to_html(found))
    assert f"{gemma} accuracy 0.9 0.5 worse beyond chance, p = 6.9e-12" in text
    assert f"{qwen} result complete failed" in text
    assert "runq compare 2026-10-01_220000 2026-10-02_220000" in text


def test_nothing_changed_since_the_night_before(told: Any) -> None:
    another_night(told, 0.9, 0.03)
    told.night = "2026-10-02_220000"
    another_night(told, 0.88, 0.03)  # less than one standard error apart
    found = gather(told.path, None)
    assert "no score differs beyond chance" in points(found, [], [])[1]
    first = gather(told.path, "2026-10-01_220000")
    assert first.earlier is None
    assert "Since the night before" not in to_html(first)
