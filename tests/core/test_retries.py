"""When a step is tried again and how long the night waits before: for every policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.retries import GIVE_UP_AFTER, LONGEST_WAIT_S, FailureRow, RetryPolicy, set_aside

ENDS = ("failed", "timeout", "stalled")


def policy(
    retries: int = 3, wait_s: float = 0.0, backoff: float = 1.0, on: frozenset[str] = frozenset(ENDS)
) -> RetryPolicy:
    return RetryPolicy(retries=retries, wait_s=wait_s, backoff=backoff, on=on, when="now")


@pytest.mark.parametrize(
    ("wait_s", "backoff", "expected"),
    [
        (60.0, 1.0, [60.0, 60.0, 60.0, 60.0]),
        (60.0, 2.0, [60.0, 120.0, 240.0, 480.0]),
        (600.0, 3.0, [600.0, 1800.0, 3600.0, 3600.0]),  # 5400 is more than an hour
        (7200.0, 2.0, [7200.0, 7200.0, 7200.0, 7200.0]),  # asked for in so many words
        (0.0, 10.0, [0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_the_pause_grows_and_has_an_end(wait_s: float, backoff: float, expected: list[float]) -> None:
    waits = policy(wait_s=wait_s, backoff=backoff)
    assert [waits.wait_before(number) for number in (1, 2, 3, 4)] == expected


@given(
    wait_s=st.floats(0, 1e6),
    backoff=st.floats(1, 1e6),
    number=st.integers(1, 10_000),
)
def test_no_pause_is_shorter_than_the_first_or_longer_than_an_hour(wait_s: float, backoff: float, number: int) -> None:
    waits = policy(wait_s=wait_s, backoff=backoff)
    assert waits.wait_before(1) == wait_s
    assert wait_s <= waits.wait_before(number) <= max(wait_s, LONGEST_WAIT_S)
    assert waits.wait_before(number) <= waits.wait_before(number + 1)


@given(
    retries=st.integers(0, 6),
    on=st.frozensets(st.sampled_from(ENDS)),
    ends=st.lists(st.sampled_from((*ENDS, "ok", "interrupted")), min_size=10, max_size=10),
)
def test_a_step_is_tried_until_an_end_that_is_not_retried_and_never_more_than_allowed(
    retries: int, on: frozenset[str], ends: list[str]
) -> None:
    tried = policy(retries=retries, on=on)
    made = 0
    while tried.again(ends[made], made):
        made += 1
    assert made <= retries
    assert all(end in on for end in ends[:made])
    assert made == retries or ends[made] not in on


@given(limit=st.none() | st.integers(1, 5), results=st.lists(st.booleans(), max_size=20))
def test_a_night_stops_at_the_first_row_of_failures_that_is_too_long(limit: int | None, results: list[bool]) -> None:
    row, stopped = FailureRow(limit=limit), None
    for number, complete in enumerate(results):
        row = row.after(complete)
        if row.too_long:
            stopped = number
            break
    words = "".join("." if complete else "x" for complete in results)
    found = words.find("x" * limit) if limit else -1
    assert stopped == (None if found < 0 or limit is None else found + limit - 1)


def test_an_entry_is_set_aside_after_the_second_death() -> None:
    assert GIVE_UP_AFTER == 2
    assert [set_aside(deaths) for deaths in (0, 1)] == ["", ""]
    assert set_aside(2) == "set aside: the runner died 2 times while it ran"
    assert set_aside(3) == "set aside: the runner died 3 times while it ran"
