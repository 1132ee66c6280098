"""When a night may work: its start, its deadline, and which step still fits. Pure: the time is handed in.

One clock decides, the wall clock. Start and deadline are turned into moments of it once, when the night is started, and
every decision compares such a moment with what the wall clock says then. So a machine that slept, and a clock that was
put right, end the night when its user looks at the clock, also with ``--for``. How long a step takes is measured with
the monotonic clock, as everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING

import attrs

from runq.text import duration
from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from runq_schemas.event_parts import Window

_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_LONGEST_DAYS = 366

BEHIND = "the step before it is not started"
"""Why a step does not start that would fit by itself."""


@attrs.frozen(kw_only=True)
class Usual:
    """How long a step usually takes: the median of so many ok attempts of the same step, model and pack."""

    seconds: float
    n: int


History = Mapping[tuple[str, str, str], Usual]
"""By step, model id and pack (as written, empty without)."""


@attrs.frozen(kw_only=True)
class TimeWindow:
    """From when and until when a night may work. The moments know their offset from UTC."""

    start: datetime | None = None
    until: datetime | None = None
    hard: bool = False

    def recorded(self) -> Window | None:
        """As events have it; ``None`` where there is no limit."""
        if self.start is None and self.until is None:
            return None
        from runq_schemas.event_parts import Window

        return Window(
            start_at=self.start.isoformat(timespec="seconds") if self.start else None,
            until=self.until.isoformat(timespec="seconds") if self.until else None,
            hard=self.hard,
        )


@attrs.frozen(kw_only=True)
class Ruling:
    """Whether a step starts, and why not. ``blind``: it starts although nothing tells how long it takes."""

    starts: bool
    reason: str = ""
    blind: bool = False
    left_s: float = 0.0
    usual: Usual | None = None


def time_window(
    *,
    until: str | None,
    span: str | None,
    start_at: str | None,
    hard: bool,
    now: datetime,
    zone: tzinfo | None = None,
) -> TimeWindow:
    """The window that ``--until``, ``--for`` and ``--start-at`` ask for.

    ``--until`` and ``--for`` count from the start: with ``--start-at 23:00 --until 07:00`` the deadline is the first
    07:00 after that 23:00.

    Args:
        now: what the wall clock says.
        zone: whose local time is meant; ``None``: this machine's.

    Raises:
        UsageError: one of them cannot be read, or they contradict each other.
    """
    if until is not None and span is not None:
        raise UsageError("--until and --for both say when the night ends", remedy="give one of the two")
    if hard and until is None and span is None:
        raise UsageError("--hard ends a step at the deadline, and there is none", remedy="add --until or --for")
    now = _local(now, zone)
    start = None if start_at is None else moment(start_at, now, zone, option="--start-at")
    begin = max(now, start) if start else now
    end = None
    if until is not None:
        end = moment(until, begin, zone, option="--until")
    elif span is not None:
        end = _local(begin + timedelta(seconds=seconds_of(span)), zone)
    return TimeWindow(start=start, until=end, hard=hard)


def moment(text: str, after: datetime, zone: tzinfo | None, *, option: str) -> datetime:
    """``07:00`` as the next such time after a moment; an ISO date and time as it stands, also in the past.

    Raises:
        UsageError: it is neither.
    """
    wrong = UsageError(f"{option} {text!r} is no time", remedy="write 07:00, or 2026-12-24T07:00 for a certain day")
    words = text.strip()
    found = _TIME.fullmatch(words)
    try:
        if found:
            clock = time(int(found[1]), int(found[2]), int(found[3] or 0))
            day = after.astimezone(zone).date()
            # A day has 23 to 25 hours where summer time begins or ends; so the date moves, and not the moment.
            naive = [datetime.combine(day + timedelta(days=ahead), clock) for ahead in range(3)]
            return next(at for when in naive for at in _occurrences(when, zone) if at > after)
        if ":" not in words:  # a bare day is as likely its end as its beginning
            raise wrong
        return _local(datetime.fromisoformat(words), zone)
    except (ValueError, OverflowError, OSError):
        raise wrong from None


def _occurrences(when: datetime, zone: tzinfo | None) -> list[datetime]:
    """The moments when clocks show a local time: two in the hour that the end of summer time repeats."""
    once, again = (_local(when.replace(fold=fold), zone) for fold in (0, 1))
    return [once, again] if again > once else [once]


def _local(when: datetime, zone: tzinfo | None) -> datetime:
    """A moment with its offset: that of the zone where it has none.

    By way of UTC: a local time that summer time leaves out becomes the one that clocks show instead. The offset is a
    fixed one, because two moments of one zone are compared and subtracted as clocks show them, without their offsets.
    """
    if when.tzinfo is None and zone is not None:
        when = when.replace(tzinfo=zone)
    shown = when.astimezone(UTC).astimezone(zone)
    return shown.replace(tzinfo=timezone(shown.utcoffset() or timedelta()))


def seconds_of(text: str) -> float:
    """``8h``, ``90m`` or ``1h30m`` in seconds.

    Raises:
        UsageError: it is no such time, or none at all.
    """
    found = _SPAN.fullmatch(text.strip().lower())
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if not 0 < total <= _LONGEST_DAYS * 86_400:
        raise UsageError(f"--for {text!r} is no length of time", remedy="write 8h, 90m or 1h30m")
    return float(total)


def ruling(left_s: float, usual: Usual | None, until: str) -> Ruling:
    """Whether a step starts with so many seconds left until the deadline.

    It does when it will be over by then, going by its history, and when it has no history; never when nothing is left.

    Args:
        left_s: seconds until the deadline; negative behind it.
        usual: how long the step usually takes.
        until: the deadline in words.
    """
    if left_s <= 0:
        return Ruling(starts=False, reason=f"the deadline {until} has passed", left_s=left_s, usual=usual)
    if usual is None:
        return Ruling(starts=True, blind=True, left_s=left_s)
    if usual.seconds <= left_s:
        return Ruling(starts=True, left_s=left_s, usual=usual)
    reason = f"it usually takes {duration(usual.seconds)}, and the deadline {until} is in {duration(left_s)}"
    return Ruling(starts=False, reason=reason, left_s=left_s, usual=usual)


def forecast(
    entries: Sequence[Sequence[Usual | None]], left_s: float, until: str, owners: Sequence[int] | None = None
) -> list[list[Ruling]]:
    """What a night would start, if every step took as long as usual and nothing else took any time.

    Args:
        entries: for each entry, in order, its steps that are to run.
        left_s: seconds from the night's start until the deadline.
        until: the deadline in words.
        owners: whose steps each part has, where an entry has several parts; by default each is an entry of its own.

    A step without history starts and counts nothing. Behind a step that does not start, none of its entry does.
    """
    rulings: list[list[Ruling]] = []
    halted: dict[int, Ruling] = {}
    for owner, steps in zip(owners or range(len(entries)), entries, strict=True):
        mine: list[Ruling] = []
        for usual in steps:
            before = mine[-1] if mine else halted.get(owner)
            if before is not None and not before.starts:
                waits = BEHIND if left_s > 0 else before.reason
                mine.append(Ruling(starts=False, reason=waits, left_s=left_s, usual=usual))
                continue
            mine.append(ruling(left_s, usual, until))
            if mine[-1].starts and usual is not None:
                left_s -= usual.seconds
        rulings.append(mine)
        if mine and not mine[-1].starts:
            halted[owner] = mine[-1]
    return rulings


def in_words(until: datetime) -> str:
    """A deadline for people, in local time."""
    return f"{until:%Y-%m-%d %H:%M}" + (f":{until:%S}" if until.second else "")
