"""What the pages say, compared with what the golden nights did; and that every link leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import pytest
import yaml

from runq.resume_command import resume_command
from runq_journal import JournalReader, metadata_path
from runq_journal.view_files import views

from .conftest import Browse, golden_runs
from .evil import EVIL, evil_runs

__all__ = ["evil_runs"]

COMPLETE, RESUMED = "2026-09-01_220000", "2026-09-02_223000"

QUERIES = yaml.safe_load(metadata_path().read_text(encoding="utf-8"))["databases"]["journal"]["queries"]


# --- the front page ---------------------------------------------------------------------------------------------


def test_the_front_page_shows_last_nights_table(golden: Browse) -> None:
    page = golden.page("/")
    assert page.headings[0] == "runq journal"
    assert f"{RESUMED} finished 1 of 4 entries complete, 12:55 h." in " ".join(page.text.split())
    assert page.tables[f"Entries of night {RESUMED}"] == [
        ["entry", "model", "pack", "result", "eval", "judge", "baseline", "model delta, MB"],
        ["e0", "gemma-12b", "packs/buero.yaml", "complete", "ok 50:00 min", "ok 25:00 min", "proven", "8,000"],
        [
            "e2",
            "slow-70b",
            "packs/buero.yaml",
            "failed The step ran longer than 14400 s and was ended.",
            "timeout 4:00 h",
            "",
            "proven",
            "46,000",
        ],
        [
            "e1",
            "broken-1b",
            "packs/buero.yaml",
            "failed The process exited with 1.",
            "failed 12 s",
            "skipped",
            "proven",
            "",
        ],
        [
            "e3",
            "gone-3b",
            "packs/buero.yaml",
            "failed The pack packs/buero.yaml cannot be read.",
            "failed",
            "skipped",
            "",
            "",
        ],
    ]


def test_the_front_page_says_what_is_left_and_the_command_that_goes_on(golden: Browse) -> None:
    page = golden.page("/")
    assert page.tables["Steps to run"][1:] == [
        ["e2", "slow-70b", "eval", "timeout", "it timed out"],
        ["e1", "broken-1b", "eval", "failed", "it failed"],
        ["e1", "broken-1b", "judge", "skipped", "it was skipped"],
        ["e3", "gone-3b", "eval", "pending", "it has not run yet"],
        ["e3", "gone-3b", "judge", "pending", "it has not run yet"],
    ]
    with JournalReader.open(golden.runs / "journal.db") as reader:
        command = resume_command(reader.latest_plan(RESUMED), RESUMED, golden.runs, environ={})
    assert command == f"runq night /home/nora/queue.yaml --resume --night {RESUMED} --runs {golden.runs}"
    assert command in page.preformatted


def test_the_front_page_shows_failures_with_the_end_of_their_log(golden: Browse) -> None:
    page = golden.page("/")
    assert [words for words in page.headings if words.startswith("e")] == [
        "e1 eval failed",
        "e2 eval timeout",
        "e0 judge interrupted",
    ]
    assert "Traceback (most recent call last):\nConnectionRefusedError" in page.preformatted
    assert f"/home/nora/runs/{RESUMED}_queue/logs/e1-eval-1.log" in page.text


def test_the_front_page_shows_durations_and_the_nights(golden: Browse) -> None:
    page = golden.page("/")
    assert [row[:4] + row[5:] for row in page.tables["Median of the ok attempts over all nights"][1:]] == [
        ["gemma-12b", "packs/buero.yaml", "eval", "55:00 min", "2"],
        ["gemma-12b", "packs/buero.yaml", "judge", "27:30 min", "2"],
        ["qwen-27b", "packs/buero.yaml", "eval", "1:30 h", "1"],
        ["qwen-27b", "packs/buero.yaml", "judge", "30:00 min", "1"],
    ]
    assert page.tables["The newest first"][1:] == [
        [RESUMED, "finished", "1 of 4", "3", "0", "12:55 h", "/home/nora/queue.yaml"],
        [COMPLETE, "finished", "2 of 2", "0", "0", "3:30 h", "/home/nora/queue.yaml"],
    ]


def test_the_front_page_leads_to_every_question_and_table(golden: Browse) -> None:
    links = set(golden.page("/").links)
    assert {f"/journal/{name}" for name in QUERIES} <= links
    assert {f"/journal/{view.name}" for view in views()} <= links
    assert {"/journal/event", "/journal/sample", f"/night/{RESUMED}", f"/night/{RESUMED}/e1"} <= links


# --- a night, an entry, a row -----------------------------------------------------------------------------------


def test_a_night_has_everything_of_it(golden: Browse) -> None:
    page = golden.page(f"/night/{COMPLETE}")
    assert page.headings[0] == f"Night {COMPLETE} finished"
    assert page.tables["Memory before a model loads"][1:] == [
        ["e0", "system", "unverified", "settled", "not proven", "4,000*", "7"],
        ["e1", "system", "verified", "settled", "proven", "4,100", "19"],
    ]
    assert page.tables["Readings while steps ran"][1:] == [
        ["e0", "eval", "system", "", "12,500", "12,500", "12,500", "1"],
        ["e1", "eval", "system", "", "21,100", "21,100", "21,100", "1"],
    ]
    events = page.tables["Events in their order"][1:]
    assert len(events) == 27
    assert events[1] == ["2", "2026-09-01 20:00:00", "", "", "warning", "", "", "The machine runs on battery"]
    assert events[9][4:7] == ["step.finished", "ok", "1:00 h"]
    assert "The machine runs on battery Plug it in." in " ".join(page.text.split())


def test_an_entry_has_its_attempts(golden: Browse) -> None:
    page = golden.page(f"/night/{RESUMED}/e0")
    assert [words for words in page.headings if "attempt " in words] == [
        "eval, attempt 1 ok",
        "judge, attempt 1 interrupted",
        "judge, attempt 2 ok",
    ]
    assert "Traceback" not in page.text
    assert (
        "Traceback (most recent call last):\nConnectionRefusedError" in golden.page(f"/night/{RESUMED}/e1").preformatted
    )


@pytest.mark.parametrize("path", ["/night/nope", f"/night/{RESUMED}/e99", "/journal/event/999", "/nope"])
def test_what_is_not_there_is_a_404(golden: Browse, path: str) -> None:
    answer = golden.get(path)
    assert answer.status == 404
    assert answer.page.headings == ["Error 404"]


def test_an_event_reads_as_json_over_lines(golden: Browse) -> None:
    page = golden.page("/journal/event/6")
    assert page.headings == ["Event 6"]
    assert any('"reference_mb": {\n    "system": null\n  }' in text for text in page.preformatted)


def test_rows_are_linked_folded_and_coloured(golden: Browse) -> None:
    page = golden.page(f"/journal/attempt?night__exact={RESUMED}&_sort=started_event")
    assert {f"/night/{RESUMED}", f"/night/{RESUMED}/e0", "/journal/event/34", "/journal/event/36"} <= set(page.links)
    assert f"/journal/event?night__exact={RESUMED}&entry__exact=0&step__exact=eval&attempt__exact=1" in page.links
    assert '<span class="badge bad">timeout</span>' in page.html
    events = golden.page(f"/journal/event?night__exact={RESUMED}&entry__exact=0&step__exact=eval&attempt__exact=1")
    assert "3 rows" in events.text
    assert "<details><summary><code>" in golden.page("/journal/event").html


def test_the_newest_rows_come_first(golden: Browse) -> None:
    assert golden.rows("/journal/event.json?_shape=array")[0]["id"] == 68
    assert golden.rows("/journal/failure.json?_shape=array")[0]["event"] == 63
    assert golden.rows("/journal/entry_result.json?_shape=array")[0]["night"] == RESUMED


def test_facets_count_statuses_and_kinds(golden: Browse) -> None:
    assert "values of status" in golden.page("/journal/attempt").html
    facets = golden.get("/journal/event.json").page.html
    assert '"name": "kind"' in facets
    assert '"name": "model_id"' in golden.get("/journal/entry_result.json").body


# --- the queries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", [view.name for view in views()])
def test_a_counted_value_leads_to_its_rows(golden: Browse, view: str) -> None:
    """Numbers too: a view's columns have no type, and Datasette asks for text."""
    shown = golden.rows(f"/journal/{view}.json?_shape=array&_size=20")
    for row in shown[:1]:
        for column, value in row.items():
            if isinstance(value, int | float | str) and len(str(value)) < 100:
                found = golden.rows(
                    f"/journal/{view}.json?" + urlencode({f"{column}__exact": value, "_shape": "array"})
                )
                assert row in found, column


