"""Nights on a real llama.cpp router: three sizes of one model, and a router that is held busy through the reset."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..check.conftest import Checker, checker
from ..stand_ins.routers import SIZES, llama_cpp, router

__all__ = ["Checker", "checker", "llama_cpp", "router"]

pytestmark = [pytest.mark.real_model, pytest.mark.slow]

MODELS = [f"smollm2-{size}" for size in SIZES]


def reset(router: Any, timeout_s: float = 60) -> str:
    return f"{{ backend: llamacpp, base_url: '{router.url}', timeout_s: {timeout_s:g} }}"


def memory(server: Any) -> str:
    """The router's own processes, by the port it listens on."""
    settle = "settle: { timeout_s: 2, plateau_polls: 2, poll_interval_s: 0.1, epsilon_mb: 40 }"
    return f"{settle}\nprobes: [{{ probe: process, port: {server.url.rpartition(':')[2]} }}]"


def deltas(shop: Any, night: str) -> list[float]:
    return [entry["model_delta_mb"] for entry in shop.summary(night)["entries"]]


def test_three_sizes_rank_as_their_files_do_and_repeat_within_ten_percent(
    router: Any, llama_cpp: Any, asking: Any
) -> None:
    server = router()
    shop = asking(server.url, MODELS, reset(server), memory=memory(server), wait_s=1.5)
    for _ in range(2):
        ran = shop.night()
        assert ran.returncode == 0, ran.stderr
    second, first = shop.nights()
    for night in (first, second):
        entries = shop.summary(night)["entries"]
        assert [(entry["eval_status"], entry["baseline_proven"]) for entry in entries] == [("ok", True)] * 3
        measured = deltas(shop, night)
        assert measured == sorted(measured), "as the files rank"
        files = [(llama_cpp.models / f"{model}.gguf").stat().st_size / 2**20 for model in MODELS]
        for at, (mb, file_mb) in enumerate(zip(measured, files, strict=True)):
            assert mb > 0.9 * file_mb, f"{MODELS[at]}: its weights are all read"
        grown = [after - before for before, after in itertools.pairwise(measured)]
        expected = [after - before for before, after in itertools.pairwise(files)]
        assert grown == pytest.approx(expected, abs=25), "they differ by what the files differ by"
    assert deltas(shop, second) == pytest.approx(deltas(shop, first), rel=0.1)
    resets = [event.data for event in shop.events("reset.finished")]
    assert [one["verdict"] for one in resets] == ["verified"] * 6
    assert [one["loaded_before"] for one in resets] == [[], *[[model] for model in (*MODELS, *MODELS)][:5]]
    for one in resets[1:]:
        (held,) = one["details"]["owners_before"]
        assert held["name"] == "llama-server" and held["rss_mb"] > 100 and one["details"]["owners_after"] == []
    assert shop.events("warning") == []


@pytest.fixture
def busy_client() -> Iterator[Callable[[str, str], None]]:
    """A client that always has a long stream open: when the model is ended under it, it asks again at once."""
    done = threading.Event()
    clients: list[threading.Thread] = []

    def ask(url: str, model: str) -> None:
        begun = threading.Event()
        messages = [{"role": "user", "content": "Tell a long story."}]
        body = {"model": model, "messages": messages, "stream": True, "max_tokens": 100_000, "ignore_eos": True}
        request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode())
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def stream() -> None:
            while not done.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException), opener.open(request, timeout=20) as reply:
                    while not done.is_set() and reply.readline():
                        begun.set()

        clients.append(threading.Thread(target=stream, daemon=True))
        clients[-1].start()
        assert begun.wait(60)

    yield ask
    done.set()
    for client in clients:
        client.join(30)


RESETS = {"warn": 2, "retry": 4, "skip": 2, "stop": 1}
"""How often a night of two entries resets when no reset helps."""


