"""Reads an endpoint's URL out of a harness's configuration, which is the harness's own and may hold anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from runq.plugin import Entry, ModelSpec

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


@attrs.frozen(kw_only=True)
class Endpoint:
    """The ``endpoint`` of a configuration."""

    base_url: str
    api_key: str | None = attrs.field(default=None, repr=False)


def read_endpoint(path: Path | None) -> Endpoint | None:
    """The endpoint that a configuration names; ``None`` when it names none or cannot be read.

    The key is ``api_key``, else the content of ``api_key_file``, relative to the configuration's folder.
    """
    found = read_yaml(path).get("endpoint") if path is not None else None
    if path is None or not isinstance(found, dict):
        return None
    url, key, key_file = found.get("base_url"), found.get("api_key"), found.get("api_key_file")
    if not isinstance(url, str) or not url.strip():
        return None
    if not isinstance(key, str) and isinstance(key_file, str) and key_file:
        try:
            key = (path.parent / Path(key_file).expanduser()).read_text(encoding="utf-8").strip()
        except (OSError, ValueError):  # the harness will say so when it needs the key
            key = None
    return Endpoint(base_url=url.strip(), api_key=key if isinstance(key, str) and key else None)


def judge_of(entry: Entry) -> ModelSpec | None:
    """The judge's model: the entry's, else the judge configuration's ``model``."""
    if entry.judge_model is not None:
        return ModelSpec(id=entry.judge_model)
    if entry.judge_config is None:
        return None
    written = read_yaml(entry.judge_config).get("model")
    name = written.get("id") if isinstance(written, dict) else written
    return ModelSpec(id=name) if isinstance(name, str) and name else None
