"""The spans of a night, from events told at known seconds."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from runq.report.bands import KINDS, spans
from runq_journal import JournalReader
from runq_schemas import events as ev
from runq_schemas.event_parts import RUNNER_DIED


def found(told: Any, signs: dict[tuple[int, str], float] | None = None) -> tuple[list[tuple[Any, ...]], list[Any]]:
    """Bands as (what, entry, step, attempt, start, end, status), stretches as (start, end), in seconds of the tale."""

    def second(at: datetime) -> float:
        return (at - told.start).total_seconds()

    def last_sign(entry: int, step: str, before: str | None) -> datetime | None:
        at = (signs or {}).get((entry, step))
        return None if at is None else told.start + timedelta(seconds=at)

    with JournalReader.open(told.path) as reader:
        bands, stretches = spans(reader.events(told.night, kinds=KINDS), last_sign)
    rows = [(b.what, b.entry, b.step, b.attempt, second(b.start), second(b.end), b.status) for b in bands]
    return rows, [(second(one.start), second(one.end)) for one in stretches]


def reset(told: Any, entry: int, verdict: str = "verified") -> None:
    told.say(ev.ResetStarted(backend="lms", before_step="eval"), entry)
    told.say(ev.ResetFinished(backend="lms", verdict=verdict, loaded_before=(), loaded_after=(), seconds=1.0), entry)
    told.say(ev.SettleStarted(reference_mb={"system": None}), entry)
    told.settled(entry, 4000.0, proven=True)


def test_a_night(told: Any) -> None:
    told.plan("gemma")  # second 1
    told.say(ev.EntryStarted(), 0)
    reset(told, 0)  # 3 to 6
    told.say(ev.CooldownStarted(seconds=9.0), 0)  # 7
    told.seconds += 8
    told.started(0, "eval")  # 16
    told.finished(0, "eval", "failed", reason="it exited with 1")
    told.say(ev.RetryWaiting(number=1, of=1, seconds=5.0), 0, "eval")  # 18
    told.seconds += 4
    reset(told, 0, "unverified")  # 23 to 26
    told.started(0, "eval", attempt=2)
    told.finished(0, "eval", attempt=2)
    told.say(ev.NightFinished(total=1, complete=1))  # 29
    assert found(told) == (
        [
            ("reset", 0, "eval", None, 3, 4, "verified"),
            ("settle", 0, "", None, 5, 6, "settled"),
            ("cooldown", 0, "", None, 7, 16, ""),
            ("step", 0, "eval", 1, 16, 17, "failed"),
            ("wait", 0, "eval", None, 18, 23, ""),
            ("reset", 0, "eval", None, 23, 24, "unverified"),
            ("settle", 0, "", None, 25, 26, "settled"),
            ("step", 0, "eval", 2, 27, 28, "ok"),
        ],
        [(1, 29)],
    )


def test_a_runner_that_died_worked_until_its_last_sign(told: Any) -> None:
    told.plan("gemma")
    told.say(ev.EntryStarted(), 0)
    told.started(0, "eval")  # second 3
    told.seconds = 50_000
    told.finished(0, "eval", "interrupted", seconds=None, reason=f"{RUNNER_DIED} while it was running")
    told.say(ev.NightInterrupted(reason=RUNNER_DIED))
    told.plan("gemma", cls=ev.NightResumed)  # 50,003
    told.started(0, "eval", attempt=2)
    told.finished(0, "eval", attempt=2)
    told.say(ev.NightFinished(total=1, complete=1))
    bands, stretches = found(told, {(0, "eval"): 1800})
    assert bands == [
        ("step", 0, "eval", 1, 3, 1800, "interrupted"),
        ("step", 0, "eval", 2, 50_004, 50_005, "ok"),
    ]
    assert stretches == [(1, 1800), (50_003, 50_006)]


def test_what_runs_now_ends_at_its_last_sign(told: Any) -> None:
    told.plan("gemma")
    told.say(ev.EntryStarted(), 0)
    told.started(0, "eval")
    assert found(told, {(0, "eval"): 60}) == ([("step", 0, "eval", 1, 3, 60, "")], [(1, 60)])


def test_a_signal_ends_a_step_in_time(told: Any) -> None:
    told.plan("gemma")
    told.say(ev.EntryStarted(), 0)
    told.started(0, "eval")
    told.finished(0, "eval", "interrupted", reason="the night was interrupted")
    told.say(ev.NightInterrupted(reason="SIGINT"))
    assert found(told) == ([("step", 0, "eval", 1, 3, 4, "interrupted")], [(1, 5)])
