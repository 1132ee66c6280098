"""What Datasette is told about a journal, and the pages it shows of it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def metadata_path() -> Path:
    """The file for Datasette's ``--metadata``: titles, the tables' columns and the queries.

    What the views and their columns mean is added by the plugin, from the views' own files.
    """
    return _own("metadata.yaml")


def dashboards_path() -> Path:
    """What the plugin `datasette-dashboards` draws: dashboards, their charts and queries."""
    return _own("dashboards.yaml")


def plugins_path() -> Path:
    """The folder for Datasette's ``--plugins-dir``."""
    return _own("plugins")


def templates_path() -> Path:
    """The folder for Datasette's ``--template-dir``."""
    return _own("templates")


def static_path() -> Path:
    """The folder that Datasette's ``--static`` mounts as ``runq``: the style sheet."""
    return _own("static")


def _own(name: str) -> Path:
    return Path(str(files("runq_journal") / "datasette" / name))
