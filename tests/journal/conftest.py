"""Journals to test with: golden nights, nights told event by event, and ways to damage them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from runq_journal import JournalReader
from runq_journal.schema import GUARDS

HERE = Path(__file__).parent


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"journal_{name}", HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_golden = _load("make_golden")


@pytest.fixture(scope="session")
def golden() -> ModuleType:
    """The script that told the golden nights."""
    return _golden


@pytest.fixture
def golden_db(tmp_path: Path) -> Path:
    """A copy of the checked-in journal: reading one makes files beside it."""
    path = tmp_path / "golden" / "journal.db"
    path.parent.mkdir()
    shutil.copy(HERE / "golden-v1.db", path)
    return path


class Story:
    """One night, told as it goes, and read after each word."""

    night = "2026-10-01_220000"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = _golden.Clock(datetime(2026, 10, 1, 20, 0, 0, tzinfo=UTC))
        self.scribe = _golden.Scribe(path, self.night, self.clock)
        self.planned = _golden.planned

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scribe, name)

    def entry(self, index: int = 0) -> dict[str, Any]:
        with JournalReader.open(self.path) as reader:
            return reader.entry_results(self.night)[index]

    def todo(self) -> list[tuple[int, str | None, str]]:
        with JournalReader.open(self.path) as reader:
            return [(row["entry"], row["step"], row["reason"]) for row in reader.todo(self.night)]

    def view(self, name: str) -> list[dict[str, Any]]:
        with JournalReader.open(self.path) as reader:
            return reader.view(name, self.night)


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    told = Story(tmp_path / "journal.db")
    yield told
    told.close()


@pytest.fixture
def tamper() -> Callable[..., None]:
    """Change a journal behind its back: without its guards, which stand again afterwards."""

    def change(path: Path, *statements: tuple[str, tuple[Any, ...]] | str) -> None:
        conn = sqlite3.connect(path)
        with conn:
            for name in GUARDS:
                conn.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                conn.execute(*((statement,) if isinstance(statement, str) else statement))
            for sql in GUARDS.values():
                conn.execute(sql)
        conn.close()

    return change


@pytest.fixture
def small_disk(tmp_path: Path, missing: Callable[[str], NoReturn]) -> Iterator[Path]:
    """A file system of 1 MiB."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        missing("mounting a small file system needs Linux and root")
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """Makes a folder read-only, for root too."""
    undo: list[Callable[[], object]] = []

    def make(folder: Path) -> None:
        if os.geteuid() == 0 and sys.platform.startswith("linux"):
            subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
            undo.append(lambda: subprocess.run(["umount", "--lazy", str(folder)], check=True))
            subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        else:
            files = list(folder.iterdir())
            for path in (*files, folder):
                path.chmod(0o500 if path.is_dir() else 0o400)
            undo.append(lambda: folder.chmod(0o700))

    yield make
    for step in undo:
        step()
