"""A reset backend and a probe that misbehave as they are told."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

from runq.plugin import ResetContext, ResetOutcome


def misbehave(how: str) -> None:
    """Raise, exit or hang."""
    if how == "raise":
        raise ZeroDivisionError("as told")
    if how == "exit":
        raise SystemExit(7)
    if how == "hang":
        time.sleep(3600)


@attrs.frozen(kw_only=True)
class FaultyReset:
    """Says ``verdict``, or does what ``how`` says."""

    can_verify: ClassVar[bool] = True
    verdict: str = "verified"
    how: str = ""

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """It touches none."""
        return None

    def reset(self, context: ResetContext) -> ResetOutcome:
        """Do as told."""
        misbehave(self.how)
        return ResetOutcome(verdict=self.verdict, loaded_after=(), reason="as told")  # type: ignore[arg-type]

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        """Nothing, or it does as told."""
        misbehave(self.how)
        return [] if self.verdict == "verified" else None


@attrs.frozen(kw_only=True)
class FaultyProbe:
    """Reads always the same, or does what ``how`` says."""

    formula: ClassVar[str] = "always 1,000 MB"
    how: str = ""

    def read_mb(self) -> float:
        """The figure in MB (2**20 bytes)."""
        misbehave(self.how)
        return float("nan") if self.how == "nan" else 1000.0
