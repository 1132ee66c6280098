"""Before a step: evict, prove it, wait until memory is back, record the baseline, start the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import attrs

from runq.plugin import ModelSpec, PluginError, ResetContext, ResetOutcome, StartsServer, Step
from runq.prepared import PreparedEntry
from runq.settling import Settling, too_little_free
from runq_schemas.errors import JournalError, RunqError
from runq_schemas.events import (
    CooldownStarted,
    ResetFinished,
    ResetStarted,
    SettleFinished,
)

if TYPE_CHECKING:
    from runq.night_context import NightContext


T = TypeVar("T")


class NotReadyError(Exception):
    """The endpoint is not fit for the entry's next step; ``stop_night`` when the queue file says so."""

    def __init__(self, reason: str, *, status: str, stop_night: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.stop_night = stop_night


@attrs.frozen(kw_only=True)
class Baseline:
    """Memory after the reset, per probe, in MB, and whether it is proven clean.

    ``event`` is the number of the `settle.finished` that says so, ``entry`` the entry that it was made for.
    """

    mb: Mapping[str, float]
    proven: bool
    event: int | None = None
    entry: int | None = None


def why_dirty(outcome: ResetOutcome, settled: SettleFinished, *, can_verify: bool) -> str:
    """Why the baseline is not clean in the sense of ``on_dirty``; empty when it is.

    A backend that cannot verify at all, such as ``none``, is no reason by itself.
    """
    if outcome.verdict == "failed":
        return outcome.reason or "the reset failed"
    if settled.status == "dirty":
        loaded = sorted({name for probe in settled.probes for name in probe.still_loaded or ()})
        return f"still loaded: {', '.join(loaded)}" if loaded else "memory stayed above the proven baseline"
    if settled.status == "timeout":
        return "memory did not settle"
    if outcome.verdict == "unverified" and can_verify:
        return outcome.reason or "the reset could not be verified"
    return ""


@attrs.define
class EndpointReady:
    """Makes the endpoint of one entry ready."""

    context: NightContext
    prepared: PreparedEntry
    settled_event: int | None = attrs.field(default=None, init=False)
    reset_event: int = attrs.field(default=0, init=False)

    def before(self, step: Step) -> Baseline:
        """Reset, settle, cool down and start the server for a step.

        Raises:
            NotReadyError: ``on_dirty`` says not to go on, too little memory is free, or the server did not start.
        """
        policy = self.prepared.spec.on_dirty
        tries = 2 if policy == "retry" else 1
        for number in range(1, tries + 1):
            outcome = self.reset(step.name)
            settled = self.settle(outcome)
            dirty = why_dirty(outcome, settled, can_verify=self.prepared.reset.can_verify)
            if not dirty:
                break
            self._warn_dirty(dirty, outcome, again=number < tries)
        if dirty and policy in ("skip", "stop"):
            raise NotReadyError(f"the baseline is not clean: {dirty}", status="skipped", stop_night=policy == "stop")
        little = too_little_free(settled.free_mb, self.prepared.spec.min_free_mb)
        if little:
            raise NotReadyError(little, status="skipped")
        self._cooldown()
        self.start_server(step.model or self.prepared.entry.model)
        return Baseline(
            mb=settled.baseline_mb,
            proven=settled.proven,
            event=self.settled_event,
            entry=self.prepared.entry.id,
        )

    def _warn_dirty(self, dirty: str, outcome: ResetOutcome, *, again: bool) -> None:
        then = "the reset is tried once more" if again else f"on_dirty: {self.prepared.spec.on_dirty}"
        self.context.recorder.warn(
            f"the baseline is not clean: {dirty} ({then})", outcome.remedy, entry=self.prepared.entry.id
        )

    def reset_context(self) -> ResetContext:
        """What the backend is handed."""
        return ResetContext(
            entry=self.prepared.entry,
            supervisor=self.context.servers.for_entry(self.prepared),
            sleep=self._sleep,
            clock=self.context.clock,
            env=self.context.helper_env(self.prepared, self.reset_event),
        )

    def _sleep(self, seconds: float) -> None:
        from runq.processes import ours

        with ours():
            self.context.interrupts.sleep(seconds)

    def reset(self, before_step: str) -> ResetOutcome:
        """Evict and record what came of it; whatever the backend raises is a failed reset."""
        from runq.processes import LIMIT_S, foreign

        recorder, entry = self.context.recorder, self.prepared.entry.id
        backend, name = self.prepared.reset, self.prepared.spec.reset.name
        self.reset_event = recorder.event(ResetStarted(backend=name, before_step=before_step), entry=entry)
        started = self.context.clock()
        if not isinstance(backend, StartsServer):
            self.context.servers.stop_all()  # of an earlier entry with another backend
        limit_s = max(LIMIT_S, 4 * float(getattr(backend, "timeout_s", 0)))
        try:
            with foreign(limit_s, lambda: hung("the reset", limit_s)):
                outcome = backend.reset(self.reset_context())
        except JournalError:
            raise
        except RunqError as error:
            outcome = ResetOutcome(verdict="failed", reason=error.message, remedy=error.remedy)
        except (Exception, SystemExit) as error:  # a backend is a plugin: what it raises is a failed reset
            outcome = ResetOutcome(verdict="failed", reason=f"{type(error).__name__}: {error}")
        self.context.interrupts.check()
        recorder.event(
            ResetFinished(
                backend=name,
                verdict=outcome.verdict,
                loaded_before=outcome.loaded_before,
                loaded_after=outcome.loaded_after,
                seconds=round(self.context.clock() - started, 3),
                reason=outcome.reason,
                remedy=outcome.remedy,
                details=dict(outcome.details),
            ),
            entry=entry,
        )
        # What `on_dirty` speaks of is warned of there. Here is what else the backend advises: a verification that could
        # be configured, a server that does not run and so has nothing loaded.
        advises = outcome.verdict == "verified" or not backend.can_verify
        if outcome.remedy and outcome.verdict != "failed" and advises:
            recorder.warn(outcome.reason, outcome.remedy, entry=entry)
        return outcome

    def _loaded(self, outcome: ResetOutcome) -> Sequence[str] | None:
        """The models still there; ``[]`` only where the reset was verified, ``None`` where nobody can tell."""
        names = self.listed()
        return names or ([] if outcome.verdict == "verified" else None)

    def listed(self) -> Sequence[str] | None:
        """What the backend lists as loaded now; ``None`` when it cannot tell."""
        return self.asked_backend(self.prepared.reset.loaded)

    def asked_backend(self, question: Callable[[ResetContext], T]) -> T | None:
        """A backend's answer; ``None`` where it raises: what cannot answer now has not proven anything."""
        from runq.processes import LIMIT_S, foreign

        try:
            with foreign(LIMIT_S, lambda: hung("the backend", LIMIT_S)):
                return question(self.reset_context())
        except JournalError:
            raise
        except (Exception, SystemExit):
            return None

    def settle(self, outcome: ResetOutcome) -> SettleFinished:
        """Wait until memory is back and record the baseline."""
        settling = Settling(self.context, self.prepared)
        finished, self.settled_event = settling.finish(lambda: self._loaded(outcome))
        return finished

    def _cooldown(self) -> None:
        seconds = self.prepared.spec.cooldown_s
        if seconds > 0:
            self.context.recorder.event(CooldownStarted(seconds=seconds), entry=self.prepared.entry.id)
            self.context.interrupts.sleep(seconds)

    def start_server(self, model: ModelSpec) -> None:
        """Start the model's server where the backend has one.

        Raises:
            NotReadyError: it did not start; nothing of it is left.
        """
        from runq.processes import foreign

        backend = self.prepared.reset
        if not isinstance(backend, StartsServer):
            return
        try:
            with foreign():  # it has its own `start_timeout_s`, and a large model may take its time
                backend.start(self.reset_context(), model)
        except JournalError:
            raise
        except RunqError as error:
            self.context.servers.stop_all()
            remedy = f". {error.remedy}" if error.remedy else ""
            raise NotReadyError(
                f"the server for {model.id} did not start: {error.message}{remedy}", status="failed"
            ) from error
        except BaseException:
            self.context.servers.stop_all()
            raise


def hung(what: str, limit_s: float) -> PluginError:
    """The error for a plugin that did not come back."""
    return PluginError(f"{what} did not come back within {limit_s:g} s", remedy="it hangs: look at its plugin")
