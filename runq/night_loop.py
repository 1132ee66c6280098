"""The loop of a night: entry after entry, further rounds for what failed, and an end that is always recorded."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import attrs

from runq import planning
from runq.deadline import in_words
from runq.endpoint_ready import Baseline
from runq.entry_run import EntryOutcome, pause, run_entry
from runq.night_context import NightContext
from runq.opening import summary_error
from runq.pace import defer
from runq.phases import Group, Turn, turns
from runq.retries import FailureRow, RetryPolicy
from runq.summary import build
from runq_schemas.events import EntryFinished, EntryStarted, NightFinished, NightInterrupted, NightWaiting, StepSkipped
from runq_schemas.queue import Order

LOOK_EVERY_S = 1.0
"""How often a night that waits for its start looks at the wall clock, which may jump, and shows what is left."""


def wait_for_start(context: NightContext) -> str | None:
    """Wait for the window's start. Returns the signal's name when one ended the night meanwhile.

    The locks are held and the plan is in the journal by then: what would refuse this night refuses it at once, while
    its user is still there, and nothing can refuse it at its start, when nobody is.
    """
    from runq.processes import Interrupted

    start = context.pace.window.start
    if start is None or context.pace.now() >= start:
        return None
    context.recorder.event(NightWaiting(until=start.isoformat(timespec="seconds")))
    write_summary(context)
    try:
        while (left_s := (start - context.pace.now()).total_seconds()) > 0:
            context.recorder.waiting(in_words(start), left_s)
            context.attention.idle(min(left_s, LOOK_EVERY_S))
    except Interrupted as error:
        context.recorder.event(NightInterrupted(reason=str(error)))
        write_summary(context)
        return str(error)
    return None


def run_all(
    context: NightContext, works: Sequence[planning.Work], max_failures: int | None, order: Order
) -> str | None:
    """Run every entry. Returns the signal's name when one ended the night. Servers are gone afterwards."""
    from runq.processes import Interrupted

    interrupted: str | None = None
    loop = _Loop(context, FailureRow(limit=max_failures), order)
    try:
        loop.run(works)
    except Interrupted as error:
        interrupted = str(error)
    finally:
        context.servers.stop_all()
    if interrupted:
        context.recorder.event(NightInterrupted(reason=interrupted))
    else:
        finished(context, loop.stopped)
    write_summary(context)
    return interrupted


def finished(context: NightContext, stopped: str = "") -> None:
    """Record the night's end; ``stopped`` says why it came before every entry had its turn."""
    with context.recorder.journal.reader() as reader:
        row = reader.night_summary(context.recorder.night)
        context.recorder.tell_over(lambda: build(reader, context.recorder.night), stopped)
    context.recorder.event(NightFinished(total=row["total"], complete=row["complete"], stopped=stopped))


def write_summary(context: NightContext) -> None:
    """Write the summaries from the journal; a failure is a warning, they can be rebuilt by `runq replay`."""
    error = summary_error(context.recorder.journal, context.recorder.night, context.runs)
    while error is not None and error.errno in (errno.ENOSPC, errno.EDQUOT) and context.disk.give():
        error = summary_error(context.recorder.journal, context.recorder.night, context.runs)
    if error is not None:
        context.recorder.warn(
            f"the summary could not be written: {error}", "make room, then run `runq replay` to write it"
        )


@attrs.define
class _Loop:
    context: NightContext
    failures: FailureRow
    order: Order
    stopped: str = attrs.field(default="", init=False)
    loaded: tuple[Group, Baseline] | None = attrs.field(default=None, init=False)
    """The group of the turn before, where it ended well, and its baseline: what the next of that group goes on with."""

    def run(self, works: Sequence[planning.Work]) -> None:
        """Every entry once, then round after round those that failed and are to be tried again at the end."""
        ended_s: dict[int, float] = {}
        made = 0
        while works and not self.stopped:
            ended_s = self._round(turns(works, self.order, ended_s), made)
            made += 1
            # What comes now has failed before: the row of the round before says nothing about it.
            self.failures = attrs.evolve(self.failures, count=0)
            works = self._again([work for work in works if work.prepared.entry.id in ended_s])

    def _again(self, works: Sequence[planning.Work]) -> list[planning.Work]:
        if not works:
            return []
        with self.context.recorder.journal.reader() as reader:
            return [planning.once_more(work, reader, self.context.recorder.night) for work in works]

    def _round(self, chosen: Sequence[Turn], made: int) -> dict[int, float]:
        """One turn after the other; ``made`` retries lie behind them. Returns the entries that get another round."""
        again: dict[int, float] = {}
        for turn in chosen:
            if self.context.attention.gate():
                self.loaded = None
            outcome = self._turn(turn, made)
            if outcome is None:
                continue
            write_summary(self.context)
            policy = RetryPolicy.of(turn.work.prepared.spec)
            if policy.when == "end" and outcome.ended is not None and policy.again(outcome.ended, made):
                again[turn.work.prepared.entry.id] = self.context.clock()
            if outcome.stop_night:
                self._stop(f"on_dirty: stop ended the night: {outcome.reason}")
            elif not outcome.deferred and not outcome.by_user:
                self.failures = self.failures.after(outcome.good)
                if self.failures.too_long:
                    self._stop(f"max_failures ended the night: {self.failures.count} entries in a row failed")
            if self.stopped:
                break
        return again

    def _turn(self, turn: Turn, made: int) -> EntryOutcome | None:
        """Run a turn. ``None`` when nothing of it ran: it is set aside, or the deadline is too near, or what it builds
        on is not there.
        """
        context, work = self.context, turn.work
        if work.to_tell:
            set_aside(context, work)
            return None
        if not turn.opens:
            with context.recorder.journal.reader() as reader:
                after = planning.after_turn(work, reader, context.recorder.night, turn.steps)
            if after is None:
                return None
            work = after
        steps = [decision.step for decision in work.decisions if decision.run]
        policy, left_s = RetryPolicy.of(work.prepared.spec), 0.0
        if made and turn.ended_s is not None:
            left_s = max(0.0, turn.ended_s + policy.wait_before(made) - context.clock())
        found = context.pace.ruling(work.prepared, steps[0], after_s=left_s)
        if not found.starts:
            defer(context, work.prepared, steps, found.reason)
            return None
        pause(context, work.prepared, steps[0], policy, made, left_s)
        warm = self.loaded[1] if self.loaded and self.loaded[0] == turn.group else None
        self.loaded = None
        outcome = run_entry(context, work.prepared, work.decisions, work.past, steps=turn.steps, warm=warm)
        if turn.group is not None and outcome.good and outcome.baseline is not None:
            self.loaded = (turn.group, outcome.baseline)
        return outcome

    def _stop(self, why: str) -> None:
        self.stopped = why
        self.context.recorder.warn(why, "resume it with --resume")


def set_aside(context: NightContext, work: planning.Work) -> None:
    """Record that an entry gets no further turn: in the night's own words, so that every summary has it."""
    entry = work.prepared.entry.id
    step = next(decision.step for decision in work.decisions if decision.run)
    context.recorder.event(EntryStarted(), entry=entry)
    context.recorder.event(StepSkipped(reason=work.gave_up, gave_up=True), entry=entry, step=step)
    context.recorder.event(EntryFinished(status="gave_up", reason=work.gave_up), entry=entry)
    context.recorder.warn(
        f"e{entry} is {work.gave_up}",
        f"look at its logs and the system's, then try it with `runq rerun e{entry}`",
        entry=entry,
    )
