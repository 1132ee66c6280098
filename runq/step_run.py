"""One attempt of one step: started, spawned, watched, ended as a whole tree, classified, recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runq import artifacts, logs
from runq.endpoint_alive import tell_dead, tell_refused
from runq.endpoint_ready import hung
from runq.heartbeat import Heart
from runq.night_disk import MB, NO_SPACE
from runq.paths import private_folder
from runq.plugin import Evidence, Step
from runq.prepared import PreparedEntry
from runq.sampling import SAMPLE_EVERY_S, Sampler
from runq_schemas.errors import JournalError, RunqError
from runq_schemas.events import StepFinished, StepSpawned, StepStarted, StepStatus

if TYPE_CHECKING:
    from runq.night_context import NightContext
    from runq.processes import Child, End, Ended


@attrs.frozen(kw_only=True)
class Attempt:
    """What an attempt of a step is about to do."""

    step: Step
    number: int
    bundle: Path
    identity: str
    identity_parts: Mapping[str, Any]
    baseline_mb: Mapping[str, float]
    baseline_proven: bool
    baseline_event: int | None = None


@attrs.frozen(kw_only=True)
class Exit:
    """How the process ended: why the watch stopped, and what the system said.

    ``endpoint`` is why its endpoint counted as dead, where that ended it; ``by`` is who asked to skip it.
    """

    why: str
    exit_code: int | None
    signal: str | None
    endpoint: str = ""
    by: str = ""


def classify(
    end: Exit,
    *,
    timeout_s: float,
    stall_s: float | None,
    proof: artifacts.Proof,
    check: Callable[[], Evidence],
) -> tuple[StepStatus, Evidence]:
    """The status of an attempt, and why: the harness's evidence, or none with the reason in words.

    ``ok`` needs exit 0, every artifact new, and the harness's word that they say what they should.
    """
    if end.why == "interrupted":
        return "interrupted", _unproven("the night was interrupted")
    if end.why == "deadline":
        return "interrupted", _unproven("the deadline came while it ran")
    if end.why == "skipped":
        return "interrupted", _unproven(f"it was skipped, asked by {end.by}")
    if end.why == "dead":
        return "stalled", _unproven(f"it went silent, and its endpoint gave no answer: {end.endpoint}")
    if end.why == "full":
        return "failed", _unproven("it was ended")
    if end.why == "timeout":
        return "timeout", _unproven(f"it ran past its timeout of {timeout_s:g} s")
    if end.why == "stalled":
        return "stalled", _unproven(f"neither its log nor its bundle grew for {stall_s:g} s")
    if end.signal is not None:
        return "failed", _unproven(f"it was ended by {end.signal}")
    if end.exit_code != 0:
        return "failed", _unproven(f"it exited with {end.exit_code}")
    if proof.reason:
        return "failed", _unproven(f"it exited with 0, but {proof.reason}")
    evidence = check()
    return ("ok" if evidence.ok else "failed"), evidence


def _unproven(reason: str) -> Evidence:
    return Evidence(ok=False, reason=reason)


def run_attempt(context: NightContext, prepared: PreparedEntry, attempt: Attempt) -> StepFinished:
    """Run one attempt to its end, whatever it does. Returns the recorded event.

    Raises:
        JournalError: the journal cannot be written; the step's processes have been ended.
    """
    from runq.processes import LIMIT_S, foreign

    entry, step = prepared.entry, attempt.step
    log = context.log_path(entry.id, step.name, attempt.number)
    where: dict[str, Any] = {"entry": entry.id, "step": step.name, "attempt": attempt.number}
    private_folder(attempt.bundle)
    private_folder(log.parent)
    before = artifacts.stamps(attempt.bundle, step.artifacts)
    with foreign(LIMIT_S, lambda: hung("the harness", LIMIT_S)):
        argv = tuple(str(word) for word in prepared.harness.argv(entry, step, attempt.bundle))
    context.recorder.event(
        StepStarted(
            argv=argv,
            log=str(log),
            bundle=str(attempt.bundle),
            timeout_s=prepared.timeouts_s[step.name],
            stall_timeout_s=prepared.stalls_s[step.name],
            identity=attempt.identity,
            identity_parts=attempt.identity_parts,
            baseline_event=attempt.baseline_event,
        ),
        **where,
    )
    sampler = context.sampler(prepared.probes, entry.id, step.name)
    try:
        finished = _Run(context, prepared, attempt, argv, log, before, sampler).finish()
        context.recorder.event(finished, **where)
        if finished.status == "ok" and finished.written_mb is not None:
            context.disk.took(prepared.spec.pack, finished.written_mb)
    except JournalError:
        raise
    except Exception as failure:  # what was started has an end in the journal, whatever a plugin or the system does
        finished = StepFinished(status="failed", reason=f"its end is not known: {type(failure).__name__}: {failure}")
        context.recorder.event(finished, **where)
    for probe, error in sampler.errors.items():
        context.recorder.warn(
            f"the probe {probe!r} could not be read: {error}",
            "its figures are missing",
            entry=entry.id,
            step=step.name,
        )
    return finished


@attrs.define
class _Run:
    context: NightContext
    prepared: PreparedEntry
    attempt: Attempt
    argv: tuple[str, ...]
    log: Path
    before: Mapping[str, artifacts.Stamp | None]
    sampler: Sampler

    def finish(self) -> StepFinished:
        from runq.processes import SpawnError

        context, attempt = self.context, self.attempt
        context.disk.begin_step()
        started = context.clock()
        try:
            child = context.spawn(
                self.argv,
                self.prepared,
                log=self.log,
                mark=(self.prepared.entry.id, attempt.step.name, attempt.number),
            )
        except SpawnError as error:
            reason = f"{error.message}. {error.remedy}"
            return self._event("failed", _unproven(reason), None, context.clock() - started)
        end, ended = self._watch(child, started)
        seconds = context.clock() - started
        full = context.disk.was_full or context.disk.full()
        status, evidence, proof = self._judge(end)
        if full and status not in ("ok", "interrupted"):
            evidence = attrs.evolve(evidence, reason=f"{NO_SPACE}: {evidence.reason}")
        return self._event(status, evidence, end, seconds, proof=proof, ended=ended)

    def _watch(self, child: Child, started: float) -> tuple[Exit, Ended]:
        """Watch the process; its whole tree is gone when this returns or raises."""
        from runq.processes import Tree, growth, watch

        context, step = self.context, self.attempt.step
        tree = Tree(child)
        why = "interrupted"
        beat = self.prepared.beats.get(step.name)
        heart = Heart(beat, lambda: growth(self.log, self.attempt.bundle), context.clock()) if beat else None

        sleeps = context.attention.sleeps

        def verdict() -> End | None:
            nonlocal sleeps
            if context.attention.skip_by is not None:
                return "skipped"
            if context.pace.over():
                return "deadline"
            if context.disk.full_for_long(context.clock()):
                return "full"
            if heart is not None and context.attention.sleeps != sleeps:
                heart.wake(context.clock())
            sleeps = context.attention.sleeps
            return "dead" if heart is not None and not heart.beats(context.clock()) else None

        def tick(_elapsed: float) -> None:
            tree.observe()
            context.servers.observe()
            reading = self.sampler.read()
            context.recorder.tick(
                entry=self.prepared.entry.id,
                step=step.name,
                seconds=context.clock() - started,
                memory_mb=reading,
            )

        try:
            context.recorder.event(
                StepSpawned(pid=child.pid, created_at=child.created_at, boot_id=context.boot_id),
                entry=self.prepared.entry.id,
                step=step.name,
                attempt=self.attempt.number,
            )
            why = watch(
                child,
                timeout_s=self.prepared.timeouts_s[step.name],
                stall_timeout_s=self.prepared.stalls_s[step.name],
                activity=lambda: growth(self.log, self.attempt.bundle),
                every_s=SAMPLE_EVERY_S,
                on_tick=tick,
                verdict=verdict,
                clock=context.clock,
                interrupts=context.interrupts,
            )
            self.sampler.read()  # a step may be over before the first tick, and its model still there
        finally:
            if heart is not None:
                heart.stop()
            ended = context.end_tree(tree)
        exit_code, signal = child.status()
        if heart is not None and beat is not None:
            if heart.refused:
                tell_refused(context, self.prepared, step.name, heart.refused)
            if why == "dead":
                tell_dead(context, self.prepared, step.name, heart.reason, failures=beat.failures)
        reason = heart.reason if heart is not None and why == "dead" else ""
        return Exit(
            why=why, exit_code=exit_code, signal=signal, endpoint=reason, by=context.attention.skip_by or ""
        ), ended

    def _judge(self, end: Exit) -> tuple[StepStatus, Evidence, artifacts.Proof]:
        from runq.processes import LIMIT_S, Interrupted, foreign

        entry, step, bundle = self.prepared.entry, self.attempt.step, self.attempt.bundle

        def check() -> Evidence:
            with foreign(LIMIT_S, lambda: hung("the harness's check", LIMIT_S)):
                return self.prepared.harness.check(entry, step, bundle)

        try:
            proof = artifacts.prove(bundle, self.before)
            status, evidence = classify(
                end,
                timeout_s=self.prepared.timeouts_s[step.name],
                stall_s=self.prepared.stalls_s[step.name],
                proof=proof,
                check=check,
            )
        except JournalError:
            raise
        except Interrupted:  # its end has to be told before the night's
            return "interrupted", _unproven("the night was interrupted while its artifacts were checked"), _NO_PROOF
        except RunqError as error:
            return "failed", _unproven(error.message), _NO_PROOF
        except (Exception, SystemExit) as error:  # a harness is a plugin: what it raises is this step's failure
            reason = f"its artifacts could not be checked: {type(error).__name__}: {error}"
            return "failed", _unproven(reason), _NO_PROOF
        return status, evidence, proof

    def _event(
        self,
        status: StepStatus,
        evidence: Evidence,
        end: Exit | None,
        seconds: float,
        *,
        proof: artifacts.Proof | None = None,
        ended: Ended | None = None,
    ) -> StepFinished:
        from runq.processes import growth

        return StepFinished(
            status=status,
            exit_code=end.exit_code if end else None,
            signal=end.signal if end else None,
            seconds=round(seconds, 3),
            reason=evidence.reason,
            artifacts=proof.artifacts if proof else (),
            outputs=artifacts.outputs(self.attempt.bundle),
            written_mb=round(growth(self.log, self.attempt.bundle)[0] / MB, 3),
            peak_mb={label: round(mb, 1) for label, mb in self.sampler.peak_mb.items()},
            model_delta_mb=self.sampler.delta_mb(self.attempt.baseline_mb),
            baseline_proven=self.attempt.baseline_proven,
            facts=dict(evidence.facts),
            metrics=tuple(evidence.metrics),
            log_tail=logs.tail(self.log) if status != "ok" else (),
            ended_pids=tuple(ended.ended_pids) if ended else (),
            survivors=tuple(ended.survivors) if ended else (),
            endpoint_dead=end is not None and end.why == "dead",
        )


_NO_PROOF = artifacts.Proof(artifacts=(), missing=(), stale=())
