"""Whether a difference is beyond chance; confirmed by SciPy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from runq.comparing.chance import beyond_chance, counts, normal_test, sign_test

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


@given(a=st.floats(-5, 5), b=st.floats(-5, 5), first=st.floats(0.01, 3), second=st.floats(0.01, 3))
def test_the_normal_test_is_scipys(a: float, b: float, first: float, second: float) -> None:
    z = (a - b) / math.hypot(first, second)
    assert normal_test(a, first, b, second) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-6, abs=1e-300)


def test_two_figures_without_spread_tell_nothing() -> None:
    assert normal_test(1, 0, 2, 0) is None


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
