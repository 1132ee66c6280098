"""Whether a difference is beyond chance. Pure functions on numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import attrs

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
    way = tail = 1  # whole numbers, each from the one before it
    for count in range(fewer):
        way = way * (total - count) // (count + 1)
        tail += way
    return min(1.0, float(Fraction(2 * tail, 2**total)))  # as whole numbers: 2**2000 is no float


def counts(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[int, int, int]:
    """How many questions that both answered are higher in ``b``, lower in ``b``, and equal."""
    common = a.keys() & b.keys()
    higher = sum(b[key] > a[key] for key in common)
    lower = sum(b[key] < a[key] for key in common)
    return higher, lower, len(common) - higher - lower


@attrs.frozen(kw_only=True)
class Chance:
    """What chance says of a difference, second minus first.

    Args:
        p: the two-sided p-value.
        low, high: the interval that holds the true difference with a probability of 1 - alpha, looked at by itself.
    """

    p: float
    low: float
    high: float


def by_stderr(a: float, a_stderr: float, b: float, b_stderr: float, *, alpha: float = ALPHA) -> Chance | None:
    """Two independent figures with standard errors; ``None`` where both are 0."""
    spread = math.hypot(a_stderr, b_stderr)
    if spread == 0:
        return None
    reach = _deviations(alpha) * spread
    p = math.erfc(abs(a - b) / spread / math.sqrt(2))
    return Chance(p=p, low=b - a - reach, high=b - a + reach)


def by_number(a: float, a_n: int, b: float, b_n: int, *, alpha: float = ALPHA) -> Chance | None:
    """Two independent means of so many figures between 0 and 1; ``None`` where one is not between them.

    As if the figures were 0 and 1, such as wrong and right: others with the same mean vary less, so that a verdict errs
    towards chance only. The p-value is that of two shares with their common variance (the square root of K. Pearson's
    chi-squared, 1900), the interval R. G. Newcombe's from the two Wilson scores (Statistics in Medicine 17, 1998,
    method 10): both hold at 0 and at 1 too, where a standard error would be 0.
    """
    if not (0 <= a <= 1 and 0 <= b <= 1 and a_n > 0 and b_n > 0):
        return None
    common = (a * a_n + b * b_n) / (a_n + b_n)
    spread = math.sqrt(max(0.0, common * (1 - common)) * (1 / a_n + 1 / b_n))
    deviations = _deviations(alpha)
    (a_low, a_high), (b_low, b_high) = _wilson(a, a_n, deviations), _wilson(b, b_n, deviations)
    return Chance(
        p=math.erfc(abs(a - b) / spread / math.sqrt(2)) if spread > 0 else 1.0,
        low=b - a - math.hypot(b - b_low, a_high - a),
        high=b - a + math.hypot(b_high - b, a - a_low),
    )


def _wilson(share: float, n: int, deviations: float) -> tuple[float, float]:
    """The score interval of a share (E. B. Wilson, Journal of the American Statistical Association 22, 1927)."""
    z2 = deviations * deviations
    middle, reach = share + z2 / (2 * n), deviations * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, (middle - reach) / (1 + z2 / n)), min(1.0, (middle + reach) / (1 + z2 / n))


def _deviations(alpha: float) -> float:
    """Standard deviations on each side that leave ``alpha`` outside."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(1 - alpha / 2)


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