@pytest.mark.parametrize("value", ["1e999", "nan", "1_000", "٣", "--1", "' OR 1=1 --", "9" * 400])
def test_an_odd_value_is_an_exact_value_like_any_other(golden: Browse, value: str) -> None:
    words = urlencode({"entry__exact": value, "_shape": "array"})
    assert golden.rows(f"/journal/entry_result.json?{words}") == []


def test_queries_without_values_have_sensible_answers(golden: Browse) -> None:
    def rows(name: str, values: str = "") -> list[dict[str, Any]]:
        return golden.rows(f"/journal/{name}.json?_shape=array{values}")

    assert [row["entry"] for row in rows("last_night")] == [0, 2, 1, 3]
    assert [(row["entry"], row["step"]) for row in rows("what_is_left")] == [
        (2, "eval"),
        (1, "eval"),
        (1, "judge"),
        (3, "eval"),
        (3, "judge"),
    ]
    assert rows("what_is_left", f"&night={COMPLETE}") == []
    assert [row["event"] for row in rows("failures")] == [63, 54, 39]
    assert rows("failures", f"&night={COMPLETE}") == []
    assert len(rows("durations")) == 6
    assert [row["eval_seconds"] for row in rows("durations", "&model_id=gemma-12b")] == [3000.0, 3600.0]
    assert [(row["night"], row["entry"], row["baseline_mb"]) for row in rows("unproven_baselines")] == [
        (COMPLETE, 0, 4000.0)
    ]
    assert [row["mb"] for row in rows("memory_of_a_step")] == [21100.0]
    assert [row["mb"] for row in rows("memory_of_a_step", f"&night={COMPLETE}&entry=0&step=eval")] == [12500.0]
    assert [row["peak_mb"] for row in rows("memory_of_a_night")] == [12500.0, 21100.0]
    assert rows("timeline")[0]["event"] == 28
    assert len(rows("timeline", f"&night={COMPLETE}")) == 27
    assert rows("checks") == []


