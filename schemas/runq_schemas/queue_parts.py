"""The mappings inside a queue file, each a class of its own, and how any key describes itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

Json = Any
"""A JSON value: null, boolean, number, string, list or mapping with string keys."""


def described(text: str, *, identity: bool = False, **rules: Any) -> dict[str, Any]:
    """Metadata of a queue key or a plugin option.

    Args:
        text: what the key means, with its unit.
        identity: whether a step's identity depends on it.
        rules: what the parser enforces and the JSON Schema states: ``minimum`` (at least), ``above`` (more
            than), ``min_length`` (characters), ``min_items``, ``nullable`` (``null`` means not given),
            ``plugin`` (the key that names the plugin in a mapping), ``built_in`` (the value where neither the
            entry nor ``defaults`` has the key).
    """
    return {"description": text, "identity": identity, **rules}


@attrs.frozen(kw_only=True)
class SettleSpec:
    """When memory counts as back. The defaults are touchstone's."""

    timeout_s: float = attrs.field(
        default=120.0, metadata=described("Give up after so many seconds without proof.", above=0)
    )
    plateau_polls: int = attrs.field(
        default=3, metadata=described("Flat intervals between readings that make a plateau.", minimum=1)
    )
    poll_interval_s: float = attrs.field(default=2.0, metadata=described("Seconds between two readings.", above=0))
    epsilon_mb: float = attrs.field(
        default=200.0,
        metadata=described("Readings within so many MB (2**20 bytes) count as the same.", above=0),
    )


@attrs.frozen(kw_only=True)
class HeartbeatSpec:
    """When an endpoint counts as dead: it gives no single token although the step has gone silent."""

    url: str | None = attrs.field(
        default=None,
        metadata=described(
            "Base URL that is asked, such as http://127.0.0.1:1234/v1; by default the one the step uses.", nullable=True
        ),
    )
    model: str | None = attrs.field(
        default=None, metadata=described("Model that is asked for; by default the step's.", nullable=True)
    )
    every_s: float = attrs.field(
        default=60.0,
        metadata=described("Ask when the step has written nothing for so many seconds, and again as often.", above=0),
    )
    timeout_s: float = attrs.field(
        default=120.0,
        metadata=described("Seconds one answer may take; before a step the model is loaded in it.", above=0),
    )
    failures: int = attrs.field(
        default=3, metadata=described("Unanswered questions in a row that mean dead.", minimum=1)
    )


@attrs.frozen(kw_only=True)
class ModelSpec:
    """One model as touchstone describes it; ``extra`` holds fields that runq does not know."""

    id: str = attrs.field(
        metadata=described("The model's id, exactly as the server spells it.", identity=True, min_length=1)
    )
    quant: str = attrs.field(default="", metadata=described("Quantisation, for the record.", identity=True))
    max_tokens_default: int = attrs.field(
        default=400,
        metadata=described("Tokens an answer may have where the prompt does not say.", identity=True),
    )
    reasoning_headroom_tokens: int = attrs.field(
        default=0, metadata=described("Tokens added for a thinking model's reasoning.", identity=True)
    )
    extra_body: Mapping[str, Json] = attrs.field(
        factory=dict,
        metadata=described("Sent to the server with every request, JSON types kept.", identity=True),
    )
    extra: Mapping[str, Json] = attrs.field(factory=dict, metadata={"schema": "additional", "identity": True})

    def canonical(self) -> dict[str, Json]:
        """Every field with its value, defaults included: what a step's identity is computed from."""
        known = attrs.asdict(self, recurse=False)
        extra = known.pop("extra")
        return {**extra, **known}

    def as_written(self) -> dict[str, Json]:
        """The fields that differ from their defaults, and ``id``: what travels to a harness."""
        full = self.canonical()
        defaults = ModelSpec(id=self.id).canonical()
        return {key: value for key, value in full.items() if key == "id" or value != defaults.get(key, _ABSENT)}


_ABSENT = object()
