"""A night of 200 entries and half a million readings: its page stays small and loses no peak."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runq.report.gathered import gather
from runq.report.page import to_html

REPO = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_page_of_a_long_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if str(REPO) not in sys.path:
        monkeypatch.syspath_prepend(str(REPO))
    from bench import long_night

    runs = tmp_path / "runs"
    runs.mkdir()
    found = gather(long_night.write(runs / "journal.db", entries=200, samples=500_000), None)
    assert len(found.curve) < 4000
    peaks: dict[tuple[int, str], float] = {}
    for sample in found.curve:
        key = (sample.entry, sample.step)
        peaks[key] = max(sample.mb, peaks.get(key, 0.0))
    assert peaks == {(row["entry"], row["step"]): row["peak_mb"] for row in found.deltas}
    # Each tenth fails and each 25th times out, so 24 of 200 have no judge; each 20th begins on a dirty baseline.
    assert len(peaks) == 376
    html = to_html(found)
    assert 1_000_000 < len(html.encode()) < 5 * 2**20
    assert "176 of 200 entries complete, 24 failed (8 of them by timeout)" in html
    assert html.count('<article class="failed"') == 24
