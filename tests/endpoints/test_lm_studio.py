"""Nights on LM Studio, by REST and by `lms`: honest, lying, down, hanging, absent."""

from __future__ import annotations

import sys
import time
from typing import Any

import psutil
import pytest

from .conftest import HELD, SYSTEM

MODELS = ["qwen/qwen3-8b", "google/gemma-4-12b", "phi-4"]


def by_rest(url: str, limit_s: float = 30) -> str:
    return f"{{ backend: lms, base_url: '{url}', binary: /nowhere/lms, timeout_s: {limit_s} }}"


def by_lms(url: str, program: Any, limit_s: float = 30) -> str:
    return f"{{ backend: lms, base_url: '{url}', binary: '{program.binary}', timeout_s: {limit_s} }}"


def assert_a_clean_night(shop: Any, models: list[str]) -> None:
    ran = shop.night()
    assert ran.returncode == 0, ran.stderr
    resets = [event.data for event in shop.events("reset.finished")]
    assert [reset["verdict"] for reset in resets] == ["verified"] * len(models)
    assert [reset["loaded_before"] for reset in resets] == [[], *[[model] for model in models[:-1]]]
    for entry in shop.summary()["entries"]:
        assert entry["eval_status"] == "ok"
        assert entry["model_delta_mb"] >= 290 and entry["baseline_proven"] is True
    assert shop.events("warning") == []


@pytest.mark.slow
def test_three_entries_by_rest(host: Any, asking: Any) -> None:
    studio = host("lms")
    shop = asking(studio.url, MODELS, by_rest(studio.url), memory=HELD, of=studio, wait_s=1.2)
    assert_a_clean_night(shop, MODELS)
    unloaded = [one["body"]["instance_id"] for one in studio.asked("/api/v1/models/unload")]
    assert unloaded == MODELS[:2]


@pytest.mark.slow
def test_three_entries_by_lms(host: Any, lms: Any, asking: Any) -> None:
    studio = host("lms", "no_rest")
    program = lms(studio)
    shop = asking(studio.url, MODELS, by_lms(studio.url, program), memory=SYSTEM, of=studio, wait_s=1.2)
    assert_a_clean_night(shop, MODELS)
    calls = program.calls()
    assert calls[0] == "daemon status --json" and calls.count("unload --all") == 2
    assert studio.asked("/api/v1/models/unload") == []


REST_LIES = [
    ("never", 3, "still loaded: qwen/qwen3-8b", "failed"),
    ("keeps", 13, "gave back 0 MB of 320 MB", "unverified"),
    ("hangs", 3, "LM Studio is busy or hangs", "failed"),
    ("error", 3, "not LM Studio's list of models (HTTP 200", "failed"),
    ("refuses", 3, 'LM Studio did not confirm the unload (HTTP 200: {"error": "Unexpected endpoint', "failed"),
    ("garbage", 3, "not LM Studio's list of models (HTTP 200: <html>", "failed"),
    ("no_rest", 3, "Unexpected endpoint or method. (GET /api/v1/models)", "failed"),
]


def assert_not_believed(shop: Any, studio: Any, limit_s: float, reason: str, verdict: str) -> Any:
    ran = shop.night()
    assert ran.returncode == 0, ran.stderr
    (event,) = shop.events("reset.finished")
    assert event.data["verdict"] == verdict
    assert reason in event.data["reason"] and event.data["remedy"]
    assert event.data["seconds"] < limit_s + 5, "a program that hangs is given four seconds to end"
    assert studio.workers()["qwen/qwen3-8b"], "it is really still there"
    assert any(reason in warning.data["message"] for warning in shop.events("warning"))
    (entry,) = shop.summary()["entries"]
    assert (entry["eval_status"], entry["baseline_proven"]) == ("ok", False)
    return event.data


@pytest.mark.parametrize(("mode", "limit_s", "reason", "verdict"), REST_LIES, ids=[lie[0] for lie in REST_LIES])
def test_a_lie_over_rest_is_never_verified(
    host: Any, asking: Any, mode: str, limit_s: float, reason: str, verdict: str
) -> None:
    studio = host("lms", mode, "qwen/qwen3-8b")
    shop = asking(studio.url, ["phi-4"], by_rest(studio.url, limit_s), of=studio)
    shop.queue.write_text(shop.queue.read_text().replace("binary: /nowhere/lms, ", ""))
    shop.env |= {"PATH": "/usr/bin:/bin", "HOME": str(shop.folder)}  # no `lms` there
    assert_not_believed(shop, studio, limit_s, reason, verdict)


