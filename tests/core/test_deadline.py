"""From when and until when a night works, and what still fits: with every clock and every history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.deadline import TimeWindow, Usual, forecast, moment, ruling, seconds_of, time_window
from runq.pace import Pace
from runq.text import left_text
from runq_schemas.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")
EVENING = datetime(2026, 12, 1, 22, 30, tzinfo=BERLIN)


def window(
    *,
    until: str | None = None,
    span: str | None = None,
    start_at: str | None = None,
    hard: bool = False,
    now: datetime = EVENING,
) -> TimeWindow:
    return time_window(until=until, span=span, start_at=start_at, hard=hard, now=now, zone=BERLIN)


@pytest.mark.parametrize(
    ("text", "now", "expected"),
    [
        ("07:00", "2026-12-01T22:30", "2026-12-02T07:00+01:00"),
        ("7:00", "2026-12-01T06:59:59", "2026-12-01T07:00+01:00"),
        ("07:00", "2026-12-01T07:00", "2026-12-02T07:00+01:00"),  # the next one, not this very moment
        ("23:59:30", "2026-12-31T23:59:45", "2027-01-01T23:59:30+01:00"),
        # Summer time begins on 2026-03-29 at 02:00, which clocks show as 03:00; it ends on 2026-10-25 at 03:00.
        ("07:00", "2026-03-28T23:00", "2026-03-29T07:00+02:00"),
        ("02:30", "2026-03-28T23:00", "2026-03-29T03:30+02:00"),
        ("02:30", "2026-10-25T01:00", "2026-10-25T02:30+02:00"),
        ("02:30", "2026-10-25T00:45Z", "2026-10-25T02:30+01:00"),  # after the first 02:30 comes the second
        ("02:30", "2026-10-25T01:45Z", "2026-10-26T02:30+01:00"),
        ("2026-12-24T07:00", "2026-12-01T22:30", "2026-12-24T07:00+01:00"),
        ("2026-12-24 07:00", "2026-12-01T22:30", "2026-12-24T07:00+01:00"),
        ("2026-11-30T07:00", "2026-12-01T22:30", "2026-11-30T07:00+01:00"),  # past, and meant
        ("2026-12-24T07:00Z", "2026-12-01T22:30", "2026-12-24T08:00+01:00"),
        ("2026-12-24T07:00-05:00", "2026-12-01T22:30", "2026-12-24T13:00+01:00"),
    ],
)
def test_a_moment(text: str, now: str, expected: str) -> None:
    then = datetime.fromisoformat(now)
    if then.tzinfo is None:
        then = then.replace(tzinfo=BERLIN)
    found = moment(text, then.astimezone(UTC), BERLIN, option="--until")
    assert found.isoformat() == datetime.fromisoformat(expected).isoformat()


@pytest.mark.parametrize(
    "text", ["", "7", "24:00", "07:60", "-1:00", "tomorrow", "2026-12-24", "2026-13-01T07:00", "07:00 pm", "8h"]
)
def test_no_moment(text: str) -> None:
    with pytest.raises(UsageError) as error:
        window(until=text)
    assert "--until" in error.value.message and "07:00" in error.value.remedy


@given(
    now=st.datetimes(datetime(2025, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
)
def test_the_next_such_time_is_ahead_shown_by_clocks_and_the_first(now: datetime, hour: int, minute: int) -> None:
    found = moment(f"{hour:02}:{minute:02}", now, BERLIN, option="--until")
    ahead = (found - now).total_seconds()
    assert 0 < ahead <= 25 * 3600 + 3600 * 1
    shown = found.astimezone(BERLIN)
    if (shown.hour, shown.minute) != (hour, minute):  # summer time leaves this one out
        assert shown.hour == hour + 1 and hour == 2
        return
    for minutes in range(1, int(ahead // 60)):
        earlier = (found - timedelta(minutes=minutes)).astimezone(BERLIN)
        assert (earlier.hour, earlier.minute) != (hour, minute)


@pytest.mark.parametrize(
    ("text", "seconds"), [("8h", 28_800), ("90m", 5400), ("1h30m", 5400), ("1H30M", 5400), ("45s", 45), ("2d", 172_800)]
)
def test_a_length(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "8", "0h", "-1h", "8 hours", "1m1h", "1.5h", "99999999d"])
def test_no_length(text: str) -> None:
    with pytest.raises(UsageError, match="no length of time"):
        seconds_of(text)


def shown(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="minutes")


def test_the_deadline_counts_from_the_start() -> None:
    both = window(until="07:00", start_at="23:00")
    assert (shown(both.start), shown(both.until)) == ("2026-12-01T23:00+01:00", "2026-12-02T07:00+01:00")
    # 22:45 is in a quarter of an hour, but the night begins after it.
    late = window(until="22:45", start_at="23:00")
    assert shown(late.until) == "2026-12-02T22:45+01:00"
    assert shown(window(span="8h", start_at="23:00").until) == "2026-12-02T07:00+01:00"
    assert shown(window(span="8h").until) == "2026-12-02T06:30+01:00"
    past = window(span="8h", start_at="2026-12-01T20:00")
    assert shown(past.until) == "2026-12-02T06:30+01:00"  # it starts now
    assert window().recorded() is None
    recorded = both.recorded()
    assert recorded is not None and recorded.until == "2026-12-02T07:00:00+01:00"


def test_an_hour_is_an_hour_also_when_summer_time_ends() -> None:
    start = datetime(2026, 10, 24, 23, 0, tzinfo=BERLIN)
    until = window(span="8h", now=start).until
    assert until is not None
    assert (until.astimezone(UTC) - start.astimezone(UTC)).total_seconds() == 8 * 3600
    assert shown(until) == "2026-10-25T06:00+01:00"


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(UsageError, match="--until and --for"):
        window(until="07:00", span="8h")
    with pytest.raises(UsageError, match="--hard"):
        window(hard=True)


seconds = st.floats(0.001, 1e5)
usuals = st.none() | st.builds(Usual, seconds=seconds, n=st.integers(1, 9))


@given(left_s=st.floats(-1e5, 1e5), usual=usuals)
def test_nothing_starts_that_would_not_end(left_s: float, usual: Usual | None) -> None:
    found = ruling(left_s, usual, "07:00")
    assert found.starts == (left_s > 0 and (usual is None or usual.seconds <= left_s))
    assert found.blind == (found.starts and usual is None)
    assert bool(found.reason) != found.starts


@given(entries=st.lists(st.lists(usuals, min_size=1, max_size=4), max_size=6), left_s=st.floats(-1e5, 3e5))
def test_a_forecast_fits_the_night(entries: list[list[Usual | None]], left_s: float) -> None:
    rulings = forecast(entries, left_s, "07:00")
    assert [len(mine) for mine in rulings] == [len(steps) for steps in entries]
    started = [
        usual.seconds
        for steps, mine in zip(entries, rulings, strict=True)
        for usual, one in zip(steps, mine, strict=True)
        if one.starts and usual
    ]
    assert sum(started) <= max(0.0, left_s) * (1 + 1e-9)
    for mine in rulings:  # no step starts behind one that does not
        starts = [one.starts for one in mine]
        assert starts == sorted(starts, reverse=True)
        assert all(one.reason for one in mine if not one.starts)
    if left_s <= 0:
        assert not any(one.starts for one in chain(*rulings))


def test_a_forecast_goes_on_with_what_still_fits() -> None:
    hour = Usual(seconds=3600.0, n=3)
    minute = Usual(seconds=60.0, n=1)
    rulings = forecast([[hour, hour], [hour, minute], [minute, None]], 2 * 3600 + 100, "07:00")
    assert [[one.starts for one in mine] for mine in rulings] == [[True, True], [False, False], [True, True]]
    assert rulings[1][0].reason == "it usually takes 1:00 h, and the deadline 07:00 is in 1:40 min"
    assert rulings[1][1].reason == "the step before it is not started"
    assert rulings[2][1].blind


@pytest.mark.parametrize(
    ("steps", "seconds", "unknown", "expected"),
    [
        (1, 3600.0, 0, "1 step, which needs about 1:00 h"),
        (3, 7200.0, 1, "3 steps, which need about 2:00 h and what 1 without history takes"),
        (2, 0.0, 2, "2 steps without history"),
    ],
)
def test_what_was_left_in_words(steps: int, seconds: float, unknown: int, expected: str) -> None:
    assert left_text(steps, seconds, unknown) == expected


def test_the_wall_clock_decides_whatever_it_does() -> None:
    clock = {"now": EVENING.astimezone(UTC)}
    deadline = window(until="07:00", hard=True)
    pace = Pace(window=deadline, now=lambda: clock["now"])
    assert (pace.left_s(), pace.over()) == (8.5 * 3600, False)
    clock["now"] += timedelta(hours=8)  # the machine slept
    assert (pace.left_s(), pace.over()) == (1800.0, False)
    clock["now"] += timedelta(hours=1)  # the clock was wrong, and is put right
    assert (pace.left_s(), pace.over()) == (-1800.0, True)
    clock["now"] -= timedelta(hours=1)
    assert (pace.left_s(), pace.over()) == (1800.0, False)
    assert Pace(window=window(until="07:00"), now=lambda: EVENING + timedelta(days=1)).over() is False  # not --hard
    assert Pace().left_s() is None and Pace().over() is False