def test_a_router_that_is_held_busy_is_dirty_and_each_policy_does_what_it_says(
    router: Any, asking: Any, busy_client: Callable[[str, str], None]
) -> None:
    held, asked = MODELS[1], [MODELS[0], MODELS[2]]
    server = router("--ctx-size", "8192", "--threads", "1", most=2)
    busy_client(server.url, held)
    shop = asking(server.url, asked, reset(server, 3), memory=memory(server), wait_s=1.0)
    queue = shop.queue.read_text()
    for policy, resets in RESETS.items():
        shop.queue.write_text(queue.replace("defaults:", f"defaults:\n  on_dirty: {policy}", 1))
        ran = shop.night()
        assert ran.returncode == (0 if policy in ("warn", "retry") else 1), ran.stderr
        assert_dirty(shop, policy, held, resets)
        assert any(held in one.cmdline() for one in server.children()), "it is really still there"


def assert_dirty(shop: Any, policy: str, held: str, resets: int) -> None:
    night, summary = shop.nights()[0], shop.summary()
    events = [event for event in shop.events() if event.night == night]
    finished = [event.data for event in events if event.kind == "reset.finished"]
    assert len(finished) == resets
    for one in finished:
        assert (one["verdict"], held in one["loaded_before"]) == ("failed", True)
        assert "still loaded:" in one["reason"] and held in one["reason"] and one["remedy"]
        assert one["seconds"] < 3 + 2
        assert [owner["name"] for owner in one["details"]["owners_before"]][:1] == ["llama-server"]
    settled = [event.data for event in events if event.kind == "settle.finished"]
    assert [(one["status"], one["proven"]) for one in settled] == [("dirty", False)] * resets
    assert all(held in one["probes"][0]["still_loaded"] for one in settled)
    entries = summary["entries"]
    statuses = {"skip": ["skipped", "skipped"], "stop": ["skipped", "pending"]}.get(policy, ["complete", "complete"])
    assert [entry["status"] for entry in entries] == statuses
    assert not any(entry["baseline_proven"] for entry in entries)
    messages = [warning["message"] for warning in summary["warnings"]]
    assert any(f"on_dirty: {policy}" in message and held in message for message in messages)
    assert any("tried once more" in message for message in messages) is (policy == "retry")
    if policy in ("warn", "retry"):
        assert shop.markdown().count(" \\*") + shop.markdown().count("\\* |") >= 4, "both figures of both entries"
        assert "The baseline is not proven" in shop.markdown()
    else:
        assert "the baseline is not clean: still loaded:" in entries[0]["error"] and held in entries[0]["error"]


def test_a_check_of_a_wrong_name_a_model_that_never_answers_and_a_good_one(
    router: Any, llama_cpp: Any, checker: Any, tmp_path: Path
) -> None:
    weights, good = tmp_path / "stuck.gguf", MODELS[0]
    weights.symlink_to(llama_cpp.models / f"{good}.gguf")
    server = router(preset=f"version = 1\n\n[stuck]\nmodel = {weights}\n")
    weights.unlink()
    os.mkfifo(weights)  # whoever opens it waits for ever: the router has read the file, the model's process has not
    checker.queue(server.url, ["smollm2-q8", "stuck", good], reset(server, 10), of=server)
    checked = checker.run("--timeout", "6")
    assert checked.code == 1
    assert checked.verdicts() == {"smollm2-q8": "fail", "stuck": "fail", good: "ok"}
    wrong, stuck, right = (checked.row(model) for model in ("smollm2-q8", "stuck", good))
    assert "HTTP 400: model 'smollm2-q8' not found" in wrong["problem"] and "smollm2-Q8_0" in wrong["remedy"]
    assert stuck["problem"] == "no answer within 6 s" and stuck["loaded_models"] == ["stuck"]
    assert 6 <= stuck["seconds"] < 9
    assert (right["status"], right["loaded_models"], right["context_length"]) == ("ok", [good], 1024)
    assert 0.9 * 94 < right["ram_delta_mb"] < 400 and right["baseline_proven"] is True
    for row in (wrong, stuck, right):
        assert (row["reset_verdict"], row["evict_verdict"], row["memory_back"]) == ("verified", "verified", True)
    assert server.children() == []
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{server.url}/models") as reply:
        states = {model["id"]: model["status"]["value"] for model in json.load(reply)["data"]}
    assert set(states.values()) == {"unloaded"} and len(states) == 4
