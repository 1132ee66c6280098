"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

import pytest


@pytest.fixture
def missing() -> Callable[[str], NoReturn]:
    """Called when something real that a test needs is not here: skips at home, fails in CI, where it must be."""

    def tell(what: str) -> NoReturn:
        if os.environ.get("CI"):
            pytest.fail(f"{what}, and in CI it must be there")
        pytest.skip(what)

    return tell
