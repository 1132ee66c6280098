"""Whether a difference is beyond chance. Pure functions on numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

ALPHA = 0.05
"""The usual bound on calling something a difference that is none (R. A. Fisher, Statistical Methods, 1925)."""


def sign_test(better: int, worse: int) -> float:
    """The exact two-sided p-value of so many pairs for and so many against; ties say nothing.

    For answers that are right or wrong this is McNemar's exact test (Q. McNemar, Psychometrika 12, 1947): a fair coin
    thrown once per pair that differs.
    """
    total, fewer = better + worse, min(better, worse)
    if total == 0:
        return 1.0
    tail = sum(math.comb(total, count) for count in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 2**total)))  # as whole numbers: 2**2000 is no float


def counts(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[int, int, int]:
    """How many questions that both answered are higher in ``b``, lower in ``b``, and equal."""
    common = a.keys() & b.keys()
    higher = sum(b[key] > a[key] for key in common)
    lower = sum(b[key] < a[key] for key in common)
    return higher, lower, len(common) - higher - lower


def normal_test(a: float, a_stderr: float, b: float, b_stderr: float) -> float | None:
    """The two-sided p-value of two independent figures with standard errors; ``None`` where both are 0."""
    spread = math.hypot(a_stderr, b_stderr)
    return math.erfc(abs(a - b) / spread / math.sqrt(2)) if spread > 0 else None


def beyond_chance(p_values: Sequence[float | None], alpha: float = ALPHA) -> list[bool]:
    """Which differences are beyond chance when all are looked at together.

    Holm's step-down procedure (S. Holm, Scandinavian Journal of Statistics 6, 1979) keeps the chance of a single false
    alarm among all of them at ``alpha``: of 20 scores one would else cross it in every second comparison.
    """
    known = sorted((p, at) for at, p in enumerate(p_values) if p is not None)
    found = [False] * len(p_values)
    for rank, (p, at) in enumerate(known):
        if p > alpha / (len(known) - rank):
            break
        found[at] = True
    return found
