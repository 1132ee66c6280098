"""The rules of a lease, by hand and for any order of words and delays."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.fleet.held import left_s, until_text
from runq.fleet.lease import Lease, Word, in_touch, over
from runq.fleet.wire import Terms

WORD = Word(boot_id="b", said_s=1000.0, heard_s=50.0)


def test_a_lease_counts_for_the_machine_from_what_it_said_and_for_the_head_from_when_it_heard():
    lease = Lease.granted(WORD, 300.0, 52.0)
    assert (lease.until_s, lease.machine_until_s) == (352.0, 1302.0)
    later = lease.renewed(Word(boot_id="b", said_s=1100.0, heard_s=160.0))
    assert (later.until_s, later.machine_until_s) == (460.0, 1400.0)


def test_an_older_word_takes_nothing_away():
    lease = Lease.granted(WORD, 300.0, 52.0)
    assert lease.renewed(WORD) == lease


@pytest.mark.parametrize(
    ("now_s", "due", "expired"),
    [(52.0, False, False), (152.0, False, False), (153.0, True, False), (351.9, True, False), (352.0, True, True)],
)
def test_when_it_is_renewed_and_when_it_is_over(now_s, due, expired):
    lease = Lease.granted(WORD, 300.0, 52.0)
    assert (lease.due(now_s), lease.expired(now_s)) == (due, expired)


delay = st.floats(min_value=0, max_value=1000)


@given(
    offset=st.floats(min_value=-1e6, max_value=1e6),
    lease_s=st.floats(min_value=5, max_value=1000),
    grant_after=delay,
    words=st.lists(st.tuples(st.floats(min_value=0, max_value=1e4), delay), min_size=1, max_size=8),
)
def test_the_machine_is_never_later_than_the_head(offset, lease_s, grant_after, words):
    """Whatever the delays: ``offset`` is between two clocks that nobody compares, words may come late and crossed."""

    def word(said_at, delay_s):
        return Word(boot_id="b", said_s=said_at + offset, heard_s=said_at + delay_s)

    lease = Lease.granted(word(*words[0]), lease_s, words[0][0] + words[0][1] + grant_after)
    for one in words:
        lease = lease.renewed(word(*one))
        assert lease.machine_until_s - offset <= lease.until_s + 1e-6


TERMS = Terms(boot_id="b", until_s=1300.0, heard_s=1000.0)


@pytest.mark.parametrize(
    ("terms", "boot", "now_s", "why"),
    [
        (TERMS, "b", 1284.9, ""),
        (TERMS, "b", 1285.0, "its lease ran out without a word from the head"),
        (TERMS, "c", 1000.0, "the machine has booted since its lease was granted"),
        (Terms(boot_id="b", until_s=1300.0, heard_s=1.0, stop="SIGINT"), "b", 1000.0, "SIGINT"),
    ],
)
def test_a_machine_ends_what_it_runs_early_enough(terms, boot, now_s, why):
    assert over(terms, boot, now_s, ending_s=15.0) == why


def test_no_step_starts_in_silence():
    assert in_touch(TERMS, 1014.9, 15.0)
    assert not in_touch(TERMS, 1015.0, 15.0)


def test_a_lease_of_an_earlier_head_is_never_longer_than_a_lease():
    now = datetime(2026, 12, 1, 22, 0, 0, tzinfo=UTC)
    assert until_text(90.0, now) == "2026-12-01T22:01:30.000000Z"
    assert left_s("2026-12-01T22:01:30.000000Z", 300.0, now) == 90.0
    assert left_s("2026-12-01T21:59:00.000000Z", 300.0, now) == 0.0
    assert left_s("2026-12-02T22:00:00.000000Z", 300.0, now) == 300.0  # the clock was set back
