"""What to do about a failure: rules over how it ended and what the end of its log says. Pure.

A remedy is advice in the imperative; what stands in backticks is to be typed or looked up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runq.text import duration

LOG_SIGNS: tuple[tuple[str, str], ...] = (
    # The messages are those of the programs named behind each.
    (
        r"no space left on|disk quota exceeded",  # ENOSPC and EDQUOT, and what runq says of a disk that it saw full
        "The disk is full: free some space; `runq prune` deletes old bundles and logs.",
    ),
    (
        r"out of memory|cannot allocate memory|failed to allocate|outofmemory|insufficient memory",
        # CUDA, ENOMEM, llama.cpp, PyTorch and Metal, LM Studio
        "The model did not fit into memory: take a smaller quantisation or a shorter context, or free memory before the"
        " night. `min_free_mb` skips an entry that cannot fit.",
    ),
    (
        r"connection ?refused|connectionrefusederror|failed to establish a new connection|econnrefused"
        r"|connection reset by peer|remote end closed connection|server disconnected",  # requests, httpx, node
        "Nothing answered at the endpoint: start its server, or correct the URL in the configuration. `runq doctor`"
        " looks for servers, `runq check QUEUE` asks every model once, `restart_command` restarts a server that hangs.",
    ),
    (
        r"\b401\b|unauthorized|invalid api key|incorrect api key",
        "The endpoint refused the key: set the right one in the configuration or the environment.",
    ),
    (
        r"\bmodel \S+ (was )?not found|no such model|unknown model|model_not_found"
        r"|failed to load model",
        "The server does not have the model under this id, or could not load it: `runq check QUEUE` compares ids with"
        " what it offers.",
    ),
    (
        r"context[ _]length[ _]exceeded|exceeds the (available )?context|maximum context length|context size",
        "A prompt was longer than the model's context: load the model with a longer one, or shorten the prompts.",
    ),
    (
        r"modulenotfounderror|no module named",
        "A Python module is missing: install it for the interpreter that runs the step, or name another interpreter as"
        " the harness's `python`.",
    ),
    (
        r"filenotfounderror|no such file or directory|enoent",
        "A file that the step reads is missing: the log names it. Paths are relative to the queue file's folder.",
    ),
    (r"permission denied|permissionerror|eacces", "The step may not read or write a file that its log names."),
)
"""Patterns that the end of a log is searched for, without regard to case, and what they call for; the first counts."""

_CRASHES = frozenset({"SIGSEGV", "SIGILL", "SIGABRT", "SIGBUS", "SIGFPE", "SIGTRAP"})


def of_attempt(failure: Mapping[str, Any], limits: Mapping[str, Any]) -> str:
    """What to do about a failed attempt of a step.

    Args:
        failure: a row of the view `failure`.
        limits: the attempt's ``timeout_s`` and ``stall_timeout_s``, in seconds.
    """
    reason = failure["reason"] or ""
    said = _by_log(reason if reason.startswith("no space left") else failure["log_tail"] or "")
    ended = _by_end(failure, limits)
    if failure["status"] in ("timeout", "stalled", "interrupted"):
        return ended if not said or failure["status"] == "interrupted" else f"{ended} {said}"
    return said or ended


def _by_log(tail: str) -> str:
    return next((text for pattern, text in LOG_SIGNS if re.search(pattern, tail, re.IGNORECASE)), "")


def _by_end(failure: Mapping[str, Any], limits: Mapping[str, Any]) -> str:
    status, step, reason = failure["status"], failure["step"], failure["reason"] or ""
    if status == "interrupted":
        return "Nothing is wrong with it: it runs again when the night is resumed."
    if status == "timeout":
        limit = duration(limits["timeout_s"])
        return (
            f"It still ran after {limit}. If it only needs longer, raise `step_timeout_s: {{ {step}: ... }}`; if it"
            " hung, `stall_timeout_s` or `heartbeat` end it sooner."
        )
    if status == "stalled" and "endpoint" in reason:
        return "The server was there but gave no token: look at its own log. `restart_command` restarts it next time."
    if status == "stalled":
        limit = duration(limits["stall_timeout_s"])
        return f"It wrote nothing for {limit}. Raise `stall_timeout_s` if that is usual for it; else it hung."
    if failure["signal"] == "SIGKILL":
        return (
            "It was killed, and not by runq: most often the system ran out of memory. Take a smaller quantisation or a"
            " shorter context; `min_free_mb` skips an entry that cannot fit."
        )
    if failure["signal"] in _CRASHES:
        return "The program crashed: update it, or try the model with another one or another quantisation."
    if failure["signal"] is not None:
        return "Another program ended it: look for what sends this signal, such as a system that shuts down."
    if "answers failed" in reason:
        return "The first error says what the endpoint answered: `runq check QUEUE` asks the model once more."
    if failure["exit_code"] == 0:
        return "It ended as if all were well and left no good result: compare what it writes with its `artifacts`."
    if failure["exit_code"] is None:
        return "It could not be started or checked, for the reason above: correct it in the queue file."
    return "Its log says why; the whole of it is in the file below."


_ENTRY_SIGNS: tuple[tuple[str, str], ...] = (
    (
        "the baseline is not clean",
        "Memory was not back, so `on_dirty` left it out: close what holds memory, or see `runq doctor`.",
    ),
    ("require_ac", "Plug the charger in, then resume the night."),
    ("free on the disk", "Free space on the disk of the runs folder, then resume the night."),
    ("min_free_mb", "Too little memory was free: close other programs, or lower `min_free_mb`."),
    ("did not start", "See the server's log below the night's `logs` folder; try its command line by hand."),
    ("set aside", "The runner died twice while it ran: `runq rerun` runs it once more, alone."),
    ("asked by", "Somebody skipped it: `runq rerun` runs it."),
    ("endpoint does not answer", "Start the endpoint's server; `restart_command` restarts one that is up but dead."),
)
"""Words of an entry's reason, where it failed before a step ran, and what they call for."""


def of_entry(reason: str) -> str:
    """What to do about an entry that failed before or beside its steps."""
    found = next((text for words, text in _ENTRY_SIGNS if words in reason), "")
    return found or _by_log(reason) or "Correct what the reason names, then resume the night."
