"""Search over what events say: what is found, what is marked, and that a running night's words are found too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from runq_journal import Journal
from runq_journal.datasette.search import FOUND_AT_ONCE, lines_around, marked, terms
from runq_schemas import events as ev

from ..core.conftest import Told
from .conftest import Browse, browsing

COMPLETE, RESUMED = "2026-09-01_220000", "2026-09-02_223000"


def found(served: Browse, **words: Any) -> list[dict[str, Any]]:
    answer = served.get("/search.json?" + urlencode(words))
    assert answer.status == 200, answer.body
    results: list[dict[str, Any]] = json.loads(answer.body)["results"]
    return results


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("refused", [(1, "eval", "failed")]),  # within ConnectionRefusedError, of the log's last lines
        ("REFUSED traceback", [(1, "eval", "failed")]),
        ('"exited with 1"', [(1, "eval", "failed")]),
        ("slow-70b timeout", [(2, "eval", "timeout")]),  # the model and the status are found too
        ("14400", [(2, "eval", "timeout")]),
        ("ran 14400", [(2, "eval", "timeout")]),
        ("died", [(None, None, ""), (0, "judge", "interrupted")]),
        ("cannot be read", [(3, None, "failed")]),
        ("battery", [(None, None, "")]),
        ("plug it", [(None, None, "")]),  # a remedy
        ("refused slow-70b", []),
        ("moonshine", []),
    ],
)
def test_what_is_found(golden: Browse, text: str, where: list[tuple[Any, ...]]) -> None:
    assert [(row["entry"], row["step"], row["status"]) for row in found(golden, q=text)] == where


def test_terms_too_short_for_the_index_are_found_too(golden: Browse) -> None:
    assert [row["entry"] for row in found(golden, q="1 exited")] == [1]
    assert {row["model_id"] for row in found(golden, q="1b")} == {"broken-<mark>1b</mark>"}


def test_only_of_one_night(golden: Browse) -> None:
    assert found(golden, q="battery", night=RESUMED) == []
    assert len(found(golden, q="battery", night=COMPLETE)) == 1


def test_the_page_marks_what_was_found_and_leads_on(golden: Browse) -> None:
    page = golden.page("/search?q=refused")
    assert page.headings[:2] == ["Search", "e1 eval failed broken-1b"]
    assert "1 found, the newest first." in page.text
    assert "Connection<mark>Refused</mark>Error" in page.html
    assert {f"/night/{RESUMED}/e1", f"/night/{RESUMED}", "/journal/event/63"} <= set(page.links)
    assert golden.page("/search?q=moonshine").text.count("Nothing was found.") == 1
    assert "what went wrong" in golden.page("/search").text


@pytest.mark.parametrize(
    "text", ['"', '""', "a*", "NEAR(a b)", "said:x", "(", "^x", "-", "\0", "' OR 1=1 --", "{", "é"]
)
def test_no_text_is_an_error(golden: Browse, text: str) -> None:
    assert golden.get("/search?" + urlencode({"q": text})).status == 200
    assert len(golden.said) == 1, golden.said


def test_names_are_text(golden: Browse) -> None:
    page = golden.page("/search?" + urlencode({"q": "<script>alert(1)</script>", "night": "<b>"}))
    assert "script" not in page.tags


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    (tmp_path / "runs").mkdir()
    night = Told(tmp_path / "runs")
    yield night
    night.journal.close()


def test_what_a_running_night_says_is_found_at_once(told: Told, tmp_path: Path) -> None:
    told.plan("gemma", "qwen")
    with browsing(told.runs, state=tmp_path) as served:
        assert found(served, q="kraken") == []
        told.started(1, "eval")
        told.finished(1, "eval", "failed", reason="it met a kraken", log_tail=("a line", "released the KRAKEN", "end"))
        (row,) = found(served, q="kraken qwen")
        assert row["said"] == ["it met a <mark>kraken</mark>"]
        assert row["log_tail"] == "a line\nreleased the <mark>KRAKEN</mark>\nend"


def test_what_only_repeats_a_reason_is_left_out(told: Told, tmp_path: Path) -> None:
    told.plan("gemma")
    told.started(0, "eval")
    told.finished(0, "eval", "failed", reason="it met a kraken")
    told.say(ev.StepSkipped(reason="eval: it met a kraken"), 0, "judge")
    told.say(ev.EntryFinished(status="failed", reason="eval: it met a kraken"), 0)
    told.say(ev.EntryFinished(status="failed", reason="another kraken"), 0)
    with browsing(told.runs, state=tmp_path) as served:
        assert [row["kind"] for row in found(served, q="kraken")] == ["entry.finished", "step.finished"]


def test_many_are_shown_page_by_page(browse: Callable[..., Browse], tmp_path: Path) -> None:
    with Journal.open(tmp_path / "runs" / "journal.db") as journal:
        for number in range(FOUND_AT_ONCE * 2 + 5):
            journal.append(ev.Warned(message=f"kraken {number}"), night="n")
    served = browse(tmp_path / "runs")
    seen: list[int] = []
    path = "/search?q=kraken"
    while path:
        page = served.page(path)
        seen += [int(text.split()[-1]) for text in page.text.split("\n") if text.startswith("kraken ")]
        path = next((link for link in page.links if "before=" in link), "")
    assert seen == list(range(FOUND_AT_ONCE * 2 + 4, -1, -1))


# --- words ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        ("  a  b ", ["a", "b"]),
        ('"a b" c', ["a b", "c"]),
        ('"a b', ["a b"]),
        ('a"b', ['a"b']),
        ("\0a", ["a"]),
    ],
)
def test_terms(text: str, wanted: list[str]) -> None:
    assert terms(text) == wanted


def test_marks_stand_around_text_only() -> None:
    assert marked("a <b> Ab", ["b", "ab"]) == "a &lt;<mark>b</mark>&gt; <mark>Ab</mark>"
    assert marked("a.b axb", ["a.b"]) == "<mark>a.b</mark> axb"
    assert marked("<i>", []) == "&lt;i&gt;"


@pytest.mark.parametrize(
    ("hits", "shown"),
    [
        ([], list("abcdefgh")),
        (["a"], ["a", "b", "…"]),
        (["d"], ["…", "c", "d", "e", "…"]),
        (["h"], ["…", "g", "h"]),
        (["a", "h"], ["a", "b", "…", "g", "h"]),
        (["b", "d"], ["a", "b", "c", "d", "e", "…"]),
    ],
)
def test_the_lines_around_what_was_found(hits: list[str], shown: list[str]) -> None:
    assert lines_around("\n".join("abcdefgh"), hits, around=1) == shown
