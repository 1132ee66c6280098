"""The pages that Datasette has not: a night, an entry, its logs and bundles, a search; and the front page's values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from datasette.utils import tilde_decode
from datasette.utils.asgi import NotFound, Response

from runq_journal.datasette.about import DATABASE
from runq_journal.datasette.pages import Pages, in_one_go
from runq_journal.datasette.search import Index
from runq_journal.datasette.starter import starter
from runq_journal.view_rows import Row


async def ask(datasette: Any, question: Callable[[Pages], Row | None]) -> Row | None:
    """Ask the journal in one of Datasette's threads."""
    database = datasette.databases[DATABASE]
    told_by = starter(datasette.version_note)

    def answer(conn: Any) -> Row | None:
        return in_one_go(conn, lambda: question(Pages(conn, Path(database.path), told_by)))

    found: Row | None = await database.execute_fn(answer)
    return found


async def front(datasette: Any) -> Row:
    """The front page's values, and the queries and tables it leads to."""
    database = datasette.databases[DATABASE]
    about = datasette.metadata()["databases"][DATABASE]
    present = {*await database.table_names(), *await database.view_names()}
    return {
        **(await ask(datasette, Pages.front) or {}),
        "queries": about["queries"],
        "dashboards": datasette.plugin_config("datasette-dashboards"),
        "tables": {
            name: table for name, table in sorted(about["tables"].items()) if name in present and "hidden" not in table
        },
        "journal": database.path,
    }


async def night(request: Any, datasette: Any) -> Any:
    """``/night/NIGHT``."""
    name = tilde_decode(request.url_vars["night"])
    found = await ask(datasette, lambda pages: pages.night(name))
    return await _page(datasette, request, "night.html", found, f"There is no night {name!r}")


async def entry(request: Any, datasette: Any) -> Any:
    """``/night/NIGHT/eENTRY``."""
    name, number = tilde_decode(request.url_vars["night"]), int(request.url_vars["entry"])
    found = await ask(datasette, lambda pages: pages.entry(name, number))
    return await _page(datasette, request, "entry.html", found, f"There is no entry e{number} of night {name!r}")


async def log(request: Any, datasette: Any) -> Any:
    """``/night/NIGHT/eENTRY/STEP/ATTEMPT/log`` and ``.../server``."""
    where, server = _attempt(request), request.url_vars["what"] == "server"
    found = await ask(datasette, lambda pages: pages.log(*where, server=server))
    return await _page(datasette, request, "file.html", found, _NOT_SHOWN)


async def bundle(request: Any, datasette: Any) -> Any:
    """``/night/NIGHT/eENTRY/STEP/ATTEMPT/bundle`` and, below it, its files."""
    where = _attempt(request)
    within = "/".join(tilde_decode(part) for part in (request.url_vars["within"] or "").split("/"))
    found = await ask(datasette, lambda pages: pages.bundle(*where, within))
    return await _page(datasette, request, "file.html" if within else "bundle.html", found, _NOT_SHOWN)


async def search(request: Any, datasette: Any) -> Any:
    """``/search`` and ``/search.json``."""
    text, night, before = request.args.get("q") or "", request.args.get("night") or "", request.args.get("before") or ""
    index = _index(datasette.databases[DATABASE].path)
    number = int(before) if before.isdecimal() else 0
    found = await ask(datasette, lambda pages: pages.search(index, text, night, number))
    if request.path.endswith(".json"):
        return Response.json(found)
    return await _page(datasette, request, "search.html", found, "")


_NOT_SHOWN = "It is not in the runs folder: it was moved or pruned, or never written"

_ENTRY = r"^/night/(?P<night>[^/]+)/e(?P<entry>[0-9]{1,18})"
_ATTEMPT = _ENTRY + r"/(?P<step>[^/]+)/(?P<attempt>[0-9]{1,18})"

ROUTES = (
    (r"^/night/(?P<night>[^/]+)$", night),
    # At most as many digits as a SQLite integer surely holds.
    (_ENTRY + "$", entry),
    (_ATTEMPT + "/(?P<what>log|server)$", log),
    (_ATTEMPT + "/bundle(?:/(?P<within>.+))?$", bundle),
    (r"^/search(?:\.json)?$", search),
)
"""Where the pages are."""


@cache
def _index(_path: str) -> Index:
    """One for a journal, as long as this process shows it."""
    return Index()


def _attempt(request: Any) -> tuple[str, int, str, int]:
    found = request.url_vars
    return tilde_decode(found["night"]), int(found["entry"]), tilde_decode(found["step"]), int(found["attempt"])


async def _page(datasette: Any, request: Any, template: str, found: Row | None, missing: str) -> Any:
    if found is None:
        raise NotFound(missing)
    return Response.html(await datasette.render_template(template, found, request=request))
