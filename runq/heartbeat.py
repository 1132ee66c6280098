"""Whether an endpoint still answers: a real request for one token, because a port that accepts proves nothing.

The rule, and why. A step that writes to its log or its bundle is at work, and so is its endpoint: it is not asked. Many
servers answer one request at a time, so a heartbeat beside a working step would wait in line behind a long answer,
time out, and condemn a server for being busy; and it would slow down what is being measured. So the endpoint is asked
only when the step has been silent for ``every_s`` seconds, and counts as dead after ``failures`` unanswered requests in
a row, the step silent all the while. Whatever the step writes meanwhile begins the count anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

from runq.chat import parse_answer
from runq.locks import endpoint_name
from runq.plugin import ModelSpec, Step, Target
from runq_schemas.queue import HeartbeatSpec

Verdict = Literal["alive", "busy", "refused", "dead"]
"""Alive: a model answered. Busy: it says that it loads, or that too many ask. Refused: the request is wrong for it,
which says nothing about the model. Dead: no answer in time, none that is whole, or an error of the server."""

_BUSY = (429, 503)
"""HTTP statuses of a server that works: too many requests (RFC 6585), and llama.cpp's and llama-swap's word for a model
that is still being loaded."""

PAUSE_S = 2.0
"""Seconds between two questions before a step, when nothing else goes on."""


@attrs.frozen(kw_only=True)
class Beat:
    """Where and how often an endpoint is asked for one token."""

    base_url: str
    model: ModelSpec
    every_s: float
    timeout_s: float
    failures: int
    api_key: str | None = attrs.field(default=None, repr=False)

    @property
    def endpoint(self) -> str:
        """Its name without path and credentials."""
        return endpoint_name(self.base_url)

    def body(self) -> dict[str, Any]:
        """The request, as the check sends it, for a single token."""
        return {
            "model": self.model.id,
            "messages": [{"role": "user", "content": "Hi"}],
            "temperature": 0,
            **self.model.extra_body,
            "max_tokens": 1,
            "stream": False,
        }


def beats_of(
    spec: HeartbeatSpec, steps: Sequence[Step], targets: Sequence[Target], model: ModelSpec
) -> Mapping[str, Beat]:
    """The heartbeat of each step that talks to an endpoint.

    Those that the harness names an endpoint for; where it names none at all, every step, if the queue file has a
    ``url``. Empty when neither says which endpoint it is.
    """
    named = {target.step: target for target in reversed(targets)}
    beats: dict[str, Beat] = {}
    for step in steps:
        target = named.get(step.name)
        url = spec.url or (target.base_url if target else None)
        if url is None or (named and target is None):
            continue
        asked = (target.model if target else None) or step.model or model
        same = target is not None and endpoint_name(url) == endpoint_name(target.base_url)
        beats[step.name] = Beat(
            base_url=url,
            model=asked if spec.model is None else ModelSpec(id=spec.model),
            every_s=spec.every_s,
            timeout_s=spec.timeout_s,
            failures=spec.failures,
            api_key=target.api_key if target and same else None,  # never to another server than it is for
        )
    return beats


@attrs.frozen(kw_only=True)
class Answer:
    """What came of one question."""

    verdict: Verdict
    reason: str = ""


def judged(status: int, text: str) -> Answer:
    """What an HTTP reply says about the endpoint."""
    answer = parse_answer(status, text)
    if status in _BUSY:
        return Answer(verdict="busy", reason=answer.error)
    if 400 <= status < 500:
        return Answer(verdict="refused", reason=answer.error)
    if answer.error:
        return Answer(verdict="dead", reason=answer.error)
    if not answer.loaded:
        return Answer(verdict="dead", reason="the answer is empty")
    return Answer(verdict="alive")


def ask(beat: Beat, *, timeout_s: float, sleep: Callable[[float], None]) -> Answer:
    """Ask for one token and judge what comes. What ``sleep`` raises while it waits is passed on."""
    from runq.http import HttpFailure, request_json

    try:
        reply = request_json(
            "POST",
            f"{beat.base_url.rstrip('/')}/chat/completions",
            body=beat.body(),
            timeout_s=timeout_s,
            headers={"Authorization": f"Bearer {beat.api_key}"} if beat.api_key else {},
            sleep=sleep,
        )
    except HttpFailure as failure:
        return Answer(verdict="dead", reason=str(failure))
    return judged(reply.status, reply.text)


def ask_before(
    beat: Beat, *, sleep: Callable[[float], None], clock: Callable[[], float], ask: Callable[..., Answer] = ask
) -> Answer:
    """Ask before a step: ``failures`` times at most, each with its whole ``timeout_s`` for a model that still loads."""
    answer = Answer(verdict="dead")
    for number in range(beat.failures):
        if number:
            sleep(PAUSE_S)
        deadline = clock() + beat.timeout_s
        answer = ask(beat, timeout_s=beat.timeout_s, sleep=sleep)
        while answer.verdict == "busy" and clock() + PAUSE_S < deadline:
            sleep(PAUSE_S)
            answer = ask(beat, timeout_s=max(0.1, deadline - clock()), sleep=sleep)
        if answer.verdict in ("alive", "refused"):
            return answer
    return attrs.evolve(answer, verdict="dead")


@attrs.frozen(kw_only=True)
class Pulse:
    """What is known of the endpoint of a running step. Times are seconds of one monotonic clock.

    ``since`` is when the step last wrote or the endpoint last answered, ``asked`` when it was last asked in vain;
    ``failed`` how many questions in a row were in vain; ``seen`` what the step had written when it was last looked at.
    """

    every_s: float
    failures: int
    since: float
    seen: object
    asked: float | None = None
    failed: int = 0

    def looked(self, now: float, activity: object) -> Pulse:
        """After a look at what the step has written."""
        if activity == self.seen:
            return self
        return attrs.evolve(self, since=now, seen=activity, asked=None, failed=0)

    def due(self, now: float) -> bool:
        """Whether the endpoint is to be asked."""
        return now - (self.since if self.asked is None else self.asked) >= self.every_s

    def answered(self, now: float, verdict: Verdict) -> Pulse:
        """After a question to which the step wrote nothing."""
        if verdict == "dead":
            return attrs.evolve(self, asked=now, failed=self.failed + 1)
        return attrs.evolve(self, since=now, asked=None, failed=0)

    @property
    def dead(self) -> bool:
        """Whether the endpoint counts as dead."""
        return self.failed >= self.failures


class _Over(BaseException):
    """The step has ended; nobody waits for the answer any more."""


class _Question:
    """One question in a thread of its own: the watch over the step goes on meanwhile."""

    def __init__(self, beat: Beat) -> None:
        self._over = threading.Event()
        self._answer: Answer | None = None
        self._thread = threading.Thread(target=self._run, args=(beat,), name="runq-heartbeat", daemon=True)
        self._thread.start()

    def answer(self) -> Answer | None:
        """The answer; ``None`` while there is none."""
        return self._answer

    def drop(self) -> None:
        """Give it up: the connection is closed within a tenth of a second."""
        self._over.set()

    def _run(self, beat: Beat) -> None:
        def sleep(_seconds: float) -> None:
            if self._over.is_set():
                raise _Over

        try:
            self._answer = ask(beat, timeout_s=beat.timeout_s, sleep=sleep)
        except _Over:
            pass
        except Exception as error:  # a thread has no caller: a question that cannot be asked is in vain
            self._answer = Answer(verdict="dead", reason=f"{type(error).__name__}: {error}")


class Heart:
    """The heartbeat of a running step's endpoint, asked at every tick of its watch."""

    def __init__(self, beat: Beat, activity: Callable[[], object], now: float) -> None:
        self._beat = beat
        self._activity = activity
        self.pulse = Pulse(every_s=beat.every_s, failures=beat.failures, since=now, seen=activity())
        self._next_look = now
        self._question: _Question | None = None
        self.reason = ""
        self.refused = ""

    def beats(self, now: float) -> bool:
        """Whether the endpoint is to be taken for alive. Never waits."""
        if self._question is not None:
            answer = self._question.answer()
            if answer is None:
                return True
            self._question = None
            self.pulse = self.pulse.looked(now, self._activity())
            if self.pulse.since < now:  # it wrote nothing while the question was open
                self.pulse = self.pulse.answered(now, answer.verdict)
                self.reason = answer.reason
                self.refused = answer.reason if answer.verdict == "refused" else self.refused
        elif self.pulse.due(now) or now >= self._next_look:
            self.pulse = self.pulse.looked(now, self._activity())
            # A bundle may hold many files: ten looks per limit, as the watch for stalls has it.
            self._next_look = now + self._beat.every_s / 10
            if self.pulse.due(now):
                self._question = _Question(self._beat)
        return not self.pulse.dead

    def wake(self, now: float) -> None:
        """The machine slept: ask at the next beat, whatever the step has written before."""
        self.pulse = attrs.evolve(self.pulse, since=now - self._beat.every_s, seen=self._activity(), asked=None)

    def stop(self) -> None:
        """The step has ended."""
        if self._question is not None:
            self._question.drop()
