"""The dashboards: their figures against the summary of a real night, and the pages in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from runq_journal.datasette import dashboards_path

from ..browser import VIEWS, barriers, browser, page_of
from ..report.conftest import real_night
from .conftest import Browse, browsing
from .evil import evil_runs

__all__ = ["browser", "evil_runs", "real_night"]

DASHBOARDS: dict[str, Any] = yaml.safe_load(dashboards_path().read_text(encoding="utf-8"))
CHARTS = [(slug, name) for slug, dashboard in DASHBOARDS.items() for name in dashboard["charts"]]


@pytest.fixture(scope="module")
def real(real_night: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browse]:
    """The journal of a real night: one failure, one timeout, one dirty baseline and two that are well."""
    with browsing(real_night.runs, state=tmp_path_factory.mktemp("state")) as served:
        yield served


def rows(served: Browse, slug: str, name: str, **chosen: str) -> list[dict[str, Any]]:
    """What a chart draws, asked for as its page asks."""
    from urllib.parse import urlencode

    chart = DASHBOARDS[slug]["charts"][name]
    words = urlencode({**chosen, "sql": chart["query"], "_shape": "objects"})
    answer = served.get(f"/{chart['db']}.json?{words}")
    assert answer.status == 200, answer.body
    data = json.loads(answer.body)
    assert not data["truncated"]
    found: list[dict[str, Any]] = data["rows"]
    return found


# --- figures ----------------------------------------------------------------------------------------------------


def test_the_night_says_what_the_summary_says(real: Browse, real_night: Any) -> None:
    summary = real_night.summary()
    entries = summary["entries"]
    labels = {entry["id"]: f"e{entry['id']} {entry['model_id']}" for entry in entries}
    assert [(row["entry"], row["model_delta_mb"], row["baseline"]) for row in rows(real, "night", "delta")] == [
        (labels[e["id"]], e["model_delta_mb"], "proven" if e["baseline_proven"] else "not proven") for e in entries
    ]
    assert {row["baseline"] for row in rows(real, "night", "delta")} == {"proven", "not proven"}
    assert [(row["entry"], row["tokens_per_second"]) for row in rows(real, "night", "speed")] == [
        (labels[e["id"]], e["tokens_per_second"]) for e in entries if e["tokens_per_second"] is not None
    ]
    first = {e["model_id"]: e["metrics"][0] for e in entries if e["metrics"]}
    assert {row["model_id"]: row["value"] for row in rows(real, "night", "scores")} == {
        model: metric["value"] for model, metric in first.items()
    }
    assert {(row["low"], row["value"], row["high"]) for row in rows(real, "night", "scores")} == {
        (m["value"] - 2 * m["stderr"], m["value"], m["value"] + 2 * m["stderr"]) for m in first.values()
    }
    assert {row["night"] for row in rows(real, "nights", "complete")} == {summary["night"]}
    assert {row["outcome"]: row["entries"] for row in rows(real, "nights", "complete")} == {
        name: summary[name] for name in ("complete", "failed", "pending")
    }


def test_the_timeline_has_every_step_with_its_end(real: Browse, real_night: Any) -> None:
    found = rows(real, "night", "timeline")
    steps = [(row["row"], row["colour"]) for row in found if row["what"] == "work"]
    assert steps == [
        ("e0 good", "first step"),
        ("e1 broken", "failed"),
        ("e2 endless", "timeout"),
        ("e3 late", "first step"),
        ("e4 better", "first step"),
    ]
    assert [row["what"] for row in found].count("reset") == 5 and [row["what"] for row in found].count("settle") == 5
    took = {e["id"]: e["steps"][0]["seconds"] for e in real_night.summary()["entries"]}
    for row in found:
        if row["what"] == "work":
            # The wall clock and the events around it: the step's own seconds are by the monotonic clock.
            assert row["seconds"] == pytest.approx(took[int(row["row"][1])], abs=0.5)
            assert row["leads_to"] == f"/night/{real_night.nights()[0]}/{row['row'].split()[0]}"


def test_memory_keeps_its_lowest_and_highest_reading_and_every_baseline(real: Browse, real_night: Any) -> None:
    found = rows(real, "night", "memory")
    with real_night.reader() as reader:
        samples = [sample.mb for sample in reader.samples(real_night.nights()[0])]
        baselines = reader.view("baseline", real_night.nights()[0])
    readings = [row["mb"] for row in found if row["series"] == "reading"]
    assert (min(readings), max(readings)) == (min(samples), max(samples))
    assert [(row["entry"], row["mb"], row["baseline"]) for row in found if row["series"] == "baseline"] == [
        (f"e{one['entry']}", one["baseline_mb"], "proven" if one["baseline_proven"] else "not proven")
        for one in baselines
    ]


def test_failures_are_counted_by_cause(real: Browse) -> None:
    assert {(row["cause"], row["status"], row["attempts"]) for row in rows(real, "failures", "causes")} == {
        ("it exited with 1", "failed", 1),
        ("it ran past its timeout of 1 s", "timeout", 1),
    }
    assert {row["baseline"]: row["entries"] for row in rows(real, "failures", "baselines")} == {
        "proven": 4,
        "dirty, not proven": 1,
    }
    assert [row["what"] for row in rows(real, "failures", "models", model_id="broken")] == ["broken work"]


def test_the_golden_nights_in_figures(golden: Browse) -> None:
    assert [(row["night"], row["outcome"], row["entries"]) for row in rows(golden, "nights", "complete")] == [
        ("2026-09-01_220000", "complete", 2),
        ("2026-09-01_220000", "failed", 0),
        ("2026-09-01_220000", "pending", 0),
        ("2026-09-02_223000", "complete", 1),
        ("2026-09-02_223000", "failed", 3),
        ("2026-09-02_223000", "pending", 0),
    ]
    durations = rows(golden, "nights", "durations", model_id="gemma-12b")
    assert [(row["night"], row["step"], row["seconds"]) for row in durations] == [
        ("2026-09-01_220000", "eval", 3600.04),
        ("2026-09-01_220000", "judge", 1800.0),
        ("2026-09-02_223000", "eval", 3000.0),
        ("2026-09-02_223000", "judge", 1500.0),
    ]
    assert rows(golden, "nights", "durations", model_id="gemma-12b", pack="other") == []
    chosen = rows(golden, "night", "timeline", night="2026-09-01_220000")
    assert [row["row"] for row in chosen] == ["e0 gemma-12b"] * 4 + ["e1 qwen-27b"] * 4
    assert [row["colour"] for row in chosen[:4]] == ["reset", "settle", "first step", "later step"]
    assert {(row["night"], row["seconds"]) for row in rows(golden, "failures", "lost")} == {
        ("2026-09-02_223000", 14400.5),
        ("2026-09-02_223000", 12.3),
    }
    (eval_time,) = [
        r for r in rows(golden, "night", "time", night="2026-09-01_220000") if (r["place"], r["what"]) == (0, "eval")
    ]
    assert eval_time["seconds"] == 3600.0


@pytest.mark.parametrize(("slug", "name"), CHARTS)
def test_every_chart_says_what_it_shows_and_from_what(slug: str, name: str) -> None:
    chart = DASHBOARDS[slug]["charts"][name]
    assert chart["library"] == "vega-lite", "the plugin's other kinds put what they read into the page as HTML"
    assert chart["title"][0].isupper() and chart["says"].endswith(".")
    views = {
        "span",
        "attempt",
        "entry_result",
        "step_metric",
        "metric",
        "failure",
        "baseline",
        "night_summary",
        "sample",
    }
    assert set(re.findall(r"\b(?:FROM|JOIN) (\w+)", chart["query"])) & views


# --- pages ------------------------------------------------------------------------------------------------------


def test_the_list_and_the_front_page_lead_to_each(golden: Browse) -> None:
    links = {f"/-/dashboards/{slug}" for slug in DASHBOARDS}
    assert links <= set(golden.page("/-/dashboards").links)
    assert links <= set(golden.page("/").links)
    assert "/-/dashboards/night?night=2026-09-01_220000" in golden.page("/night/2026-09-01_220000").links


def test_only_charts_may_run_scripts_and_only_this_servers(golden: Browse) -> None:
    policy = golden.get("/-/dashboards/night").headers["content-security-policy"]
    assert "script-src 'self'; connect-src 'self'" in policy and "unsafe" not in policy
    for path in ("/", "/night/2026-09-01_220000", "/journal/event"):
        assert "script-src" not in golden.get(path).headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/-/dashboards/none", "/-/dashboards/night/none"])
def test_a_dashboard_that_is_not_there_is_a_404(golden: Browse, path: str) -> None:
    answer = golden.get(path)
    assert answer.status == 404
    assert "not found" in answer.page.text or "does not exist" in answer.page.text


def drawn(page: Any) -> Any:
    page.wait_for_selector("html[data-drawn]")
    return page


@pytest.mark.slow
@pytest.mark.parametrize("view", list(VIEWS))
@pytest.mark.parametrize("slug", list(DASHBOARDS))
def test_every_chart_is_drawn_fits_and_loads_nothing_from_elsewhere(
    real: Browse, browser: Any, slug: str, view: str
) -> None:
    with page_of(browser, f"{real.url}-/dashboards/{slug}", **VIEWS[view]) as page:
        drawn(page)
        assert page.said == []
        assert {url for url in page.asked if not url.startswith(real.url)} == set()
        for name in DASHBOARDS[slug]["charts"]:
            assert page.locator(f"#chart-{name} svg").count() == 1, name
        assert page.evaluate("document.documentElement.scrollWidth") == VIEWS[view]["viewport"]["width"]
        sheet = page.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor")
        assert sheet == ("rgb(25, 30, 40)" if "dark" in view else "rgb(255, 255, 255)")
        label = page.locator("svg .mark-text.role-axis-label text").first
        assert label.get_attribute("fill") == ("#a3abba" if "dark" in view else "#565e70")


@pytest.mark.slow
@pytest.mark.parametrize("view", ["desk", "dark", "phone"])
@pytest.mark.parametrize(
    "path", ["-/dashboards", *(f"-/dashboards/{slug}" for slug in DASHBOARDS), "-/dashboards/night/memory"]
)
def test_axe_finds_nothing(real: Browse, browser: Any, path: str, view: str) -> None:
    with page_of(browser, real.url + path, bypass_csp=True, **VIEWS[view]) as page:
        if "/" in path.removeprefix("-/dashboards"):
            drawn(page)
        assert barriers(page) == []


@pytest.mark.slow
def test_the_dark_redraws_a_page_that_is_open(real: Browse, browser: Any) -> None:
    with page_of(browser, f"{real.url}-/dashboards/night/delta", **VIEWS["desk"]) as page:
        label = drawn(page).locator("svg .mark-text.role-axis-label text").first
        assert label.get_attribute("fill") == "#565e70"
        page.emulate_media(color_scheme="dark")
        page.wait_for_selector("svg .role-axis-label text[fill='#a3abba']")


@pytest.mark.slow
def test_a_night_is_chosen_and_a_bar_leads_to_its_entry(real: Browse, real_night: Any, browser: Any) -> None:
    night = real_night.nights()[0]
    with page_of(browser, f"{real.url}-/dashboards/night", **VIEWS["desk"]) as page:
        drawn(page)
        page.locator("label", has_text="Night").locator("select").select_option(night)
        page.get_by_role("button", name="Show").click()
        page.wait_for_url(f"**/night?night={night}")
        drawn(page).locator("#chart-timeline svg .mark-rect path").first.click()
        page.wait_for_url(f"**/night/{night}/e0")


@pytest.mark.slow
def test_the_rows_behind_a_chart_are_a_link_away(real: Browse, browser: Any) -> None:
    with page_of(browser, f"{real.url}-/dashboards/night", **VIEWS["phone"]) as page:
        page.get_by_role("link", name="The rows of Model delta").click()
        page.wait_for_selector("table")
        assert "e3 late" in page.locator("table").inner_text()


@pytest.mark.slow
def test_a_picture_says_in_words_what_it_shows(real: Browse, browser: Any) -> None:
    with page_of(browser, f"{real.url}-/dashboards/night", **VIEWS["desk"]) as page:
        drawn(page)
        for name, chart in DASHBOARDS["night"]["charts"].items():
            assert (
                page.locator(f"#chart-{name}").get_by_role("img", name=f"{chart['title']}. {chart['says']}").count()
                == 1
            )


@pytest.mark.slow
def test_an_empty_journal_has_charts_without_marks(browse: Callable[..., Browse], browser: Any, tmp_path: Path) -> None:
    from runq_journal import Journal

    Journal.open(tmp_path / "runs" / "journal.db").close()
    served = browse(tmp_path / "runs")
    for slug, dashboard in DASHBOARDS.items():
        with page_of(browser, f"{served.url}-/dashboards/{slug}", **VIEWS["desk"]) as page:
            drawn(page)
            assert page.said == []
            assert page.get_by_text("There is nothing to draw yet.").count() == len(dashboard["charts"])


@pytest.mark.slow
def test_hostile_names_are_text_in_charts(browse: Callable[..., Browse], browser: Any, evil_runs: Path) -> None:
    served = browse(evil_runs)
    for slug in DASHBOARDS:
        with page_of(browser, f"{served.url}-/dashboards/{slug}", **VIEWS["desk"]) as page:
            page.on("dialog", lambda dialog: page.said.append("a dialog"))
            drawn(page)
            assert page.said == [], slug
            assert page.locator("img, iframe").count() == 0
            assert page.locator("script:not([src]):not([type='application/json'])").count() == 0
