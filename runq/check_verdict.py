"""What the figures of a check mean: pure rules from what was found to a verdict with a remedy."""

from __future__ import annotations

import difflib

import attrs

from runq.chat import ChatAnswer
from runq_schemas.event_parts import Verdict
from runq_schemas.events import CheckVerdict


@attrs.frozen(kw_only=True)
class Findings:
    """What was found of one model.

    Args:
        asked: the model id of the queue file.
        endpoint: the base URL; ``None`` when the harness names none, and then nothing was asked.
        failure: why no answer came (unreachable, no time, the server did not start); empty when one came.
        failure_remedy: what to do about it.
        answer: the answer.
        started_by_us: runq started the server for this very model, so its name for it means nothing.
        loaded_models: what the reset backend lists after the answer; ``None`` when it cannot tell.
        offered: the ids that the server offers, for the remedy of a wrong one.
        before, after: the reset's verdict before the load, and of the eviction after it.
        reset_reason, evict_reason: why a verdict is not `verified`, and the remedy behind it.
        can_verify: whether the backend can prove an eviction at all.
        reset_elsewhere: the reset asks another server than the one that answers; its list says nothing of it.
        memory_read: whether memory could be read before and after.
        memory_back: whether memory came back after the eviction.
    """

    asked: str
    endpoint: str | None
    failure: str = ""
    failure_remedy: str = ""
    answer: ChatAnswer = attrs.field(factory=ChatAnswer)
    started_by_us: bool = False
    loaded_models: tuple[str, ...] | None = None
    offered: tuple[str, ...] = ()
    before: Verdict
    after: Verdict
    reset_reason: str = ""
    evict_reason: str = ""
    can_verify: bool = True
    reset_elsewhere: bool = False
    memory_read: bool = True
    memory_back: bool = True


@attrs.frozen(kw_only=True)
class Ruling:
    """A verdict, what is wrong, and what to do next."""

    verdict: CheckVerdict
    problem: str = ""
    remedy: str = ""


def same_model(asked: str, name: str) -> bool:
    """Whether a server's name for a model is the one asked for.

    Servers vary it: Ollama adds ``:latest``, LM Studio numbers instances (``key:2``), llama.cpp may answer with a file
    name. Case does not count.
    """
    ask, got = asked.strip().lower(), name.strip().lower()
    if got in (ask, f"{ask}:latest") or ask == f"{got}:latest":
        return True
    if got.startswith(f"{ask}:") and got[len(ask) + 1 :].isdigit():
        return True
    return _stem(ask) == _stem(got) and (ask.endswith(".gguf") or got.endswith(".gguf"))


def _stem(name: str) -> str:
    return name.rsplit("/", 1)[-1].removesuffix(".gguf")


def rule(found: Findings) -> Ruling:
    """The verdict on one model: the gravest thing that is wrong, failures before warnings."""
    return _failure(found) or _warning(found) or Ruling(verdict="ok")


def _failure(found: Findings) -> Ruling | None:
    if found.failure:
        return Ruling(verdict="fail", problem=found.failure, remedy=found.failure_remedy)
    if found.endpoint is not None and (wrong := _wrong_answer(found)):
        return wrong
    if found.before == "failed":
        return Ruling(
            verdict="fail",
            problem=f"what was loaded before could not be evicted: {found.reset_reason}",
            remedy="a night's baselines would not be clean; see the reset's remedy, or `reset:` in the queue file",
        )
    if found.after == "failed":
        return Ruling(
            verdict="fail",
            problem=f"it could not be evicted: {found.evict_reason}",
            remedy="the next model would load beside it; unload it by hand and look at the server's log",
        )
    if found.memory_read and not found.memory_back:
        return Ruling(verdict="fail", problem="its memory did not come back after the eviction", remedy=_kept(found))
    return None


def _kept(found: Findings) -> str:
    if found.reset_elsewhere:
        return "the reset asks another server than the one that answers; give it this endpoint's address"
    return "restart the server, or use `reset: {backend: server, ...}`, which ends the process"


def _wrong_answer(found: Findings) -> Ruling | None:
    status = found.answer.status
    if status == "error":
        return Ruling(verdict="fail", problem=found.answer.error, remedy=_error_remedy(found))
    name = found.answer.model
    if name and not found.started_by_us and not same_model(found.asked, name):
        return Ruling(verdict="fail", problem=f"{name} answered in its place", remedy=_name_remedy(found))
    listed = None if _elsewhere(found) else found.loaded_models
    if listed is not None and not any(same_model(found.asked, one) for one in listed):
        told = ", ".join(listed) or "nothing"
        return Ruling(
            verdict="fail", problem=f"it answered, but the server lists {told} as loaded", remedy=_name_remedy(found)
        )
    if status == "empty":
        return Ruling(
            verdict="fail",
            problem="it answered with an empty text",
            remedy="look at the model's chat template and at the server's log; an eval would get nothing either",
        )
    return None


def _elsewhere(found: Findings) -> bool:
    """Whether the model runs where the reset does not look: another server, or Ollama's cloud behind a local one."""
    tag = found.asked.rpartition(":")[2]
    return found.reset_elsewhere or tag == "cloud" or tag.endswith("-cloud")


def _error_remedy(found: Findings) -> str:
    if found.answer.error.startswith(("HTTP 401", "HTTP 403")):
        return "give the server's key in the configuration: `api_key` or `api_key_file` of its `endpoint`"
    if found.answer.error.startswith("HTTP 503"):
        return "look at the server's log; a slow load wants a higher --timeout"
    return _name_remedy(found)


def _name_remedy(found: Findings) -> str:
    near = difflib.get_close_matches(found.asked, found.offered, n=1, cutoff=0.5)
    if near and near[0] != found.asked:
        return f"write the model's id exactly as the server does; did you mean {near[0]!r}?"
    if found.offered and found.asked not in found.offered:
        return f"write the model's id exactly as the server does; it offers {', '.join(found.offered[:8])}"
    return "look at the server's log; load the model there by hand to see why"


def _warning(found: Findings) -> Ruling | None:
    others = [name for name in found.loaded_models or () if not same_model(found.asked, name)]
    if others and not _elsewhere(found):
        return Ruling(
            verdict="warn",
            problem=f"loaded beside it: {', '.join(others)}",
            remedy="another program uses this endpoint; close it for the night, or memory figures are wrong",
        )
    if found.endpoint is None:
        return Ruling(
            verdict="warn",
            problem="not asked: the harness names no endpoint",
            remedy="give the harness an `endpoint:` (the `command` harness takes one)",
        )
    if not found.memory_read:
        return Ruling(
            verdict="warn",
            problem="memory could not be read, so its figures are missing",
            remedy="choose another probe with `probes:`; the warnings say why this one fails",
        )
    if found.after == "unverified":
        return Ruling(
            verdict="warn",
            problem=f"it cannot be proven that it is gone: {found.evict_reason}",
            remedy="baselines will be marked as not proven"
            + ("" if found.can_verify else "; a backend that can verify is better"),
        )
    return None
