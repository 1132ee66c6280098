"""Which Python a harness runs with."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def find_python(written: str | None, base_dir: Path) -> str:
    """The interpreter to start.

    Args:
        written: the `python` option: a name for the PATH, or a path, relative to ``base_dir``.
        base_dir: the queue's folder.

    Returns:
        An absolute path where one was found. Without the option: the PATH's `python`, else its `python3`, else
        the interpreter of runq itself. touchstone's queue calls `python`; some systems have only `python3`.
    """
    if written is None:
        return shutil.which("python") or shutil.which("python3") or sys.executable
    if "/" in written:
        # Not resolved: a virtual environment's python is a link, and its place makes it that environment's.
        return str(base_dir / Path(written).expanduser())
    return shutil.which(written) or written
