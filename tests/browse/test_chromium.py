"""The pages in a real browser: they are laid out, on a desk and on a phone, and nothing of them is refused."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from .conftest import Browse, Page

pytestmark = [pytest.mark.slow]

NIGHT = "2026-09-02_223000"

PAGES = {
    "front": ("/", ["runq journal", "Last night", "What is left", "Failures", "Durations per model", "Nights"]),
    "night": (f"/night/{NIGHT}", [f"Night {NIGHT} finished", "Entries", "Baselines", "Memory", "What happened"]),
    "failure": (f"/night/{NIGHT}/e1", ["e1 broken-1b failed", "Attempts", "eval, attempt 1 failed"]),
    "rows": ("/journal/attempt", ["Attempts"]),
}

WIDTHS = {"desk": 1280, "phone": 500}  # headless Chromium has no window narrower than 500


@pytest.fixture(scope="module")
def chromium() -> Path | None:
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next((Path(path) for path in found if path), None)


@pytest.mark.parametrize("width", list(WIDTHS))
@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_is_shown(
    golden: Browse,
    chromium: Path | None,
    missing: Callable[[str], NoReturn],
    tmp_path: Path,
    name: str,
    width: str,
) -> None:
    if chromium is None:
        missing("Chromium is not installed")
    path, headings = PAGES[name]
    picture = tmp_path / f"{name}-{width}.png"
    shot = run(chromium, tmp_path, f"--screenshot={picture}", f"--window-size={WIDTHS[width]},2000", golden.url, path)
    assert "Refused to" not in shot.stderr, shot.stderr  # what the content security policy stops is a mistake of ours
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (WIDTHS[width], 2000)
    assert picture.stat().st_size > 10_000, "an empty page is smaller"

    page = Page(run(chromium, tmp_path, "--dump-dom", golden.url, path).stdout)
    assert set(headings) <= set(page.headings)
    assert page.headings[0] == headings[0]
    assert "script" not in page.tags


def run(chromium: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    *options, url, path = words
    profile = folder / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    done = subprocess.run(
        [
            str(chromium),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={profile}",
            *options,
            url.rstrip("/") + path,
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done
