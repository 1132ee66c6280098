"""The command line, a journal, and the interpreter that has Inspect."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from ..commands.conftest import home, past, runq

MADE = Path(__file__).parents[2] / ".venv-harness" / "bin" / "python"

__all__ = ["home", "past", "runq"]


@pytest.fixture(scope="session")
def inspect_python(missing_session: Callable[[str], NoReturn]) -> str:
    """An interpreter that imports inspect_ai: ``$INSPECT_PYTHON``, tests/run.py's, this one, or that of `inspect`."""
    beside = shutil.which("inspect")
    places = [
        os.environ.get("INSPECT_PYTHON"),
        str(MADE),
        sys.executable,
        beside and str(Path(beside).with_name("python")),
    ]
    for place in filter(None, places):
        if not Path(place).is_file():
            continue
        ran = subprocess.run([place, "-c", "import inspect_ai"], capture_output=True, timeout=120)
        if ran.returncode == 0:
            return str(place)
    return missing_session(
        "inspect-ai is not installed (python3 tests/run.py installs it; or name an interpreter in INSPECT_PYTHON)"
    )
