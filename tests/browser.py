"""A real browser for tests, driven by Playwright: on a desk, on a phone, in the dark; and axe, looking for barriers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

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
"""Options without which Chromium asks its maker's servers, or does not start as root in a container."""


@pytest.fixture(scope="module")
def browser(missing_session: Callable[[str], NoReturn]) -> Iterator[Any]:
    """Chromium, started once for a module."""
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


@contextmanager
def page_of(browser: Any, url: str, **view: Any) -> Iterator[Any]:
    """A page, with what it asked for (``asked``: URLs) and complained of (``said``).

    Args:
        url: the page.
        view: of `VIEWS`, and what else Playwright's ``new_context`` takes; ``bypass_csp`` for axe, which is put into
            the page and would be refused by its policy.
    """
    context = browser.new_context(**view)
    try:
        page = context.new_page()
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.goto(url)
        yield page
    finally:
        context.close()


def barriers(page: Any) -> list[tuple[str, str, list[str]]]:
    """What axe finds: the rule, how serious, and where."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response
    assert len(found["passes"]) > 10, "axe looked at the page"
    return [(one["id"], one["impact"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]
