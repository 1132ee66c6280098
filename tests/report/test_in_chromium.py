"""The page of a real night in a real browser: on a desk, on a phone, in the dark, on paper, by keyboard, and by axe."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

pytestmark = [pytest.mark.slow]

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

VIEWS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": DESK},
    "dark": {"viewport": DESK, "color_scheme": "dark"},
    "phone": {"viewport": PHONE},
    "dark-phone": {"viewport": PHONE, "color_scheme": "dark"},
}

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser(missing_session: Callable[[str], NoReturn]) -> Iterator[Any]:
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    program = next((path for path in found if path), None)
    if program is None:
        missing_session("Chromium is not installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing_session("playwright is not installed")
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=QUIET)
        yield started
        started.close()


@pytest.fixture
def show(browser: Any, real_page: Path) -> Iterator[Callable[..., Any]]:
    """Opens the page, and keeps what it asked for and complained of."""
    contexts = []

    def opened(page_file: Path = real_page, **view: Any) -> Any:
        # axe is put into the page, which its own policy would refuse.
        contexts.append(browser.new_context(bypass_csp=view.pop("bypass_csp", False), **view))
        page = contexts[-1].new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.goto(page_file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize("view", list(VIEWS))
def test_axe_finds_nothing(show: Callable[..., Any], view: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = show(bypass_csp=True, **VIEWS[view])
    page.evaluate("document.querySelectorAll('details').forEach(it => { it.open = true })")
    found = Axe().run(page).response
    assert len(found["passes"]) > 20, "axe looked at the page"
    assert [(one["id"], one["impact"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []


def test_axe_would_find_something(show: Callable[..., Any], tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><html><title>x</title><main><img src='data:,'><h1 style='color:#ccc'>pale</h1></main>"
    )
    found = {one["id"] for one in Axe().run(show(bad, bypass_csp=True)).response["violations"]}
    assert {"image-alt", "color-contrast", "html-has-lang"} <= found


@pytest.mark.parametrize("view", list(VIEWS))
def test_it_fits_and_loads_nothing(show: Callable[..., Any], real_page: Path, view: str, tmp_path: Path) -> None:
    page = show(**VIEWS[view])
    assert page.asked == [real_page.as_uri()]
    assert page.said == []
    assert page.locator("script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == VIEWS[view]["viewport"]["width"]
    shown = "narrow" if "phone" in view else "wide"
    pictures = page.locator("figure > svg:visible")
    assert {pictures.nth(i).get_attribute("class") for i in range(pictures.count())} == {shown}
    assert pictures.count() == 3  # memory, time, quality
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark == ("rgb(16, 19, 26)" if "dark" in view else "rgb(250, 249, 246)")
    curve = page.locator(f"#memory ~ figure svg.{shown} .mark-line path").first
    assert curve.evaluate("e => getComputedStyle(e).stroke") == (
        "rgb(241, 243, 248)" if "dark" in view else "rgb(27, 33, 48)"
    )
    page.screenshot(path=tmp_path / f"{view}.png", full_page=True)
    assert (tmp_path / f"{view}.png").stat().st_size > 50_000


def test_a_screen_reader_gets_headings_tables_and_pictures_in_words(show: Callable[..., Any]) -> None:
    page = show(**VIEWS["phone"])  # where tables are laid out as cards, they must stay tables
    assert (
        page.get_by_role("heading", level=1).inner_text() == "3 of 5 entries complete, 2 failed (1 of them by timeout)"
    )
    names = [heading.inner_text() for heading in page.get_by_role("heading", level=2).all()]
    assert names == [
        "Entries",
        "Best scores",
        "Failures",
        "What is left",
        "Memory through the night",
        "Time of each entry",
        "Quality against memory and time",
        "All scores",
        "Warnings",
        "Machine and queue",
    ]
    table = page.get_by_role("table").first
    assert table.get_by_role("row").count() == 6
    assert [h.inner_text().split("\n")[0] for h in table.get_by_role("rowheader").all()] == [
        "good",
        "broken",
        "endless",
        "late",
        "better",
    ]
    picture = page.get_by_role("img", name="Memory through the night, probe fake")
    words = picture.locator("desc").text_content()
    assert words.startswith("Baselines from 1,000 to 1,400 MB. The highest reading is 3,200 MB, in work of e4.")
    titles = picture.locator("g title").all_text_contents()
    assert "e3 baseline 1,400.0 MB, not proven" in titles
    assert any(title.startswith("e2 work timeout, ") for title in titles)


def test_everything_is_reached_by_keyboard(show: Callable[..., Any]) -> None:
    page = show(**VIEWS["desk"])
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        told = page.evaluate(
            "(e => e === document.body ? null : e.tagName + ' ' + (e.hash || e.textContent))(document.activeElement)"
        )
        if told is None or told in seen:
            break
        seen.append(told)
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", told
    assert seen[0] == "A #main", "the first key press offers to skip to the content"
    assert {"A #failures", "A #memory", "A #e1", "A #e2"} <= set(seen)
    assert sum(told.startswith("SUMMARY") for told in seen) >= 4
    page.locator("a[href='#e1']").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("Math.abs(document.querySelector('#e1').getBoundingClientRect().top) < 100")
    assert page.url.endswith("#e1")


def test_what_failed_is_told_with_the_end_of_its_log_and_a_remedy(show: Callable[..., Any]) -> None:
    page = show(**VIEWS["desk"])
    broken = page.locator("#e1")
    assert "work, attempt 1: failed" in broken.inner_text()
    assert "It exited with 1." in broken.inner_text()
    assert "Nothing answered at the endpoint" in broken.locator(".remedy").inner_text()
    log = broken.locator("pre").inner_text().splitlines()
    assert log == [
        "broken <b>works</b>",
        "Traceback (most recent call last):",
        "ConnectionRefusedError: [Errno 111] refused",
    ]
    endless = page.locator("#e2").inner_text()
    assert "It ran past its timeout of 1 s." in endless
    assert "raise step_timeout_s: { work: ... }" in endless


def test_the_tables_can_be_taken_along(show: Callable[..., Any], real_night: Any, tmp_path: Path) -> None:
    page = show(**VIEWS["desk"])
    for name, form in (("CSV", "csv"), ("Markdown", "md")):
        with page.expect_download() as waiting:
            page.get_by_role("link", name=name, exact=True).click()
        waiting.value.save_as(tmp_path / form)
        assert waiting.value.suggested_filename.endswith(f".{form}")
        assert (tmp_path / form).read_text() == real_night.runq("report", "--runs", "runs", "--format", form).stdout


def test_it_can_be_printed(show: Callable[..., Any], tmp_path: Path) -> None:
    page = show(**VIEWS["dark"])
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.jump')).display") == "none"
    page.set_viewport_size({"width": 1030, "height": 700})  # A4 across, less its margins
    assert page.evaluate("document.documentElement.scrollWidth") == 1030
    assert page.locator("figure > svg.wide:visible").count() == 3
    assert page.pdf(path=tmp_path / "night.pdf", format="A4").startswith(b"%PDF")
