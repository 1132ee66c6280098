"""What the views mean, for Datasette's metadata: read off their files, so that a new view needs nothing else."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any

from datasette.utils import parse_metadata

from runq_journal.datasette import dashboards_path, metadata_path
from runq_journal.view_files import View, views

DATABASE = "journal"
"""The database's name: the stem of ``journal.db``."""

_NEWEST_BY = ("event", "last_event", "started_event", "word_event", "plan_event", "started_at", "night")
"""The first of these columns that a view has puts its newest row first."""

_FACETS = ("kind", "state", "status", "verdict", "model_id")

_JSON = "(JSON)"
"""What the description of a column says that holds JSON."""


def metadata() -> dict[str, Any]:
    """Metadata of every view, and all of the file; a copy each time, because Datasette writes into it."""
    return deepcopy(_metadata())


@cache  # Datasette asks dozens of times for a page
def _metadata() -> dict[str, Any]:
    told: dict[str, Any] = parse_metadata(metadata_path().read_text(encoding="utf-8"))
    told["plugins"] = {"datasette-dashboards": parse_metadata(dashboards_path().read_text(encoding="utf-8"))}
    tables = told["databases"][DATABASE]["tables"]
    for view in views():
        tables[view.name] = {**_derived(view), **tables.get(view.name, {})}
    return told


@cache
def query(name: str) -> str:
    """The SQL of a query of the metadata."""
    return str(metadata()["databases"][DATABASE]["queries"][name]["sql"])


@cache
def json_columns() -> frozenset[str]:
    """The columns of any table or view that hold JSON."""
    tables = metadata()["databases"][DATABASE]["tables"].values()
    return frozenset(name for table in tables for name, text in table.get("columns", {}).items() if _JSON in text)


def _derived(view: View) -> dict[str, Any]:
    newest = next((column for column in _NEWEST_BY if column in view.columns), None)
    words = view.name.replace("_", " ")
    return {
        "title": words[:1].upper() + words[1:] + "s",
        "description": view.about,
        "columns": dict(view.columns),
        "facets": [column for column in _FACETS if column in view.columns],
        **({"sort_desc": newest} if newest else {}),
    }
