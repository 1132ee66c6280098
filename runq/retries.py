"""When a step is tried again, how long the night waits before, and when it stops trying: pure rules."""

from __future__ import annotations

from collections.abc import Collection

import attrs

from runq_schemas.queue import EntrySpec, RetryWhen

LONGEST_WAIT_S = 3600.0
"""A pause that grows must not eat the night: eight hours hold one full-length eval (`step_timeout_s` 4 h) and its
judge, and a server that is not back within an hour is rarely back in two."""

GIVE_UP_AFTER = 2
"""Deaths of the runner during one entry. One may be a power cut; the second during the same entry is taken for the
entry's doing, and a third would cost the rest of another night."""


@attrs.frozen(kw_only=True)
class RetryPolicy:
    """How often and when the attempts of an entry's step are repeated."""

    retries: int
    wait_s: float
    backoff: float
    on: Collection[str]
    when: RetryWhen

    @classmethod
    def of(cls, spec: EntrySpec) -> RetryPolicy:
        """The policy of an entry."""
        return cls(
            retries=spec.retries,
            wait_s=spec.retry_wait_s,
            backoff=spec.retry_backoff,
            on=frozenset(spec.retry_on),
            when=spec.retry_when,
        )

    def again(self, status: str, made: int) -> bool:
        """Whether an attempt that ended so is followed by another, after so many retries."""
        return status in self.on and made < self.retries

    def wait_before(self, number: int) -> float:
        """Seconds before retry ``number`` (from 1): each ``backoff`` times the one before, an hour at most.

        A first wait that is longer than an hour was asked for in so many words, and is kept.
        """
        longest = max(LONGEST_WAIT_S, self.wait_s)
        wait_s = self.wait_s
        for _ in range(number - 1):
            if wait_s >= longest or wait_s == 0 or self.backoff == 1:
                break
            wait_s *= self.backoff
        return min(wait_s, longest)


@attrs.frozen(kw_only=True)
class FailureRow:
    """How many entries in a row were not complete, and how many are too many (``None``: never)."""

    limit: int | None
    count: int = 0

    def after(self, complete: bool) -> FailureRow:
        """The row after one more entry."""
        return attrs.evolve(self, count=0 if complete else self.count + 1)

    @property
    def too_long(self) -> bool:
        """Whether the night has to stop."""
        return self.limit is not None and self.count >= self.limit


def set_aside(deaths: int) -> str:
    """Why an entry is not tried again after so many deaths of the runner while it ran; empty when it is."""
    if deaths < GIVE_UP_AFTER:
        return ""
    return f"set aside: the runner died {deaths} times while it ran"
