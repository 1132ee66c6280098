"""Where a page links to; paths from the root."""

from __future__ import annotations

from urllib.parse import urlencode

from datasette.utils import tilde_encode


def night(night: object) -> str:
    """The page of a night or a check."""
    return f"/night/{tilde_encode(str(night))}"


def entry(night: object, number: object) -> str:
    """The page of an entry."""
    return f"/night/{tilde_encode(str(night))}/e{number}"


def log(night: object, number: object, step: object, attempt: object) -> str:
    """The page of an attempt's log."""
    return f"{_attempt(night, number, step, attempt)}/log"


def server_log(night: object, number: object, step: object, attempt: object) -> str:
    """The page of the log of the server that an attempt had."""
    return f"{_attempt(night, number, step, attempt)}/server"


def bundle(night: object, number: object, step: object, attempt: object, path: str = "") -> str:
    """The page of what an attempt wrote, or of one file of it."""
    within = "".join(f"/{tilde_encode(part)}" for part in path.split("/")) if path else ""
    return f"{_attempt(night, number, step, attempt)}/bundle{within}"


def search(**values: object) -> str:
    """The page of a search."""
    return "/search" + (f"?{urlencode(values)}" if values else "")


def _attempt(night: object, number: object, step: object, attempt: object) -> str:
    return f"{entry(night, number)}/{tilde_encode(str(step))}/{attempt}"


def event(number: object) -> str:
    """The row of an event."""
    return f"/journal/event/{number}"


def rows(table: str, **equal: object) -> str:
    """The rows of a table or view whose columns have these values; ``None`` does not restrict."""
    # __exact, because a column's name alone may begin with an underscore and mean something else.
    words = {f"{name}__exact": value for name, value in equal.items() if value is not None}
    return f"/journal/{table}" + (f"?{urlencode(words)}" if words else "")


def query(name: str, **values: object) -> str:
    """A query of the metadata with its parameters."""
    return f"/journal/{name}" + (f"?{urlencode(values)}" if values else "")


GLOBALS = {f"{f.__name__}_link": f for f in (night, entry, log, server_log, bundle, search, event, rows, query)}
"""What the templates call these."""
