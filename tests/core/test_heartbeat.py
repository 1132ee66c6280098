"""When an endpoint counts as dead: what its answers say, and how long the step must have been silent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.heartbeat import Answer, Beat, Pulse, Verdict, ask_before, judged
from runq.plugin import ModelSpec


def chat(**message: Any) -> str:
    return json.dumps({"choices": [{"message": message, "finish_reason": "length"}]})


@pytest.mark.parametrize(
    ("status", "text", "verdict", "reason"),
    [
        (200, chat(content="Hi"), "alive", ""),
        (200, chat(content="", reasoning_content="Hm"), "alive", ""),  # one token of a thinking model
        (200, chat(content=""), "alive", ""),  # the one token was a space
        (503, '{"error": {"message": "Loading model", "code": 503}}', "busy", "HTTP 503: Loading model"),
        (429, "slow down", "busy", "HTTP 429: slow down"),
        (401, '{"error": "no key"}', "refused", "HTTP 401: no key"),
        (404, '{"error": {"message": "model not found"}}', "refused", "HTTP 404: model not found"),
        (500, '{"error": "CUDA error"}', "dead", "HTTP 500: CUDA error"),
        (502, "", "dead", "HTTP 502: an empty body"),
        (200, '{"error": "insufficient system resources"}', "dead", "insufficient system resources"),
        (200, '{"choices": []}', "dead", "the answer is empty"),
        (200, "<html>ok</html>", "dead", "the answer is neither JSON nor server-sent events"),
    ],
)
def test_what_an_answer_says(status: int, text: str, verdict: Verdict, reason: str) -> None:
    assert judged(status, text) == Answer(verdict=verdict, reason=reason)


def beat(**changes: Any) -> Beat:
    given: dict[str, Any] = {"every_s": 60.0, "timeout_s": 120.0, "failures": 3}
    return Beat(base_url="http://user:pw@127.0.0.1:9/v1", model=ModelSpec(id="m"), **{**given, **changes})


def test_a_heartbeat_is_a_real_request_for_one_token() -> None:
    model = ModelSpec(id="m", extra_body={"think": False, "max_tokens": 4000, "stream": True})
    body = Beat(base_url="http://h/v1", model=model, every_s=1, timeout_s=1, failures=1).body()
    assert (body["model"], body["max_tokens"], body["stream"], body["think"]) == ("m", 1, False, False)
    assert beat().endpoint == "loopback:9"  # no credentials


class Script:
    """Answers in turn, each after so many seconds, on a clock of its own."""

    def __init__(self, *answers: tuple[Verdict, float]) -> None:
        self.answers = list(answers)
        self.now = 0.0
        self.asked: list[tuple[float, float]] = []

    def ask(self, _beat: Beat, *, timeout_s: float, sleep: Any) -> Answer:
        self.asked.append((self.now, timeout_s))
        verdict, seconds = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.now += seconds
        return Answer(verdict=verdict, reason=verdict)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def before(self, **changes: Any) -> Verdict:
        return ask_before(beat(**changes), sleep=self.sleep, clock=lambda: self.now, ask=self.ask).verdict


def test_before_a_step_the_endpoint_has_its_failures() -> None:
    dead = Script(("dead", 120.0))
    assert dead.before() == "dead"
    assert [at for at, _ in dead.asked] == [0.0, 122.0, 244.0]
    assert Script(("dead", 1.0), ("dead", 1.0), ("alive", 1.0)).before() == "alive"
    assert Script(("dead", 1.0), ("alive", 1.0)).before(failures=1) == "dead"
    refused = Script(("refused", 0.1))
    assert refused.before() == "refused" and len(refused.asked) == 1


def test_before_a_step_a_model_that_loads_is_waited_for_as_long_as_an_answer_may_take() -> None:
    loading = Script(*([("busy", 1.0)] * 9), ("alive", 1.0))
    assert loading.before(timeout_s=60.0) == "alive"
    # 1 s and a pause of 2 s each: the tenth question at 27 s still has 33 s.
    assert loading.asked[-1] == (27.0, 33.0)
    for_ever = Script(("busy", 1.0))
    assert for_ever.before(timeout_s=10.0, failures=2) == "dead"
    assert for_ever.now == 10.0 + 2.0 + 10.0


ticks = st.lists(
    st.tuples(st.sampled_from(["silent", "wrote"]), st.sampled_from(["dead", "alive", "busy"])), max_size=60
)


@given(ticks=ticks, every_s=st.integers(1, 5), failures=st.integers(1, 4))
def test_only_a_silent_step_with_a_silent_endpoint_is_given_up(
    ticks: list[tuple[str, Verdict]], every_s: int, failures: int
) -> None:
    """One tick a second; the endpoint is asked when that is due and answers within the tick."""
    pulse = Pulse(every_s=every_s, failures=failures, since=0.0, seen=0)
    written, last_life, in_vain = 0, 0, 0
    for now, (step, verdict) in enumerate(ticks, start=1):
        written += step == "wrote"
        pulse = pulse.looked(now, written)
        if step == "wrote":
            last_life, in_vain = now, 0
        if pulse.due(now):
            assert now - last_life >= every_s  # a step at work is never asked after
            pulse = pulse.answered(now, verdict)
            if verdict == "dead":
                in_vain += 1
            else:
                last_life, in_vain = now, 0
        assert pulse.failed == in_vain
        assert pulse.dead == (in_vain >= failures)
        if pulse.dead:
            assert now - last_life >= every_s * failures
            return


def test_an_endpoint_is_given_up_after_its_failures_and_not_before() -> None:
    pulse = Pulse(every_s=60.0, failures=3, since=0.0, seen="")
    asked = []
    for now in range(1, 1000):
        pulse = pulse.looked(now, "")
        if pulse.due(now):
            asked.append(now)
            pulse = pulse.answered(now, "dead")
        if pulse.dead:
            break
    assert asked == [60, 120, 180]
