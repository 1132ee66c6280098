"""What Datasette is told about a journal."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def metadata_path() -> Path:
    """The file for Datasette's ``--metadata``: titles, descriptions, units and queries."""
    return Path(str(files("runq_journal") / "datasette" / "metadata.yaml"))


def plugins_path() -> Path:
    """The folder for Datasette's ``--plugins-dir``."""
    return Path(str(files("runq_journal") / "datasette" / "plugins"))
