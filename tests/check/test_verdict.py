"""What the figures of a check mean, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from runq.chat import ChatAnswer
from runq.check_run import _Cleared, _memory_back
from runq.check_verdict import Findings, Ruling, rule, same_model
from runq.plugin import ResetOutcome
from runq_schemas.events import SettleFinished


@pytest.mark.parametrize(
    ("asked", "name", "same"),
    [
        ("qwen/qwen3-8b", "qwen/qwen3-8b", True),
        ("Qwen/Qwen3-8B", " qwen/qwen3-8b ", True),
        ("qwen3", "qwen3:latest", True),  # Ollama
        ("qwen3:latest", "qwen3", True),
        ("qwen3:8b", "qwen3:8b", True),
        ("qwen3", "qwen3:8b", False),
        ("qwen3:8b", "qwen3:4b", False),
        ("qwen/qwen3-8b", "qwen/qwen3-8b:2", True),  # LM Studio's second instance
        ("qwen/qwen3-8b:2", "qwen/qwen3-8b", False),
        ("qwen3-8b", "/models/qwen3-8b.gguf", True),  # llama.cpp
        ("models/qwen3-8b.gguf", "qwen3-8b", True),
        ("a/qwen3-8b.gguf", "b/qwen3-8b.gguf", True),
        ("a/qwen3-8b", "b/qwen3-8b", False),
        ("qwen3-8b", "qwen/qwen3-8b", False),  # the id must be the server's own
        ("qwen3-8b", "qwen3-8b-instruct", False),
        ("qwen3-8b", "", False),
    ],
)
def test_same_model(asked: str, name: str, same: bool) -> None:
    assert same_model(asked, name) is same


OK = ChatAnswer(content="ready", model="qwen3:8b", finish_reason="stop")


def ruled(**changes: Any) -> Ruling:
    fields: dict[str, Any] = {
        "asked": "qwen3:8b",
        "endpoint": "http://127.0.0.1:1/v1",
        "answer": OK,
        "loaded_models": ("qwen3:8b",),
        "before": "verified",
        "after": "verified",
    }
    return rule(Findings(**{**fields, **changes}))


def test_nothing_wrong() -> None:
    assert ruled() == Ruling(verdict="ok", problem="", remedy="")
    assert ruled(loaded_models=None).verdict == "ok", "a server that cannot tell is no fault"
    assert ruled(answer=ChatAnswer(reasoning="Hmm", finish_reason="length")).verdict == "ok"
    assert ruled(before="unverified", reset_reason="unseen").verdict == "ok", "the baseline bears its own mark"


BUT_NOTHING = "it answered, but the server lists nothing as loaded"


@pytest.mark.parametrize(
    ("changes", "verdict", "problem", "remedy"),
    [
        ({"failure": "no answer within 3 s", "failure_remedy": "wait"}, "fail", "no answer within 3 s", "wait"),
        ({"answer": ChatAnswer(error="out of memory")}, "fail", "out of memory", "load the model there by hand"),
        ({"answer": ChatAnswer(error="HTTP 403: no")}, "fail", "HTTP 403: no", "`api_key`"),
        ({"answer": ChatAnswer(error="HTTP 503: loading")}, "fail", "HTTP 503: loading", "--timeout"),
        (
            {"answer": ChatAnswer(error="no such model"), "offered": ("qwen3:8b-q4", "phi4")},
            "fail",
            "no such model",
            "did you mean 'qwen3:8b-q4'?",
        ),
        ({"answer": ChatAnswer(content="x", model="phi4")}, "fail", "phi4 answered in its place", "look at"),
        ({"loaded_models": ("phi4", "mi")}, "fail", "it answered, but the server lists phi4, mi as loaded", "look at"),
        ({"loaded_models": ()}, "fail", BUT_NOTHING, "look at"),
        ({"loaded_models": (), "offered": ("other",)}, "fail", BUT_NOTHING, "it offers other"),
        (
            {"answer": ChatAnswer(model="qwen3:8b", finish_reason="stop")},
            "fail",
            "it answered with an empty text",
            "chat template",
        ),
        ({"before": "failed", "reset_reason": "busy"}, "fail", "could not be evicted: busy", "baselines"),
        ({"after": "failed", "evict_reason": "busy"}, "fail", "it could not be evicted: busy", "by hand"),
        ({"memory_back": False}, "fail", "its memory did not come back", "restart the server"),
        ({"memory_back": False, "reset_elsewhere": True}, "fail", "did not come back", "this endpoint's address"),
        ({"memory_back": False, "memory_read": False}, "warn", "memory could not be read", "`probes:`"),
        ({"loaded_models": ("qwen3:8b", "phi4")}, "warn", "loaded beside it: phi4", "another program"),
        ({"endpoint": None, "answer": ChatAnswer()}, "warn", "names no endpoint", "`endpoint:`"),
        ({"after": "unverified", "evict_reason": "unseen"}, "warn", "that it is gone: unseen", "not proven"),
        ({"after": "unverified", "can_verify": False}, "warn", "that it is gone", "a backend that can verify"),
    ],
)
def test_what_is_wrong_and_what_to_do(changes: dict[str, Any], verdict: str, problem: str, remedy: str) -> None:
    ruling = ruled(**changes)
    assert ruling.verdict == verdict
    assert problem in ruling.problem and remedy in ruling.remedy


def test_the_gravest_comes_first() -> None:
    worst: dict[str, Any] = {
        "failure": "dead",
        "answer": ChatAnswer(error="error"),
        "before": "failed",
        "after": "failed",
        "memory_back": False,
    }
    problems = []
    for name in (None, "failure", "answer", "before", "after", "memory_back"):
        worst.pop(name, None)
        problems.append(ruled(**worst).problem.split(":")[0])
    assert problems == [
        "dead",
        "error",
        "what was loaded before could not be evicted",
        "it could not be evicted",
        "its memory did not come back after the eviction",
        "",
    ]


def test_a_server_started_for_this_model_may_call_it_what_it_likes() -> None:
    odd = ChatAnswer(content="ready", model="gpt-3.5-turbo")
    assert ruled(answer=odd, started_by_us=True).verdict == "ok"
    assert ruled(answer=odd).verdict == "fail"


def test_a_model_that_runs_elsewhere_is_not_looked_for_in_the_list() -> None:
    for cloud in ("big:cloud", "gpt-oss:120b-cloud"):
        assert ruled(asked=cloud, answer=ChatAnswer(content="x", model=cloud), loaded_models=()).verdict == "ok"
    assert ruled(reset_elsewhere=True, loaded_models=("phi4",)).verdict == "ok"


def cleared(mb: float | None, status: Any = "settled", verdict: Any = "verified") -> _Cleared:
    settled = SettleFinished(
        status=status, proven=True, waited_s=1.0, baseline_mb={} if mb is None else {"system": mb}, probes=()
    )
    return _Cleared(outcome=ResetOutcome(verdict=verdict), settled=settled)


@pytest.mark.parametrize(
    ("before", "after", "status", "peak", "proven", "back"),
    [
        (4000.0, 4100.0, "settled", 12000.0, False, True),
        (4000.0, 4200.0, "timeout", 12000.0, False, True),  # within epsilon, restless or not
        (4000.0, 4200.1, "timeout", 12000.0, True, False),
        (4000.0, 12000.0, "settled", 12000.0, True, True),  # proven gone: other programs grew
        (4000.0, 12000.0, "settled", 12000.0, False, False),  # nothing proves it: the model is still there
        (4000.0, 8000.0, "settled", 12000.0, False, True),  # half of it is left: a doubt is no proof either
        (4000.0, 8000.1, "settled", 12000.0, False, False),
        (4000.0, 12000.0, "dirty", 12000.0, True, False),
        (4000.0, 5000.0, "settled", None, False, True),
        (None, 4000.0, "settled", 12000.0, True, False),
        (4000.0, None, "settled", 12000.0, True, False),
    ],
)
def test_whether_memory_is_back(
    before: float | None, after: float | None, status: str, peak: float | None, proven: bool, back: bool
) -> None:
    found = _memory_back(cleared(before), cleared(after, status), peak_mb=peak, epsilon_mb=200.0, proven=proven)
    assert found is back
