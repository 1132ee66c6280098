"""The `endpoint` option of harnesses that talk to a server themselves: where it is, and where its key is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs

from runq.plugin import Entry, PluginError
from runq_plugins.harness.endpoint import read_endpoint
from runq_plugins.options import http_url


def _one_key(instance: Any, attribute: attrs.Attribute[Any], value: str | None) -> None:
    if value is not None and instance.api_key_env is not None:
        raise ValueError("api_key_file and api_key_env: give one of them")


@attrs.frozen(kw_only=True)
class ServerEndpoint:
    """A server with an OpenAI-compatible API."""

    base_url: str = attrs.field(
        validator=http_url, metadata={"description": "Its URL with the version, such as `http://127.0.0.1:8080/v1`."}
    )
    engine: str = attrs.field(default="", metadata={"description": "What it is, such as `llamacpp`; only for readers."})
    api_key_env: str | None = attrs.field(
        default=None, metadata={"description": "The environment variable with its key. A key is never written here."}
    )
    api_key_file: str | None = attrs.field(
        default=None,
        validator=_one_key,
        metadata={"description": "A file with its key, relative to the queue's folder."},
    )


@attrs.frozen(kw_only=True)
class Place:
    """A server as a step is told of it: its URL, and where the key is, as `driver_key` reads it."""

    base_url: str
    key: str = ""
    api_key: str | None = attrs.field(default=None, repr=False)


def place(option: ServerEndpoint | None, config: Path | None, entry: Entry) -> Place | None:
    """The server of the option, else of a touchstone configuration; ``None`` when neither names one."""
    if option is not None:
        if option.api_key_env:
            return Place(
                base_url=option.base_url,
                key=f"env:{option.api_key_env}",
                api_key=os.environ.get(option.api_key_env) or None,
            )
        if option.api_key_file:
            file = entry.base_dir / Path(option.api_key_file).expanduser()
            try:
                key = file.read_text(encoding="utf-8").strip()
            except (OSError, ValueError):  # the step says so when it needs the key
                key = ""
            return Place(base_url=option.base_url, key=f"file:{file}", api_key=key or None)
        return Place(base_url=option.base_url)
    found = read_endpoint(config)
    if found is None:
        return None
    return Place(base_url=found.base_url, key=f"config:{config}" if found.api_key else "", api_key=found.api_key)


def needed_place(option: ServerEndpoint | None, config: Path | None, entry: Entry) -> Place:
    """The same, where a step cannot do without.

    Raises:
        PluginError: neither names a server.
    """
    found = place(option, config, entry)
    if found is None:
        raise PluginError(
            "neither the harness nor the entry's config names an endpoint",
            remedy="add `endpoint: { base_url: http://127.0.0.1:8080/v1 }` to the harness",
        )
    return found
