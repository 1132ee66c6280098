"""What is advised for which end, with logs as the programs in question write them."""

from __future__ import annotations

from typing import Any

import pytest

from runq.report import remedies


def failure(**changes: Any) -> dict[str, Any]:
    row = {"status": "failed", "step": "eval", "reason": "it exited with 1", "exit_code": 1, "signal": None}
    return {**row, "log_tail": None, **changes}


LIMITS = {"timeout_s": 14400.0, "stall_timeout_s": 600.0}


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "`min_free_mb`"),
        ("ggml_backend_metal_buffer_type_alloc_buffer: error: failed to allocate buffer, size = 9", "did not fit"),
        ("urllib3.exceptions.NewConnectionError: Failed to establish a new connection: [Errno 111]", "`runq doctor`"),
        ("httpx.ConnectError: [Errno 111] Connection refused", "Nothing answered at the endpoint"),
        ("Error: connect ECONNREFUSED 127.0.0.1:1234", "Nothing answered at the endpoint"),
        ("openai.AuthenticationError: Error code: 401 - Incorrect API key provided", "refused the key"),
        ('{"error":{"message":"model \\"gemma4\\" not found, try pulling it first"}}', "does not have the model"),
        ("ValueError: This model's maximum context length is 2048 tokens", "longer than the model's context"),
        ("ModuleNotFoundError: No module named 'touchstone'", "the harness's `python`"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'packs/x.yaml'", "A file that the step reads"),
        ("PermissionError: [Errno 13] Permission denied: '/data'", "may not read or write"),
    ],
)
def test_the_log_says_what_to_do(log: str, words: str) -> None:
    assert words in remedies.of_attempt(failure(log_tail=f"starting\n{log}\nbye"), LIMITS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "timeout"}, "still ran after 4:00 h"),
        ({"status": "timeout"}, "raise `step_timeout_s: { eval: ... }`"),
        ({"status": "stalled"}, "wrote nothing for 10:00 min"),
        ({"status": "stalled", "reason": "it went silent, and its endpoint gave no answer: x"}, "`restart_command`"),
        ({"status": "interrupted", "log_tail": "CUDA out of memory"}, "Nothing is wrong with it"),
        ({"signal": "SIGKILL", "exit_code": None}, "ran out of memory"),
        ({"signal": "SIGSEGV", "exit_code": None}, "The program crashed"),
        ({"signal": "SIGHUP", "exit_code": None}, "Another program ended it"),
        ({"exit_code": 0, "reason": "it exited with 0, but scores.csv is missing"}, "its `artifacts`"),
        ({"exit_code": 0, "reason": "8 of 8 answers failed, none is ok"}, "`runq check QUEUE`"),
        ({"exit_code": None, "reason": "no such program: touchstne"}, "correct it in the queue file"),
        ({}, "Its log says why"),
    ],
)
def test_the_end_says_what_to_do(changes: dict[str, Any], words: str) -> None:
    assert words in remedies.of_attempt(failure(**changes), LIMITS)


def test_a_timeout_also_says_what_its_log_says() -> None:
    text = remedies.of_attempt(failure(status="timeout", log_tail="ConnectionRefusedError"), LIMITS)
    assert "still ran after" in text and "Nothing answered" in text


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("the baseline is not clean: still loaded: qwen", "`on_dirty` left it out"),
        ("2,000 MB are free, and min_free_mb asks for 9,000 MB", "Too little memory was free"),
        ("the server for qwen did not start: it ended with 1", "server's log"),
        ("set aside: the runner died 2 times while it ran", "`runq rerun`"),
        ("it was skipped, asked by nora", "Somebody skipped it"),
        ("eval: the endpoint does not answer: refused", "`restart_command`"),
        ("[Errno 2] No such file or directory: 'x'", "A file that the step reads is missing"),
        ("something else", "Correct what the reason names"),
    ],
)
def test_an_entry_s_reason_says_what_to_do(reason: str, words: str) -> None:
    assert words in remedies.of_entry(reason)
