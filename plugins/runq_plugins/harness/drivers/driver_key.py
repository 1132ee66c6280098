"""What the drivers share: where a key is read, never from a command line, and which words are not a driver's own."""

from __future__ import annotations

import os
from pathlib import Path

NO_KEY = "not-needed"
"""What servers of this machine are sent, which want something and look at nothing."""


def read_key(source: str) -> str:
    """The key of ``env:NAME``, ``file:PATH`` or ``config:PATH`` (touchstone's configuration); without a source, none.

    Raises:
        SystemExit: it is not there; the message says what to do.
    """
    kind, _, where = source.partition(":")
    if kind == "env":
        key = os.environ.get(where, "")
        if not key:
            raise SystemExit(f"the environment variable {where} holds no key: set it before runq starts")
        return key
    if kind == "file":
        return _content(Path(where))
    if kind == "config":
        import yaml

        endpoint = yaml.safe_load(Path(where).read_text(encoding="utf-8")).get("endpoint") or {}
        if isinstance(endpoint.get("api_key"), str) and endpoint["api_key"]:
            return str(endpoint["api_key"])
        if endpoint.get("api_key_file"):
            return _content(Path(where).parent / Path(str(endpoint["api_key_file"])).expanduser())
    return NO_KEY


def split(words: list[str]) -> tuple[list[str], list[str]]:
    """A driver's own words, and those after ``--``, which are the harness's."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def _content(path: Path) -> str:
    try:
        key = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SystemExit(f"the key file {path} cannot be read: {error.strerror}") from error
    if not key:
        raise SystemExit(f"the key file {path} is empty")
    return key
