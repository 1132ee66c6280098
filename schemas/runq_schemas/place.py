"""Places in a queue file, and the words for them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class Mark:
    """A place in the queue file; both count from 1."""

    line: int
    column: int


DocumentPath = tuple[str | int, ...]
"""A place in the document by keys and positions, for example ``("entries", 2, "settle", "timeout_s")``."""


def nearest_mark(marks: Mapping[DocumentPath, Mark], path: DocumentPath) -> Mark:
    """The mark of a value, or of the nearest thing around it that the file has."""
    for end in range(len(path), -1, -1):
        if path[:end] in marks:
            return marks[path[:end]]
    return Mark(line=1, column=1)


def place(file: str, path: DocumentPath, mark: Mark) -> str:
    """A place as every message names it: ``queue.yaml, entry 2, line 14, column 7``. Entries count from 0."""
    parts = [file]
    if path[:1] == ("entries",) and len(path) > 1:
        parts.append(f"entry {path[1]}")
    elif path[:1] in (("defaults",), ("matrix",)):
        parts.append(str(path[0]))
    return ", ".join([*parts, f"line {mark.line}", f"column {mark.column}"])
