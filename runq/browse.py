"""The journal in Datasette, which takes this process's place: importing it beside runq would cost its memory twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def datasette_argv(journal: Path, *, port: int, open_browser: bool = False) -> list[str]:
    """Datasette's command line: the journal by its plain path (``-i`` would ignore the WAL of a running night)."""
    from runq_journal.datasette import metadata_path, plugins_path

    return [
        sys.executable,
        "-m",
        "datasette",
        "serve",
        str(journal),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--metadata",
        str(metadata_path()),
        "--plugins-dir",
        str(plugins_path()),
        "--setting",
        "allow_download",
        "off",
        *(["--open"] if open_browser else []),
    ]


def serve(argv: Sequence[str]) -> int:
    """Become Datasette, so that every signal reaches it and nothing of runq can outlive it or be outlived.

    Returns only on Windows, whose `exec` would give the prompt back while the server runs: there the exit code.
    """
    if sys.platform == "win32":
        return subprocess.run(argv, check=False).returncode
    return os.execv(argv[0], list(argv))  # noqa: S606 - no shell is the point