@pytest.mark.parametrize("name", list(QUERIES))
def test_every_query_has_a_page_with_its_title(golden: Browse, name: str) -> None:
    page = golden.page(f"/journal/{name}")
    assert page.headings == [QUERIES[name]["title"]]
    assert QUERIES[name]["description"] in page.text


@pytest.mark.parametrize("name", ["event", "sample", "meta", *(view.name for view in views())])
def test_every_table_and_view_has_a_page(golden: Browse, name: str) -> None:
    page = golden.page(f"/journal/{name}")
    assert "What the columns mean" in page.text


# --- links ------------------------------------------------------------------------------------------------------


def crawl(browse: Browse, starts: list[str], *, deep: Callable[[str], bool]) -> set[str]:
    """Follow every link; those of a page that is ``deep`` are followed in their turn."""
    seen: set[str] = set()
    todo = list(starts)
    while todo:
        link = todo.pop()
        path, _, anchor = link.partition("#")
        if link in seen:
            continue
        seen.add(link)
        answer = browse.get(path)
        assert answer.status == 200, (link, answer.body)
        if anchor:
            assert anchor in answer.page.ids, link
        if "html" in answer.headers["content-type"] and deep(path):
            for href in answer.page.links:
                target = urlsplit(urljoin(browse.url.rstrip("/") + path, href))
                assert target.netloc == urlsplit(browse.url).netloc, href
                todo.append(target._replace(scheme="", netloc="").geturl())
    return seen


def test_every_link_of_the_front_page_a_night_and_an_entry_leads_somewhere(golden: Browse) -> None:
    seen = crawl(golden, ["/"], deep=lambda path: path == "/" or path.startswith("/night/"))
    assert {f"/night/{COMPLETE}/e0", f"/night/{RESUMED}/e3", "/#failures"} <= seen
    assert len(seen) > 100
    assert len(golden.said) == 1, golden.said


def test_every_link_of_an_older_journal_leads_somewhere(browse: Callable[..., Browse], tmp_path: Path) -> None:
    old = browse(golden_runs(tmp_path, upgraded=False))
    crawl(old, ["/"], deep=lambda path: path == "/" or path.startswith("/night/"))
    # This version's views, though the file holds older ones.
    assert "first_event" in old.rows("/journal/night.json?_shape=array")[0]


def test_links_of_rows_lead_somewhere(golden: Browse) -> None:
    pages = [f"/journal/{name}" for name in ("attempt", "failure", "baseline", "failures", "timeline", "event/36")]
    crawl(golden, pages, deep=lambda path: path in pages)


# --- hostile names ----------------------------------------------------------------------------------------------


def test_hostile_names_are_text(browse: Callable[..., Browse], evil_runs: Path) -> None:
    served = browse(evil_runs)
    pages = ["/", "/journal", *(f"/journal/{name}" for name in ("event", "sample", *QUERIES))]
    pages += [f"/journal/{view.name}" for view in views()]
    pages += [f"/journal/event/{number}" for number in range(1, 12)]
    seen = crawl(served, pages, deep=lambda path: path == "/" or path.startswith("/night/"))
    assert len([path for path in seen if path.startswith("/night/")]) >= 4
    for path in seen:
        answer = served.get(path.partition("#")[0])
        if "html" not in answer.headers["content-type"]:
            continue
        page = answer.page
        tags = set(page.tags) - ({"script"} if path.startswith("/-/dashboards/") else set())  # tests of their own
        assert not {"script", "style", "img", "iframe"} & tags, path
        assert not [name for name in page.attributes if name.startswith("on") or name == "style"], path
    assert served.page("/").text.count(EVIL) > 10
    assert f"{EVIL}\n{EVIL}" in served.page("/").preformatted


def test_a_page_may_run_and_load_nothing(golden: Browse) -> None:
    for path in ("/", f"/night/{RESUMED}", "/journal/event", "/nope", "/journal/last_night.json"):
        policy = golden.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe" not in policy
    page = golden.page("/")
    assert not re.findall(r"https?://", page.html.replace(golden.url, "/"))
    assert "url(" not in golden.get("/runq/browse.css").body


def test_the_docs_name_every_question() -> None:
    text = (Path(__file__).parents[2] / "docs" / "browsing.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE)) == set(QUERIES)
