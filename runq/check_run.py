"""One model of a check: evicted, settled, loaded by one tiny request, compared, evicted again, memory back."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import attrs

from runq.chat import ChatAnswer, parse_answer
from runq.check_context import UntilKilled
from runq.check_verdict import Findings, rule, same_model
from runq.endpoint_ready import EndpointReady, NotReadyError
from runq.http import HttpFailure, TimedOut, Unreachable, request_json
from runq.locks import endpoint_name
from runq.plugin import ResetOutcome, StartsServer, Target, TellsContext
from runq.prepared import PreparedEntry
from runq.sampling import Sampler
from runq_schemas.errors import JournalError
from runq_schemas.events import CheckedModel, SettleFinished

if TYPE_CHECKING:
    from runq.night_context import NightContext

PROMPT = "Answer with the one word: ready"
MAX_TOKENS = 16
"""Enough for the word. A thinking model may spend all of them on reasoning, which is as good a proof of a load."""

BUSY_WAIT_S = 2.0
"""Between two tries while a server says that it is loading or busy (HTTP 503)."""

LIST_TIMEOUT_S = 10.0
"""For the list of offered models, which is only there for a remedy."""

KEPT_SHARE = 0.5
"""The part of a model's memory from which "it is still held" is said, where no reset can prove it. Half of it tells
a model that stayed from another program that grew, and from one that leaves its server's buffers behind."""


@attrs.frozen(kw_only=True)
class CheckItem:
    """One distinct model on one endpoint; ``prepared.entry.id`` is its number in the check.

    Args:
        target: ``None`` when the harness names no endpoint: then the model is not asked.
        role: the step that needs it.
    """

    prepared: PreparedEntry
    target: Target | None
    role: str


@attrs.frozen(kw_only=True)
class _Cleared:
    """An endpoint after a reset and settling."""

    outcome: ResetOutcome
    settled: SettleFinished

    @property
    def mb(self) -> float | None:
        """The first probe's figure."""
        return next(iter(self.settled.baseline_mb.values()), None)


