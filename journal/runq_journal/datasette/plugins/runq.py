"""Datasette's hooks: each hands over to a module of `runq_journal.datasette`."""

from __future__ import annotations

from typing import Any

from datasette import hookimpl

from runq_journal.datasette import about, cells, links, routes, words
from runq_journal.datasette.guard import App, guarded
from runq_journal.datasette.serving import quieten
from runq_journal.datasette.starter import started_by_runq, to_open
from runq_journal.view_files import create_temporary


def get_metadata() -> dict[str, Any]:
    """What the views mean; ``--metadata`` comes after it and wins."""
    return about.metadata()


def prepare_connection(conn: Any, database: str) -> None:
    """Show this version's views, whatever version wrote the file; and never write, whatever else is installed."""
    if database == about.DATABASE:
        create_temporary(conn)
        conn.execute("PRAGMA query_only = ON")


def prepare_jinja2_environment(env: Any) -> None:
    """The words and links of the templates."""
    env.filters.update(words.FILTERS)
    env.globals.update(links.GLOBALS, json_columns=about.json_columns())


def render_cell(row: Any, value: Any, column: str, database: str) -> Any:
    """One value of a row."""
    return cells.cell(row, column, value) if database == about.DATABASE else None


def register_routes() -> list[Any]:
    """The pages of a night and an entry."""
    return list(routes.ROUTES)


def extra_template_vars(view_name: str, datasette: Any) -> Any:
    """The front page's values."""
    return routes.front(datasette) if view_name == "index" else {}


def asgi_wrapper(datasette: Any) -> Any:
    """Guard the application; and say where it is, when `runq browse` serves it."""
    if started_by_runq(datasette.version_note):
        journal = str(datasette.databases[about.DATABASE].path)
        quieten(journal, open_browser=to_open(datasette.version_note))

    def wrap(app: App) -> App:
        return guarded(app)

    return wrap


for _hook in (
    get_metadata,
    prepare_connection,
    prepare_jinja2_environment,
    render_cell,
    register_routes,
    extra_template_vars,
    asgi_wrapper,
):
    hookimpl(_hook)
