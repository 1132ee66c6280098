"""Logs and bundles, as far as they lie in the runs folder: nothing else of the machine is ever shown.

A journal names them by absolute paths, and may have been moved together with its folder, or come from another machine.
So a path counts only by its place below the runs folder that its plan names, looked up in the folder that the journal
is in.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import attrs

MOST_BYTES = 256 * 1024
"""Of a file so many bytes are shown, a log's from its end: more than anybody reads on a page."""

MOST_FILES = 1000
"""So many files of a bundle are listed."""


@attrs.frozen(kw_only=True)
class Listed:
    """A file of a bundle: its path within it, and its size in bytes."""

    path: str
    size: int


@attrs.frozen(kw_only=True)
class Shown:
    """What is shown of a file.

    Args:
        text: of it, as it stands, escapes and all.
        size: of the file in bytes.
        left_out: how many of them are not shown: at the beginning of a log, at the end of any other file.
    """

    text: str
    size: int
    left_out: int


def place(recorded: str | None, plan: Mapping[str, Any], runs: Path) -> Path | None:
    """Where a recorded path lies below the runs folder now; ``None`` where it lies elsewhere, or is gone.

    Args:
        recorded: an absolute path of the journal.
        plan: the night's, whose ``runs_dir`` the path stood below.
        runs: the folder that the journal lies in.
    """
    if not recorded:
        return None
    try:
        within = PurePath(recorded).relative_to(PurePath(str(plan.get("runs_dir") or "")))
    except ValueError:
        return None
    return inside(runs, within)


def inside(folder: Path, within: PurePath | str) -> Path | None:
    """A path below a folder, when it is there and no link leads out; ``None`` otherwise."""
    try:
        found = (folder / within).resolve(strict=True)
        return found if found.is_relative_to(folder.resolve(strict=True)) else None
    except (OSError, ValueError, RuntimeError):  # gone, a NUL in it, a loop of links
        return None


def shown(path: Path, *, end: bool) -> Shown:
    """A file's text.

    Args:
        end: whether its end matters, as of a log; else its beginning.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(0, size - MOST_BYTES) if end else 0)
        data = stream.read(MOST_BYTES)
    return Shown(text=data.decode("utf-8", errors="replace"), size=size, left_out=max(0, size - len(data)))


def listed(bundle: Path) -> list[Listed]:
    """The files of a bundle by their paths; links are not followed."""
    return sorted(_files(bundle), key=lambda one: one.path)[:MOST_FILES]


def _files(bundle: Path) -> Iterator[Listed]:
    for folder, _, names in os.walk(bundle):
        for name in names:
            path = Path(folder) / name
            if path.is_file() and not path.is_symlink():
                yield Listed(path=path.relative_to(bundle).as_posix(), size=path.stat().st_size)
