"""The models that the servers of this machine offer, and which of them a queue file gets."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import attrs

from runq.locks import endpoint_name
from runq.looking import FoundServer, OfferedModel
from runq.seeking import SoughtBy
from runq_schemas.errors import UsageError

ADDRESSES = ("host", "base_url", "base_urls", "port")
"""The options in which the built-in backends have their address."""


@attrs.frozen(kw_only=True)
class Candidate:
    """A model on a server."""

    product: str
    server: FoundServer
    model: OfferedModel

    @property
    def backend(self) -> str:
        """The reset backend."""
        return str(self.server.reset["backend"])

    def about(self) -> str:
        """Size, quantisation and server, for people."""
        return ", ".join(part for part in (size_text(self.model.size_mb), self.model.quant, self.product) if part)


def size_text(size_mb: float | None) -> str:
    """A size for people; empty when it is not known."""
    if size_mb is None:
        return ""
    return f"{size_mb / 1024:.1f} GB" if size_mb >= 1000 else f"{size_mb:.0f} MB"


def candidates(found: Iterable[SoughtBy]) -> tuple[Candidate, ...]:
    """Every model that chats, the smallest first, those of unknown size last; a server counts once."""
    servers: dict[str, tuple[str, FoundServer]] = {}
    for sought in (one.sought for one in found if one.sought is not None):
        for server in sought.servers:
            servers.setdefault(endpoint_name(server.base_url), (sought.product, server))
    every = [
        Candidate(product=product, server=server, model=model)
        for product, server in servers.values()
        for model in server.models
        if model.chats
    ]
    return tuple(sorted(every, key=lambda c: (c.model.size_mb is None, c.model.size_mb or 0.0, c.model.id)))


def named(offered: Sequence[Candidate], patterns: Sequence[str]) -> tuple[Candidate, ...]:
    """Those whose id is one of the patterns, in which ``*`` and ``?`` stand for other characters.

    Raises:
        UsageError: a pattern fits none.
    """
    chosen: list[Candidate] = []
    for pattern in patterns:
        fitting = [c for c in offered if c.model.id == pattern] or [
            c for c in offered if fnmatchcase(c.model.id, pattern)
        ]
        if not fitting:
            near = difflib.get_close_matches(pattern, [c.model.id for c in offered], n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"no server offers a model {pattern!r}",
                remedy=f"{hint}offered are {', '.join(c.model.id for c in offered)}",
            )
        chosen += [c for c in fitting if c not in chosen]
    return tuple(c for c in offered if c in chosen)


def numbered(offered: Sequence[Candidate], answer: str) -> tuple[Candidate, ...]:
    """The candidates of an answer such as ``1,3-4``; all for nothing or ``all``, none for ``none``.

    Raises:
        UsageError: it names no such number.
    """
    words = [word for word in answer.replace(",", " ").split() if word]
    if not words or words == ["all"]:
        return tuple(offered)
    if words == ["none"]:
        return ()
    chosen: set[int] = set()
    for word in words:
        first, dash, last = word.partition("-")
        bounds = (first, last if dash else first)
        if not all(bound.isdecimal() and 1 <= int(bound) <= len(offered) for bound in bounds):
            raise UsageError(f"{word!r} is not one of 1 to {len(offered)}", remedy="write for example 1,3-4, or all")
        chosen |= set(range(int(bounds[0]), int(bounds[1]) + 1))
    return tuple(offered[number - 1] for number in sorted(chosen))


def same_server(reset: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two `reset` settings mean one server: the same backend, and no two addresses that differ."""
    if reset.get("backend") != other.get("backend"):
        return False
    places = [{_place(mapping[key]) for key in ADDRESSES if key in mapping} for mapping in (reset, other)]
    return not places[0] or not places[1] or bool(places[0] & places[1])


def _place(value: Any) -> str:
    first = value[0] if isinstance(value, list | tuple) and value else value
    return endpoint_name(str(first)) if not str(first).isdecimal() else str(first)
