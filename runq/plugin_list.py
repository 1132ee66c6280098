"""The installed plugins as data and as text."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from runq.discovery import Loaded, load, offers
from runq.logs import one_line


def plugin_rows() -> list[dict[str, Any]]:
    """Every plugin on offer with what it is, its options, and its error when it is broken or offered twice."""
    available = offers()
    names = Counter((offer.kind, offer.name) for offer in available)
    return [_row(load(offer), twice=names[offer.kind, offer.name] > 1) for offer in available]


def _row(loaded: Loaded, *, twice: bool) -> dict[str, Any]:
    offer = loaded.offer
    error = f"broken: {one_line(loaded.error)}" if loaded.error else ""
    if twice and not error:
        error = "offered by more than one distribution; a queue that uses it is refused"
    return {
        "kind": offer.kind,
        "name": offer.name,
        "distribution": offer.distribution,
        "version": offer.version,
        "about": _first_line(loaded.cls),
        "options": [] if loaded.cls is None else _options(loaded.cls),
        "error": error,
    }


def _first_line(cls: type[Any] | None) -> str:
    text = inspect.getdoc(cls) if cls is not None else None
    return one_line(text.strip().splitlines()[0]).replace("``", "`") if text and text.strip() else ""


def _options(cls: type[Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": field.alias,
            "required": field.default is attrs.NOTHING,
            "default": _default(field),
            "about": one_line(str(field.metadata.get("description", ""))),
        }
        for field in attrs.fields(cls)
        if field.init
    ]


def _default(field: attrs.Attribute[Any]) -> Any:
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return None
    if field.default is attrs.NOTHING or not isinstance(field.default, str | int | float | bool):
        return None
    return field.default


def plugin_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The plugins for people."""
    lines: list[str] = []
    kind = ""
    for row in rows:
        if row["kind"] != kind:
            kind = row["kind"]
            lines += [*([""] if lines else []), kind]
        lines.append(f"  {row['name']:<12} {row['about'] or row['error']}  [{row['distribution']} {row['version']}]")
        if row["error"] and row["about"]:
            lines.append(f"      {row['error']}")
        for option in row["options"]:
            default = " (required)" if option["required"] else f" [{option['default']}]" if option["default"] else ""
            lines.append(f"      {option['name']}{default}: {option['about']}")
    return "\n".join(lines)