CLI_LIES = [
    ("never", 4, "", "still loaded: qwen/qwen3-8b", "failed"),
    ("keeps", 14, "", "gave back 0 MB of 320 MB", "unverified"),
    ("honest", 2, "ps", "`lms ps --json` did not end within", "failed"),
    ("honest", 2, "unload", "`lms unload --all` did not end within", "failed"),
    ("error", 4, "", "`lms ps --json` did not list models", "failed"),
    ("garbage", 4, "", "`lms ps --json` did not list models", "failed"),
]


@pytest.mark.parametrize(
    ("mode", "limit_s", "hang", "reason", "verdict"), CLI_LIES, ids=[f"{lie[0]}{lie[2]}" for lie in CLI_LIES]
)
def test_a_lie_of_lms_is_never_verified(
    host: Any, lms: Any, asking: Any, mode: str, limit_s: float, hang: str, reason: str, verdict: str
) -> None:
    studio = host("lms", f"no_rest+{mode}", "qwen/qwen3-8b")
    program = lms(studio, hang=hang)
    shop = asking(studio.url, ["phi-4"], by_lms(studio.url, program, limit_s), of=studio)
    assert_not_believed(shop, studio, limit_s, reason, verdict)
    assert processes_of(program) == []


def processes_of(program: Any) -> list[psutil.Process]:
    """What is still running of the program, and of what it started."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if str(program.binary) in words or words[-1:] == ["import time; time.sleep(600)"]:
            found.append(process)
    return found


@pytest.mark.slow
def test_absent_down_and_hanging_have_three_remedies_and_cost_no_entry(
    host: Any, lms: Any, asking: Any, free_port: int
) -> None:
    endpoint = host("ollama")  # the steps' own server; LM Studio's is another one, and does not answer
    dead = f"http://127.0.0.1:{free_port}"
    shop = asking(endpoint.url, ["one"], f"{{ backend: lms, base_url: '{dead}', timeout_s: 3 }}", of=endpoint)
    shop.env |= {"PATH": "", "HOME": str(shop.folder / "no home")}
    shop.queue.write_text(shop.queue.read_text().replace("{python}", sys.executable))
    queue = shop.queue.read_text()

    def night(reset: str) -> tuple[dict[str, Any], list[dict[str, Any]], float]:
        shop.queue.write_text(queue.replace(f"base_url: '{dead}'", reset))
        began = time.monotonic()
        ran = shop.night()
        seconds = time.monotonic() - began
        assert ran.returncode == 0, ran.stderr
        night = shop.nights()[0]
        finished, warned = (
            [event.data for event in shop.events(kind) if event.night == night]
            for kind in ("reset.finished", "warning")
        )
        assert shop.summary()["entries"][0]["eval_status"] == "ok"
        return finished[0], warned, seconds

    absent, absent_warnings, seconds = night(f"base_url: '{dead}'")
    assert absent["verdict"] == "failed" and "could not be asked" in absent["reason"]
    assert "`lms` is neither on the PATH nor in LM Studio's folder" in absent["remedy"]
    assert [one["remedy"] for one in absent_warnings] == [absent["remedy"]]
    assert seconds < 15

    program = lms()
    down, down_warnings, seconds = night(f"base_url: '{dead}', binary: '{program.binary}'")
    # Proven not to run: nothing is loaded. The endpoint that the steps use is another one, which this cannot say.
    assert (down["verdict"], down["loaded_before"], down["loaded_after"]) == ("verified", [], [])
    assert set(program.calls()) == {"daemon status --json"} and not program.started_something()
    assert down["reason"] == "LM Studio does not run, so nothing is loaded"
    assert down["remedy"] == "if the steps need it, start it with `lms server start`"
    assert [one["remedy"] for one in down_warnings] == [down["remedy"]] and seconds < 15

    (program.place / "hang").write_text("daemon")
    hanging, hanging_warnings, seconds = night(f"base_url: '{dead}', binary: '{program.binary}'")
    assert hanging["verdict"] == "failed"
    assert "`lms daemon status --json` did not end within" in hanging["reason"]
    assert hanging["remedy"] == "restart LM Studio"
    assert [one["remedy"] for one in hanging_warnings] == ["restart LM Studio"]
    assert hanging["seconds"] < 3 + 5
    assert processes_of(program) == []
    assert len({absent["remedy"], down["remedy"], hanging["remedy"]}) == 3
    assert not program.started_something() and set(program.calls()) == {"daemon status --json"}
