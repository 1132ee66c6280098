"""A filter for an exact value finds numbers in views too: without it a click on a counted number showed no row.

Datasette binds every value as text. A table's column turns it into the column's type; a view's column that is worked
out has none, and 3 is not '3' (https://sqlite.org/datatype3.html#affinity_of_expressions).
"""

from __future__ import annotations

import re
from typing import Any

from datasette.filters import Filters

_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?(e[+-]?[0-9]{1,2})?")

_exact = Filters._filters_by_key["exact"]
_plain = _exact.where_clause


def where_clause(table: str, column: str, value: str, param_counter: int) -> tuple[str, Any]:
    """The condition, for the text and for the number that it may stand for."""
    sql, param = _plain(table, column, value, param_counter)
    if not _NUMBER.fullmatch(value):
        return sql, param
    left, _, right = sql.rpartition(" = ")
    return f"{left} IN ({right}, {value})", param


_exact.where_clause = where_clause
