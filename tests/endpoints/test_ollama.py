"""Nights on Ollama: what is proven when it is honest, and what is said when it is not."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import SYSTEM

MODELS = ["qwen3:8b", "gemma3:4b", "phi4:14b"]


@pytest.mark.slow
def test_three_entries_each_loaded_alone_and_proven_gone(host: Any, asking: Any) -> None:
    ollama = host("ollama")
    shop = asking(
        ollama.url, MODELS, f"{{ backend: ollama, host: '{ollama.url}' }}", memory=SYSTEM, of=ollama, wait_s=1.2
    )
    ran = shop.night()
    assert ran.returncode == 0, ran.stderr
    resets = [event.data for event in shop.events("reset.finished")]
    assert [reset["verdict"] for reset in resets] == ["verified"] * 3
    assert [reset["loaded_before"] for reset in resets] == [[], [MODELS[0]], [MODELS[1]]]
    assert [reset["loaded_after"] for reset in resets] == [[], [], []]
    for reset in resets[1:]:
        assert reset["details"]["owners_before"][0]["rss_mb"] > 300 and reset["details"]["owners_after"] == []
    settled = [event.data for event in shop.events("settle.finished")]
    assert [(one["status"], one["proven"]) for one in settled] == [("settled", True)] * 3
    for entry in shop.summary()["entries"]:
        assert entry["model_delta_mb"] >= 290 and entry["baseline_proven"] is True
    assert [event.data["status"] for event in shop.events("step.finished")] == ["ok"] * 3
    assert shop.events("warning") == []
    assert list(ollama.workers()) == [MODELS[2]], "the night's last model stays: nothing comes after it"


LIES = [
    ("never", "still loaded: qwen3:8b", "restart the server", "failed"),
    ("keeps", "its processes are still there and gave back 0 MB of 320 MB", "restart the server", "unverified"),
    ("hangs", "Ollama is busy or hangs", "restart Ollama", "failed"),
    ("error", 'Ollama answered with an error (HTTP 200: {"error": "something went wrong"})', "log", "failed"),
    ("refuses", "did not confirm the unload of qwen3:8b (HTTP 200", "restart the server", "failed"),
    ("garbage", "not Ollama's list of running models (HTTP 200: <html>", "address", "failed"),
    ("stopping", "qwen3:8b (Stopping..., a request may still be open)", "end the client", "failed"),
    ("loading", "a model is loading, or its memory was kept", "restart the server", "unverified"),
]


@pytest.mark.parametrize(("mode", "reason", "remedy", "verdict"), LIES, ids=[lie[0] for lie in LIES])
def test_a_lie_is_never_verified_and_the_night_goes_on(
    host: Any, asking: Any, mode: str, reason: str, remedy: str, verdict: str
) -> None:
    ollama = host("ollama", mode, "qwen3:8b")
    limit_s = 5 if mode == "keeps" else 3  # after three empty readings it is the processes that are waited for
    reset = f"{{ backend: ollama, host: '{ollama.url}', timeout_s: {limit_s} }}"
    shop = asking(ollama.url, ["gemma3:4b"], reset, of=ollama)
    ran = shop.night()
    assert ran.returncode == 0, ran.stderr  # on_dirty: warn
    (event,) = shop.events("reset.finished")
    assert event.data["verdict"] == verdict
    assert reason in event.data["reason"] and remedy in event.data["remedy"]
    assert event.data["seconds"] < limit_s + 1.5
    assert ollama.workers()["qwen3:8b"], "it is really still there"
    assert any(reason in warning.data["message"] for warning in shop.events("warning"))
    (settled,) = shop.events("settle.finished")
    assert settled.data["proven"] is False
    (entry,) = shop.summary()["entries"]
    assert (entry["eval_status"], entry["baseline_proven"]) == ("ok", False)
    assert (shop.bundle(0, "eval") / "answer.txt").read_text() == "ready"


def test_a_model_that_appears_while_the_list_is_empty_is_evicted_too(host: Any, asking: Any) -> None:
    ollama = host("ollama", "late", "qwen3:8b")
    shop = asking(ollama.url, ["gemma3:4b"], f"{{ backend: ollama, host: '{ollama.url}', timeout_s: 20 }}", of=ollama)
    assert shop.night().returncode == 0
    (event,) = shop.events("reset.finished")
    assert (event.data["verdict"], event.data["loaded_before"]) == ("verified", ["qwen3:8b"])
    assert event.data["seconds"] > 5, "three seconds until it is listed, two of empty readings after its end"
    assert list(ollama.workers()) == ["gemma3:4b"]


def test_a_server_that_is_not_there_costs_its_entry_not_the_night(asking: Any, free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}"
    shop = asking(url, ["a", "b"], f"{{ backend: ollama, host: '{url}', timeout_s: 3 }}")
    assert shop.night().returncode == 1
    for event in shop.events("reset.finished"):
        assert event.data["verdict"] == "failed" and event.data["loaded_before"] is None
        assert "could not be asked" in event.data["reason"] and "ollama serve" in event.data["remedy"]
    assert [event.data["status"] for event in shop.events("step.finished")] == ["failed", "failed"]
