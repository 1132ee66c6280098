"""No reset: the entry runs on whatever is loaded, and says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from runq.plugin import ResetContext, ResetOutcome


@attrs.frozen(kw_only=True)
class NoReset:
    """Evicts nothing. Its verdict is always ``unverified``; `on_dirty` does not act on it."""

    can_verify: ClassVar[bool] = False

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """None: no endpoint is touched."""
        return None

    def reset(self, context: ResetContext) -> ResetOutcome:
        """Do nothing."""
        return ResetOutcome(verdict="unverified", reason="no reset is configured")

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        """None: it cannot be told."""
        return None
