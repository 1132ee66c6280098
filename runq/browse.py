"""The journal in Datasette, as a process of its own: importing Datasette costs most of a second."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def datasette_argv(journal: Path, *, port: int, open_browser: bool = False) -> list[str]:
    """Datasette's command line: the journal by its plain path (``-i`` would ignore the WAL of a running night)."""
    from runq_journal import metadata_path

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
        "--setting",
        "allow_download",
        "off",
        *(["--open"] if open_browser else []),
    ]


def serve(argv: Sequence[str]) -> int:
    """Run until it ends or Ctrl-C. Returns the exit code; a Ctrl-C is the ordinary end and counts as 0."""
    with subprocess.Popen(argv) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            return 0
