"""One entry: its endpoint made ready, its steps one after another, its result recorded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq import power
from runq.attempt_bundle import Done, attempt_bundle
from runq.attention import Skipped
from runq.before_entry import after_entry, before_entry
from runq.endpoint_alive import can_restart, restart, why_dead
from runq.endpoint_ready import Baseline, EndpointReady, NotReadyError
from runq.identity import identity_of, step_parts
from runq.pace import Deferred, defer, hold_to
from runq.plugin import Step
from runq.prepared import PreparedEntry
from runq.resume import PastStep, StepDecision
from runq.retries import RetryPolicy
from runq.step_run import Attempt, run_attempt
from runq_schemas.errors import JournalError, RunqError
from runq_schemas.events import (
    EntryFinished,
    EntryStarted,
    EntryStatus,
    RetryWaiting,
    StepFinished,
    StepSkipped,
    StepStatus,
)

if TYPE_CHECKING:
    from runq.night_context import NightContext


@attrs.frozen(kw_only=True)
class EntryOutcome:
    """How an entry ended, and whether the night has to stop because of it.

    ``ended`` is how the last attempt of the step ended that was not ok; ``None`` where no attempt was. ``deferred``
    tells that the deadline left steps of it for another time, ``by_user`` that somebody asked to skip it; ``baseline``
    what its last step's memory stood on.
    """

    status: EntryStatus
    reason: str = ""
    stop_night: bool = False
    ended: StepStatus | None = None
    deferred: bool = False
    by_user: bool = False
    baseline: Baseline | None = None

    @property
    def good(self) -> bool:
        """Whether everything ran that was to run in this turn."""
        return self.status in ("complete", "waiting")


def run_entry(
    context: NightContext,
    prepared: PreparedEntry,
    decisions: Sequence[StepDecision],
    past: Mapping[str, PastStep],
    *,
    steps: Collection[str],
    warm: Baseline | None = None,
) -> EntryOutcome:
    """Run what the decisions say; whatever goes wrong is this entry's recorded failure.

    Args:
        steps: those of this turn; the decisions' others have theirs later.
        warm: the baseline of the turn before, whose model is still loaded and is this turn's too: no reset is due.

    Raises:
        Interrupted: a signal ends the night; the entry's end is recorded.
        JournalError: the journal cannot be written.
    """
    from runq.processes import Interrupted

    recorder, entry = context.recorder, prepared.entry.id
    power_then = context.battery()
    recorder.event(EntryStarted(**power.recorded(power_then)), entry=entry)
    context.attention.entry = entry
    run = _EntryRun(context, prepared, decisions, past, steps, warm)
    try:
        before_entry(context, prepared, power_then)
        outcome = run.steps()
    except JournalError:
        raise
    except Interrupted:
        context.samples.flush()
        recorder.event(EntryFinished(status="interrupted", reason="the night was interrupted"), entry=entry)
        raise
    except Deferred as error:
        outcome = EntryOutcome(status="incomplete", reason=error.reason, deferred=True)
        run.defer_rest(error.reason)
    except Skipped as error:
        outcome = EntryOutcome(status="skipped", reason=error.reason, by_user=True)
    except NotReadyError as error:
        status: EntryStatus = "skipped" if error.status == "skipped" else "failed"
        outcome = EntryOutcome(status=status, reason=error.reason, stop_night=error.stop_night)
    except RunqError as error:
        outcome = EntryOutcome(status="failed", reason=error.message)
    except (Exception, SystemExit) as error:  # never propagate out of an entry: it costs itself, not the night
        outcome = EntryOutcome(status="failed", reason=f"{type(error).__name__}: {error}")
    finally:
        context.attention.left_entry()
    if not outcome.good and not outcome.deferred:
        run.skip_rest(outcome)
    context.samples.flush()
    power_now = power.recorded(after_entry(context, prepared, power_then))
    recorder.event(EntryFinished(status=outcome.status, reason=outcome.reason, **power_now), entry=entry)
    return outcome


def pause(
    context: NightContext, prepared: PreparedEntry, step: str, policy: RetryPolicy, number: int, seconds: float
) -> None:
    """Wait before a retry.

    Raises:
        Interrupted: a signal ends the night.
        Skipped: somebody wants no further try.
    """
    if seconds > 0:
        event = RetryWaiting(number=number, of=policy.retries, seconds=round(seconds, 3))
        context.recorder.event(event, entry=prepared.entry.id, step=step)
        context.attention.idle(seconds)


@attrs.define
class _EntryRun:
    context: NightContext
    prepared: PreparedEntry
    decisions: Sequence[StepDecision]
    past: Mapping[str, PastStep]
    turn: Collection[str]
    warm: Baseline | None
    baseline: Baseline = attrs.field(factory=lambda: Baseline(mb={}, proven=False), init=False)
    recorded: set[str] = attrs.field(factory=set, init=False)
    current: str | None = attrs.field(default=None, init=False)
    reset_done: bool = attrs.field(default=False, init=False)

    def steps(self) -> EntryOutcome:
        before: Done | None = None
        for step, decision in zip(self.prepared.steps, self.decisions, strict=True):
            if not decision.run:
                before = self._kept(step)
                continue
            if step.name not in self.turn:
                reason = f"{step.name} has its turn later"
                return EntryOutcome(status="waiting", reason=reason, baseline=self.baseline)
            finished, before = self._tries(step, decision.attempt, before)
            if before is None:
                reason = f"{step.name}: {finished.reason or finished.status}"
                return EntryOutcome(status="incomplete", reason=reason, ended=finished.status)
        return EntryOutcome(status="complete", baseline=self.baseline)

    def skip_rest(self, outcome: EntryOutcome) -> None:
        """Record every step that was to run and did not.

        Where the entry itself failed, the step it was about to run was not skipped: it is what failed, and the
        entry's end says why. Only an earlier word on that step must not stay the last one.
        """
        left = [d.step for d in self.decisions if d.run and d.step not in self.recorded]
        for step in left:
            if outcome.status == "failed" and step == self.current and step not in self.past:
                continue
            self.context.recorder.event(StepSkipped(reason=outcome.reason), entry=self.prepared.entry.id, step=step)

    def _kept(self, step: Step) -> Done:
        last = self.past[step.name]
        if last.identity is None or last.bundle is None:
            raise RunqError(f"the journal does not say where {step.name} ran")
        return Done(identity=last.identity, bundle=Path(last.bundle), outputs=last.outputs)

    def defer_rest(self, reason: str) -> None:
        """Record every step that the deadline leaves for another time."""
        names = [d.step for d in self.decisions if d.run]
        defer(self.context, self.prepared, names[names.index(self.current or names[0]) :], reason)

    def _tries(self, step: Step, first: int, before: Done | None) -> tuple[StepFinished, Done | None]:
        """A step and its retries. Returns the last attempt, and what the next step builds on if it is ok."""
        policy, self.current = RetryPolicy.of(self.prepared.spec), step.name
        number, made = first, 0
        while True:
            self.context.interrupts.check()  # a signal that came as the step before ended starts no other
            attempt, finished = self._try(step, number, before)
            number += 1
            if finished.status == "interrupted" and self.context.attention.skip_by is not None:
                self.recorded.discard(step.name)  # the last word on it is that it was skipped
                self.context.attention.gate()
            if finished.status == "ok":
                return finished, Done(identity=attempt.identity, bundle=attempt.bundle, outputs=finished.outputs)
            self.context.interrupts.check()
            if finished.status == "interrupted":  # and by no signal: the deadline came
                raise Deferred(finished.reason)
            if finished.endpoint_dead and can_restart(self.context, self.prepared):
                self._restart(step)  # the attempt was not the step's fault, and is no retry
                continue
            if policy.when != "now" or not policy.again(finished.status, made):
                return finished, None
            made += 1
            wait_s = policy.wait_before(made)
            hold_to(self.context, self.prepared, step.name, after_s=wait_s)
            pause(self.context, self.prepared, step.name, policy, made, wait_s)

    def _try(self, step: Step, number: int, before: Done | None) -> tuple[Attempt, StepFinished]:
        """One attempt, its endpoint made ready where that is due."""
        attention = self.context.attention
        warm, self.warm = self.warm, None
        due = step.name in self.prepared.reset_before
        while True:
            # Who pauses a night wants the machine, and may have loaded anything meanwhile.
            paused = attention.gate()
            hold_to(self.context, self.prepared, step.name)
            self.context.disk.ready()
            if warm is not None and not paused and not self._server_died():
                self.baseline, self.reset_done = warm, True
            elif due or paused or not self.reset_done or self._server_died():
                self._ready(step)
            warm, due = None, False
            self._alive(step)
            hold_to(self.context, self.prepared, step.name)  # all that may have taken minutes
            if not attention.waits:
                break
        attempt = self._attempt(step, number, before)
        self.recorded.add(step.name)
        attention.step = step.name
        try:
            return attempt, run_attempt(self.context, self.prepared, attempt)
        finally:
            attention.step = None

    def _ready(self, step: Step) -> None:
        self.baseline = EndpointReady(self.context, self.prepared).before(step)
        self.reset_done = True

    def _alive(self, step: Step) -> None:
        """Make sure that the endpoint answers, where a heartbeat is asked for.

        Raises:
            NotReadyError: it does not, also after its restart.
        """
        reason = why_dead(self.context, self.prepared, step.name)
        if reason and can_restart(self.context, self.prepared):
            self._restart(step)
            self._ready(step)
            reason = why_dead(self.context, self.prepared, step.name)
        if reason:
            raise NotReadyError(f"{step.name}: the endpoint does not answer: {reason}", status="failed")

    def _restart(self, step: Step) -> None:
        restart(self.context, self.prepared, step.name)
        self.reset_done = False  # whatever runs there now, nothing is known about its memory

    def _server_died(self) -> bool:
        """Whether the server that the reset started has ended by itself: no step can do without it.

        A backend may also wake a server that it did not start; then there is none to look after.
        """
        servers = self.context.servers.running()
        return bool(servers) and not any(server.running() for server in servers)

    def _attempt(self, step: Step, number: int, before: Done | None) -> Attempt:
        parts = step_parts(
            harness=self.prepared.spec.harness.name,
            step=step,
            model=self.prepared.entry.model,
            predecessor=before.identity if before else None,
        )
        identity = identity_of(parts)
        return Attempt(
            step=step,
            number=number,
            bundle=attempt_bundle(self.context, self.prepared, step, number, identity, before),
            identity=identity,
            identity_parts=parts,
            baseline_mb=self.baseline.mb,
            baseline_proven=self.baseline.proven,
            baseline_event=self.baseline.event if self.baseline.entry != self.prepared.entry.id else None,
        )
