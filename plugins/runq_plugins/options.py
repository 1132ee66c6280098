"""Validators of plugin options: what is wrong, in plain words, as `ValueError`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import attrs

_PLAIN_URL = re.compile(r"https?://[a-z0-9]+(?:[.-][a-z0-9]+)*(?::[1-9][0-9]{0,3})?(?:/[a-z0-9]+)*/?")
"""Most URLs. No more is to be known of them, and to import urllib3 takes a tenth of a plan's start."""


def positive(_: Any, attribute: attrs.Attribute[Any], value: float) -> None:
    """A duration or interval: a finite number above 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{attribute.name} must be a number above 0, not {value!r}")


def port_number(_: Any, attribute: attrs.Attribute[Any], value: int) -> None:
    """A TCP port: 1 to 65535."""
    if not 0 < value < 65536:
        raise ValueError(f"{attribute.name} must be a port from 1 to 65535, not {value!r}")


def http_url(_: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    """An http or https URL with a host."""
    problem = url_problem(value)
    if problem:
        raise ValueError(f"{attribute.name}: {problem}")


def url_problem(url: str) -> str:
    """Why a text is no http or https URL, or nothing."""
    if _PLAIN_URL.fullmatch(url):
        return ""
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url

    try:
        parts = parse_url(url)
    except LocationParseError:
        return f"{url!r} is not a URL"
    if parts.scheme not in ("http", "https") or not parts.host:
        return f"{url!r} must begin with http:// or https:// and name a host"
    return ""


def not_empty(_: Any, attribute: attrs.Attribute[Any], value: Sequence[object]) -> None:
    """A text or list with something in it."""
    if len(value) == 0:
        raise ValueError(f"{attribute.name} must not be empty")
