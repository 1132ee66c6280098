"""Whether a difference is beyond chance; confirmed by SciPy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from runq.comparing.chance import beyond_chance, by_number, by_stderr, counts, sign_test

few = st.integers(min_value=0, max_value=400)


@given(better=few, worse=few)
def test_the_sign_test_is_scipys(better: int, worse: int) -> None:
    if better + worse:
        assert sign_test(better, worse) == pytest.approx(stats.binomtest(better, better + worse, 0.5).pvalue, rel=1e-9)
    else:
        assert sign_test(0, 0) == 1.0


def test_ten_thousand_pairs_are_no_overflow() -> None:
    assert sign_test(5000, 5000) == 1.0
    assert 0 <= sign_test(0, 10_000) < 1e-300


def test_a_hundred_thousand_pairs_take_no_minutes() -> None:
    assert sign_test(50_000, 49_000) == pytest.approx(stats.binomtest(49_000, 99_000, 0.5).pvalue, rel=1e-9)


@given(a=st.floats(-5, 5), b=st.floats(-5, 5), first=st.floats(0.01, 3), second=st.floats(0.01, 3))
def test_standard_errors_as_scipy_has_it(a: float, b: float, first: float, second: float) -> None:
    spread = math.hypot(first, second)
    found = by_stderr(a, first, b, second)
    assert found is not None
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(a - b) / spread), rel=1e-6, abs=1e-300)
    low, high = stats.norm.interval(0.95, loc=b - a, scale=spread)
    assert (found.low, found.high) == pytest.approx((low, high))


def test_two_figures_without_spread_tell_nothing() -> None:
    assert by_stderr(1, 0, 2, 0) is None


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        # R. G. Newcombe, Statistics in Medicine 17 (1998), table II, method 10: p1 - p2 of r1/n1 and r2/n2.
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0000),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_newcombes_own_examples(one: tuple[int, int], other: tuple[int, int], low: float, high: float) -> None:
    found = by_number(other[0] / other[1], other[1], one[0] / one[1], one[1])
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.00006)


@given(a=st.integers(0, 60), b=st.integers(0, 60), more=st.integers(1, 60))
def test_shares_as_scipys_chi_squared_has_it(a: int, b: int, more: int) -> None:
    a_n, b_n = a + more, b + 7
    found = by_number(a / a_n, a_n, b / b_n, b_n)
    assert found is not None
    if a + b == 0:
        assert found.p == 1.0
    else:
        table = [[a, a_n - a], [b, b_n - b]]
        assert found.p == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue, rel=1e-6, abs=1e-12)
    assert -1 <= found.low <= b / b_n - a / a_n <= found.high <= 1


@pytest.mark.parametrize(("a", "a_n", "b", "b_n"), [(4.2, 10, 3.9, 10), (0.5, 0, 0.5, 10), (-0.1, 5, 0.2, 5)])
def test_what_is_no_share_of_a_number_tells_nothing(a: float, a_n: int, b: float, b_n: int) -> None:
    assert by_number(a, a_n, b, b_n) is None


def test_only_questions_that_both_answered_are_counted() -> None:
    a, b = {"q1": 1.0, "q2": 0.0, "q3": 1.0, "only a": 1.0}, {"q1": 0.0, "q2": 1.0, "q3": 1.0, "only b": 0.0}
    assert counts(a, b) == (1, 1, 1)


@pytest.mark.parametrize(
    ("p_values", "found"),
    [
        ([0.04], [True]),
        ([0.04, 0.9], [False, False]),  # 0.04 is above 0.05 / 2
        ([0.01, 0.04, None], [True, True, False]),  # 0.01 below 0.05 / 2, then 0.04 below 0.05 / 1
        ([0.03, 0.01, 0.03], [False, True, False]),  # 0.01 below 0.05 / 3, 0.03 above 0.05 / 2
        ([], []),
    ],
)
def test_holm_by_hand(p_values: list[float | None], found: list[bool]) -> None:
    assert beyond_chance(p_values) == found
