"""One entry: its endpoint made ready, its steps one after another, its result recorded."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq import artifacts, paths
from runq.endpoint_ready import Baseline, EndpointReady, NotReadyError
from runq.identity import identity_of, step_parts
from runq.plugin import Step
from runq.prepared import PreparedEntry
from runq.resume import PastStep, StepDecision
from runq.step_run import Attempt, run_attempt
from runq_schemas.errors import JournalError, RunqError
from runq_schemas.events import EntryFinished, EntryStarted, EntryStatus, StepFinished, StepSkipped

if TYPE_CHECKING:
    from runq.night_context import NightContext


@attrs.frozen(kw_only=True)
class EntryOutcome:
    """How an entry ended, and whether the night has to stop because of it."""

    status: EntryStatus
    reason: str = ""
    stop_night: bool = False


@attrs.frozen(kw_only=True)
class _Done:
    """A step that is ok: what the step after it builds on."""

    identity: str
    bundle: Path
    outputs: tuple[str, ...]


def run_entry(
    context: NightContext,
    prepared: PreparedEntry,
    decisions: Sequence[StepDecision],
    past: Mapping[str, PastStep],
) -> EntryOutcome:
    """Run what the decisions say; whatever goes wrong is this entry's recorded failure.

    Raises:
        Interrupted: a signal ends the night; the entry's end is recorded.
        JournalError: the journal cannot be written.
    """
    from runq.processes import Interrupted

    recorder, entry = context.recorder, prepared.entry.id
    recorder.event(EntryStarted(), entry=entry)
    run = _EntryRun(context, prepared, decisions, past)
    try:
        outcome = run.steps()
    except JournalError:
        raise
    except Interrupted:
        context.samples.flush()
        recorder.event(EntryFinished(status="interrupted", reason="the night was interrupted"), entry=entry)
        raise
    except NotReadyError as error:
        status: EntryStatus = "skipped" if error.status == "skipped" else "failed"
        outcome = EntryOutcome(status=status, reason=error.reason, stop_night=error.stop_night)
    except RunqError as error:
        outcome = EntryOutcome(status="failed", reason=error.message)
    except (Exception, SystemExit) as error:  # never propagate out of an entry: it costs itself, not the night
        outcome = EntryOutcome(status="failed", reason=f"{type(error).__name__}: {error}")
    run.skip_rest(outcome)
    context.samples.flush()
    recorder.event(EntryFinished(status=outcome.status, reason=outcome.reason), entry=entry)
    return outcome


@attrs.define
class _EntryRun:
    context: NightContext
    prepared: PreparedEntry
    decisions: Sequence[StepDecision]
    past: Mapping[str, PastStep]
    baseline: Baseline = attrs.field(factory=lambda: Baseline(mb={}, proven=False), init=False)
    recorded: set[str] = attrs.field(factory=set, init=False)
    current: str | None = attrs.field(default=None, init=False)
    reset_done: bool = attrs.field(default=False, init=False)

    def steps(self) -> EntryOutcome:
        before: _Done | None = None
        for step, decision in zip(self.prepared.steps, self.decisions, strict=True):
            if not decision.run:
                before = self._kept(step)
                continue
            finished, before = self._tries(step, decision.attempt, before)
            if before is None:
                return EntryOutcome(status="incomplete", reason=f"{step.name}: {finished.reason or finished.status}")
        return EntryOutcome(status="complete")

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

    def _kept(self, step: Step) -> _Done:
        last = self.past[step.name]
        if last.identity is None or last.bundle is None:
            raise RunqError(f"the journal does not say where {step.name} ran")
        return _Done(identity=last.identity, bundle=Path(last.bundle), outputs=last.outputs)

    def _tries(self, step: Step, first: int, before: _Done | None) -> tuple[StepFinished, _Done | None]:
        """A step and its retries. Returns the last attempt, and what the next step builds on if it is ok."""
        spec, self.current = self.prepared.spec, step.name
        for number in range(first, first + spec.retries + 1):
            if number > first:
                self.context.interrupts.sleep(spec.retry_wait_s)
            self.context.interrupts.check()  # a signal that came as the step before ended starts no other
            if not self.reset_done or step.name in self.prepared.reset_before or self._server_died():
                self.baseline = EndpointReady(self.context, self.prepared).before(step)
                self.reset_done = True
            attempt = self._attempt(step, number, before)
            self.recorded.add(step.name)
            finished = run_attempt(self.context, self.prepared, attempt)
            if finished.status == "ok":
                return finished, _Done(identity=attempt.identity, bundle=attempt.bundle, outputs=finished.outputs)
            self.context.interrupts.check()
        return finished, None

    def _server_died(self) -> bool:
        """Whether the server that the reset started has ended by itself: no step can do without it.

        A backend may also wake a server that it did not start; then there is none to look after.
        """
        servers = self.context.servers.running()
        return bool(servers) and not any(server.running() for server in servers)

    def _attempt(self, step: Step, number: int, before: _Done | None) -> Attempt:
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
            bundle=self._bundle(step, number, identity, before),
            identity=identity,
            identity_parts=parts,
            baseline_mb=self.baseline.mb,
            baseline_proven=self.baseline.proven,
        )

    def _bundle(self, step: Step, number: int, identity: str, before: _Done | None) -> Path:
        """Where an attempt writes: never where an attempt of other content, or one that is ok, wrote.

        A first step always gets a fresh folder. A later one begins in its predecessor's. An attempt with the same
        identity that was not ok is gone on with where it was, so that a judge that was cut short can use what it had.
        In every other case (an edited judge configuration, `runq rerun`) it begins in a copy of what the predecessor
        left: nothing good is overwritten, and no old judgement is taken for a new one.
        """
        context, entry = self.context, self.prepared.entry
        if before is None:
            return paths.bundle_dir(
                context.runs,
                context.recorder.night,
                entry.id,
                entry.model.id,
                self.prepared.pack_id,
                attempt=number,
            )
        if number == 1:
            return before.bundle
        with context.recorder.journal.reader() as reader:
            tried = [
                (row["identity"], row["bundle"], row["status"])
                for row in reader.attempts_of(context.recorder.night, entry.id, step.name)
                if row["bundle"]
            ]
        copies = f"{before.bundle}_{step.name}_a"
        here = [row for row in tried if row[1] == str(before.bundle) or row[1].startswith(copies)]
        if not here:
            return before.bundle
        same = [(at, status) for was, at, status in here if was == identity]
        if same and same[-1][1] != "ok":
            return Path(same[-1][0])
        return _copy(before, Path(f"{copies}{number}"))


def _copy(before: _Done, target: Path) -> Path:
    """A folder of its own with what the step before left.

    The copy gets its name when it is whole: a runner that dies meanwhile leaves only a `.part` folder that no attempt
    ever wrote in, and this very attempt, not yet journalled, begins it anew.
    """
    if target.exists():
        return target
    if len(before.outputs) >= artifacts.MAX_OUTPUTS:
        raise RunqError(f"{before.bundle} holds too many files to be copied for another attempt")
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    for name in before.outputs:
        (part / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(before.bundle / name, part / name)
    part.rename(target)
    return target
