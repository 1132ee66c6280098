"""Reads an endpoint's URL out of a harness's configuration, which is the harness's own and may hold anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SIZE_LIMIT_BYTES = 2**20
"""A configuration is far smaller; something else is not read."""


def read_yaml(path: Path) -> Mapping[str, Any]:
    """The mapping in a YAML file; empty when it cannot be read or is none. Never raises for its content."""
    from strictyaml.ruamel import safe_load  # type: ignore[attr-defined, unused-ignore]

    try:
        if path.stat().st_size > SIZE_LIMIT_BYTES:
            return {}
        data = safe_load(path.read_text(encoding="utf-8"))
    except Exception:  # the reader raises many kinds, AttributeError for a NUL byte among them
        return {}
    return data if isinstance(data, dict) else {}


def base_urls(paths: Iterable[Path | None]) -> tuple[str, ...]:
    """``endpoint.base_url`` of each configuration, without repeats; files that name none are left out."""
    found: dict[str, None] = {}
    for path in paths:
        endpoint = read_yaml(path).get("endpoint") if path is not None else None
        url = endpoint.get("base_url") if isinstance(endpoint, dict) else None
        if isinstance(url, str) and url.strip():
            found[url.strip()] = None
    return tuple(found)
