"""How one value of a table, view or query looks: links between rows, colours, units, folded JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from runq_journal.datasette import links
from runq_journal.datasette.about import json_columns
from runq_journal.datasette.words import badge, duration, megabytes, moment, pretty, unproven

_BADGES = {
    "status",
    "state",
    "verdict",
    "reset_verdict",
    "evict_verdict",
    "settle_status",
    "eval_status",
    "judge_status",
}
_YES_NO = {"baseline_proven", "loaded", "memory_back", "run"}
_PATHS = {"log", "bundle", "bundle_dir", "queue_path", "queue_dir"}
_HASHES = {"hash", "prev_hash", "identity", "queue_sha256"}
_ON_BASELINE = {"baseline_mb", "model_delta_mb", "ram_before_mb", "ram_delta_mb"}
_FOLDED_CHARS = 60


def cell(row: Mapping[str, Any], column: str, value: Any) -> Markup | None:
    """The HTML of a value; ``None`` where Datasette's own will do."""
    if value is None or value == "":
        return None
    link = _link(row, column, value)
    if link is not None:
        return Markup('<a href="{}">{}</a>').format(link, value)
    for columns, show in _SHOWN:
        if column in columns:
            return show(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if column == "mb" or column.endswith("_mb"):
            mark = unproven(dict(row).get("baseline_proven")) if column in _ON_BASELINE else ""
            return Markup('<span class="number" title="{} MB">{}</span>{}').format(value, megabytes(value), mark)
        if column == "seconds" or column.endswith(("_seconds", "_s")):
            return Markup('<span class="number" title="{} s">{}</span>').format(value, duration(value))
    if column == "at" or column.endswith("_at"):
        return moment(value) if isinstance(value, str) else None
    return folded(value) if column in json_columns() else None


def folded(value: object) -> Markup:
    """JSON: short as it is, long behind its beginning."""
    text = str(value)
    if len(text) <= _FOLDED_CHARS:
        return Markup("<code>{}</code>").format(text)
    start = text[:_FOLDED_CHARS] + "…"
    return Markup("<details><summary><code>{}</code></summary><pre>{}</pre></details>").format(start, pretty(text))


def _path(value: object) -> Markup:
    return Markup('<code class="copy">{}</code>').format(value)


def _hash(value: object) -> Markup:
    return Markup('<code class="hash" title="{0}">{0}</code>').format(value)


def _yes_no(value: object) -> Markup:
    return Markup('<span class="badge {}">{}</span>').format(*(("good", "yes") if value else ("odd", "no")))


def _log(value: object) -> Markup:
    return Markup('<pre class="log" tabindex="0">{}</pre>').format(value)


_SHOWN: tuple[tuple[set[str], Callable[[object], Markup]], ...] = (
    (_BADGES, badge),
    (_YES_NO, _yes_no),
    (_PATHS, _path),
    (_HASHES, _hash),
    ({"log_tail"}, _log),
)


def _link(row: Mapping[str, Any], column: str, value: Any) -> str | None:
    if column == "night":
        return links.night(value)
    if isinstance(value, int) and (column == "event" or column.endswith("_event")):
        return links.event(value)
    if column == "model_id":
        return links.rows("entry_result", model_id=value)
    known = set(row.keys())
    where = {name: row[name] for name in ("night", "entry", "step", "attempt") if name in known}
    if column == "entry" and "night" in where:
        return links.entry(where["night"], value)
    if column == "step" and {"night", "entry"} <= where.keys():
        return links.rows("event", night=where["night"], entry=where["entry"], step=value)
    if column == "attempt" and {"night", "entry", "step"} <= where.keys():
        return links.rows("event", **where)
    return None
