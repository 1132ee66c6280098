"""What only the program that started Datasette can tell of a night: whether it runs, and how to go on with it.

A journal cannot know whether a runner is alive, and this package knows no command line. So `runq browse` names a module
in Datasette's ``--version-note``, and that module is asked. A plain Datasette names none.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from runq_journal.reader import JournalReader

NOTE = "started by "
"""What a version note begins with that names a module."""

OPENED = " --open"
"""What it ends with when the browser is to show the front page."""


class Starter(Protocol):
    """The module's part."""

    def states(self, journal: Path, reader: JournalReader, recorded: Mapping[str, str]) -> dict[str, str]:
        """The state of each night, with ``died`` for one that is recorded as running and has no runner."""

    def resume(self, plan: Mapping[str, Any], night: str, journal: Path) -> str:
        """The command that goes on with a night."""

    def clean(self, text: str) -> str:
        """The text of a log as it stood on a terminal in the end: no escapes, no control characters."""


class _Nobody:
    def states(self, journal: Path, reader: JournalReader, recorded: Mapping[str, str]) -> dict[str, str]:
        return dict(recorded)

    def resume(self, plan: Mapping[str, Any], night: str, journal: Path) -> str:
        return ""

    def clean(self, text: str) -> str:
        return "".join(char for char in text if char.isprintable() or char in "\n\t")


def starter(version_note: str | None) -> Starter:
    """The module that a version note names, or one that knows nothing."""
    if not started_by_runq(version_note):
        return _Nobody()
    name = str(version_note).removeprefix(NOTE).removesuffix(OPENED)
    return cast(Starter, importlib.import_module(name))


def started_by_runq(version_note: str | None) -> bool:
    """Whether a version note names a module."""
    return version_note is not None and version_note.startswith(NOTE)


def to_open(version_note: str | None) -> bool:
    """Whether the browser is to show the front page."""
    return started_by_runq(version_note) and str(version_note).endswith(OPENED)