@attrs.define
class CheckRun:
    """The models of a check, one after another."""

    context: NightContext
    load_timeout_s: float
    _asking: CheckItem | None = attrs.field(default=None, init=False)

    def model(self, item: CheckItem) -> CheckedModel:
        """Check one model and record what was found.

        Raises:
            Interrupted: a signal asked to stop.
            JournalError: the journal cannot be written.
        """
        ready = EndpointReady(self.context, item.prepared)
        before = self._cleared(ready, item.role)
        started = self.context.clock()
        self._asking = item
        sampler = self.context.sampler(item.prepared.probes, item.prepared.entry.id, item.role)
        answer, failure, remedy = self._ask(ready, item, sampler)
        seconds = self.context.clock() - started
        sampler.read()
        self.context.samples.flush()
        loaded, context_length = self._registry(ready, item)
        elsewhere = self._reset_endpoint_differs(ready, item)
        offered = () if failure else self._offered(item, answer, None if elsewhere else loaded)
        after = self._cleared(ready, item.role)
        self._asking = None
        found = Findings(
            asked=item.prepared.entry.model.id,
            endpoint=item.target.base_url if item.target else None,
            failure=failure,
            failure_remedy=remedy,
            answer=answer,
            started_by_us=isinstance(item.prepared.reset, StartsServer),
            loaded_models=loaded,
            offered=offered,
            before=before.outcome.verdict,
            after=after.outcome.verdict,
            reset_reason=before.outcome.reason,
            evict_reason=after.outcome.reason,
            can_verify=item.prepared.reset.can_verify,
            reset_elsewhere=elsewhere,
            memory_read=before.mb is not None and after.mb is not None,
            memory_back=_memory_back(
                before,
                after,
                peak_mb=next(iter(sampler.peak_mb.values()), None),
                epsilon_mb=item.prepared.spec.settle.epsilon_mb,
                proven=after.outcome.verdict == "verified" and not elsewhere,
            ),
        )
        row = self._row(item, found, before, after, sampler, seconds, context_length)
        self.context.recorder.event(row, entry=item.prepared.entry.id)
        return row

    def leave(self) -> None:
        """After an interruption: evict what was being loaded, as far as one more Ctrl-C lets it.

        A server that runq started is ended with all the others.
        """
        item, self._asking = self._asking, None
        if item is None or isinstance(item.prepared.reset, StartsServer) or self.context.interrupts.kill_now:
            return
        from runq.processes import Interrupted

        self.context.recorder.notice("stopping: what the check has loaded is evicted; Ctrl-C again leaves it there")
        patient = attrs.evolve(self.context, interrupts=UntilKilled(self.context.interrupts))
        with contextlib.suppress(Interrupted):
            EndpointReady(patient, item.prepared).reset(item.role)

    def _row(
        self,
        item: CheckItem,
        found: Findings,
        before: _Cleared,
        after: _Cleared,
        sampler: Sampler,
        seconds: float,
        context_length: int | None,
    ) -> CheckedModel:
        ruling = rule(found)
        peak = next(iter(sampler.peak_mb.values()), None)
        asked = item.target is not None and not found.failure
        return CheckedModel(
            model=found.asked,
            loaded=asked and found.answer.loaded,
            status=found.answer.status if asked else "error",
            content_chars=len(found.answer.content),
            ram_before_mb=before.mb,
            ram_after_mb=None if peak is None else round(peak, 1),
            ram_delta_mb=None if peak is None or before.mb is None else round(peak - before.mb, 1),
            ram_back_mb=after.mb,
            baseline_proven=before.settled.proven,
            role=item.role,
            endpoint=found.endpoint,
            answered_by=found.answer.model,
            loaded_models=found.loaded_models,
            context_length=context_length,
            seconds=round(seconds, 3),
            reset_verdict=found.before,
            evict_verdict=found.after,
            memory_back=found.memory_back,
            verdict=ruling.verdict,
            problem=ruling.problem,
            remedy=ruling.remedy,
        )

    def _cleared(self, ready: EndpointReady, role: str) -> _Cleared:
        outcome = ready.reset(role)
        return _Cleared(outcome=outcome, settled=ready.settle(outcome))

    def _ask(self, ready: EndpointReady, item: CheckItem, sampler: Sampler) -> tuple[ChatAnswer, str, str]:
        """Load the model by one request. Returns the answer, or why there is none and what to do about it."""
        try:
            ready.start_server(item.prepared.entry.model)
        except NotReadyError as error:
            log = self.context.log_path(item.prepared.entry.id, "server", 1)
            return ChatAnswer(), error.reason, f"run the server's command line by hand; its whole output is in {log}"
        except JournalError:
            raise
        except (Exception, SystemExit) as error:  # a backend is a plugin: what it raises costs its model
            return ChatAnswer(), f"the server did not start: {type(error).__name__}: {error}", "see the plugin's manual"
        if item.target is None:
            return ChatAnswer(), "", ""
        try:
            return self._request(item, item.target, sampler), "", ""
        except TimedOut:
            return (
                ChatAnswer(),
                f"no answer within {self.load_timeout_s:g} s",
                "look at the server's log; a slow load wants a higher --timeout",
            )
        except Unreachable as error:
            return ChatAnswer(), str(error), f"start the server behind {item.target.base_url}, or correct the URL"
        except HttpFailure as error:
            return ChatAnswer(), str(error), f"look at the log of the server behind {item.target.base_url}"

    def _request(self, item: CheckItem, target: Target, sampler: Sampler) -> ChatAnswer:
        model = item.prepared.entry.model
        body: dict[str, Any] = {
            "model": model.id,
            "messages": [{"role": "user", "content": PROMPT}],
            "max_tokens": MAX_TOKENS,
            "temperature": 0,
            "stream": False,
            **model.extra_body,
        }
        deadline = self.context.clock() + self.load_timeout_s
        while True:
            reply = request_json(
                "POST",
                f"{target.base_url.rstrip('/')}/chat/completions",
                body=body,
                timeout_s=max(0.1, deadline - self.context.clock()),
                headers=_bearer(target),
                sleep=lambda seconds: self._waiting(item, sampler, seconds),
            )
            answer = parse_answer(reply.status, reply.text)
            if reply.status != 503 or self.context.clock() + BUSY_WAIT_S >= deadline:
                return answer
            self.context.interrupts.sleep(BUSY_WAIT_S)

    def _waiting(self, item: CheckItem, sampler: Sampler, seconds: float) -> None:
        self.context.interrupts.sleep(seconds)
        self.context.servers.observe()
        reading = sampler.read()
        self.context.recorder.tick(entry=item.prepared.entry.id, step="check", seconds=0.0, memory_mb=reading)

    def _registry(self, ready: EndpointReady, item: CheckItem) -> tuple[tuple[str, ...] | None, int | None]:
        """What the reset backend lists as loaded, and the model's context length where it tells."""
        backend, asked = item.prepared.reset, item.prepared.entry.model.id
        names = ready.listed()
        lengths: dict[str, int] = {}
        if isinstance(backend, TellsContext):
            lengths = dict(ready.asked_backend(backend.context_lengths) or {})
        length = next((tokens for name, tokens in lengths.items() if same_model(asked, name)), None)
        return None if names is None else tuple(names), length

    def _reset_endpoint_differs(self, ready: EndpointReady, item: CheckItem) -> bool:
        """Whether the reset asks another server than the one that answers, so that its list says nothing of it."""
        backend = item.prepared.reset
        url = ready.asked_backend(lambda context: backend.endpoint(context.env))
        if item.target is None or not url:
            return False
        return endpoint_name(url) != endpoint_name(item.target.base_url)

    def _offered(self, item: CheckItem, answer: ChatAnswer, loaded: tuple[str, ...] | None) -> tuple[str, ...]:
        """The ids the server offers, asked for only where a remedy may need them."""
        target, asked = item.target, item.prepared.entry.model.id
        right = not answer.model or same_model(asked, answer.model)
        is_listed = loaded is None or any(same_model(asked, name) for name in loaded)
        if target is None or (answer.status != "error" and right and is_listed):
            return ()
        try:
            reply = request_json(
                "GET",
                f"{target.base_url.rstrip('/')}/models",
                timeout_s=LIST_TIMEOUT_S,
                headers=_bearer(target),
                sleep=self.context.interrupts.sleep,
            )
        except HttpFailure:
            return ()
        data = reply.body.get("data") if isinstance(reply.body, dict) else None
        listed = data if isinstance(data, list) else []
        return tuple(str(one["id"]) for one in listed if isinstance(one, dict) and "id" in one)


def _memory_back(before: _Cleared, after: _Cleared, *, peak_mb: float | None, epsilon_mb: float, proven: bool) -> bool:
    """Whether memory came back after the eviction.

    As low as before is enough. Above that it must have settled; and where no reset proves the model gone, a settled
    level is believed only when it is not the model that is still there.
    """
    if before.mb is None or after.mb is None:
        return False
    risen = after.mb - before.mb
    if risen <= epsilon_mb:
        return True
    if after.settled.status != "settled":
        return False
    return proven or peak_mb is None or risen <= KEPT_SHARE * (peak_mb - before.mb)


def _bearer(target: Target) -> dict[str, str]:
    return {"Authorization": f"Bearer {target.api_key}"} if target.api_key else {}
