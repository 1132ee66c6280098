"""Every kind of page but the charts, looked over by axe: on a desk, in the dark, on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ..browser import VIEWS, barriers, browser, page_of
from ..report.conftest import real_night
from .conftest import Browse, browsing

__all__ = ["browser", "real_night"]

pytestmark = [pytest.mark.slow]

PAGES = {
    "front": "",
    "night": "night/{night}",
    "entry": "night/{night}/e1",
    "unproven": "night/{night}/e3",
    "log": "night/{night}/e1/work/1/log",
    "bundle": "night/{night}/e0/work/1/bundle",
    "search": "search?q=refused",
    "rows": "journal/attempt?status__exact=failed",
    "event": "journal/event/1",
    "question": "journal/failures",
    "sql": "journal?sql=select+1",
    "database": "journal",
    "missing": "night/none",
}


@pytest.fixture(scope="module")
def real(real_night: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browse]:
    with browsing(real_night.runs, state=tmp_path_factory.mktemp("state")) as served:
        yield served


@pytest.mark.parametrize("view", ["desk", "dark", "phone"])
@pytest.mark.parametrize("name", list(PAGES))
def test_axe_finds_nothing(real: Browse, real_night: Any, browser: Any, name: str, view: str) -> None:
    url = real.url + PAGES[name].format(night=real_night.nights()[0])
    with page_of(browser, url, bypass_csp=True, **VIEWS[view]) as page:
        page.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true })")
        assert barriers(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == VIEWS[view]["viewport"]["width"] or (
            name in ("rows", "question") and view != "phone"
        )


def test_what_stands_on_an_unproven_baseline_is_marked_wherever_it_is_shown(real: Browse, real_night: Any) -> None:
    night = real_night.nights()[0]
    front = real.page("/").tables[f"Entries of night {night}"]
    assert [row[-1] for row in front[1:]] == ["500", "1,000", "1,000", "600*", "2,200"]
    (row,) = real.page(f"/night/{night}/e3").tables["Memory before a model loads"][1:]
    assert row[4:6] == ["not proven", "1,400*"]
    text = " ".join(real.page(f"/night/{night}/e3").text.split())
    assert "600* MB above the baseline" in text and "model delta600* MB" in text
    for view in ("entry_result", "model_delta", "attempt"):
        page = real.page(f"/journal/{view}?night={night}&entry=3")
        (cells,) = [
            dict(zip(rows[0], rows[1], strict=True))
            for rows in page.tables.values()
            if "model_delta_mb" in str(rows[0])
        ]
        shown = {name.split()[0]: value for name, value in cells.items()}
        assert (shown["model_delta_mb"], shown["baseline_mb"]) == ("600*", "1,400*"), view
        assert shown["peak_mb"] == "2,000", view
