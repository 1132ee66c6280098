from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def bench_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench` is no installed package: it is run from the repository's top folder."""
    if str(REPO) not in sys.path:
        monkeypatch.syspath_prepend(str(REPO))
