"""llama-swap, KoboldCpp, vLLM and TabbyAPI as they document themselves: what is proven, and what is not believed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest

from runq.plugin import ModelSpec, PluginError, StartsServer, TellsContext
from runq.testing import make_context
from runq_plugins.reset.koboldcpp import KoboldCppReset
from runq_plugins.reset.llama_swap import LlamaSwapReset
from runq_plugins.reset.tabby import TabbyReset
from runq_plugins.reset.vllm import VllmReset

from ..stand_ins import model_hosts

SCRIPT = Path(model_hosts.__file__).with_name("other_host.py")
SIZE_MB = 800
"""Above what each backend takes for an idle process of KoboldCpp."""


@attrs.frozen
class Other:
    url: str
    pid: int

    def state(self) -> dict[str, Any]:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.url}/_state", timeout=10) as reply:
            data: dict[str, Any] = json.load(reply)
        return data

    def asked(self) -> list[str]:
        return [one["path"] for one in self.state()["requests"]]


@pytest.fixture
def other() -> Iterator[Callable[..., Other]]:
    """Start ``llama-swap``, ``koboldcpp``, ``vllm`` or ``tabby`` in a mode, with models loaded from the beginning."""
    started: list[subprocess.Popen[str]] = []

    def start(flavour: str, mode: str = "honest", *models: str, size_mb: int = SIZE_MB) -> Other:
        process = subprocess.Popen(
            [flavour, str(SCRIPT), flavour, mode, str(size_mb), "0", *models],
            executable=sys.executable,
            env={**os.environ, "PYTHONHOME": sys.base_prefix, "STAND_IN_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        return Other(url=f"http://127.0.0.1:{int(process.stdout.readline())}", pid=process.pid)

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def in_real_time(tmp_path: Path, **env: str) -> Any:
    """A context in which a second is one: for servers that need it."""
    return attrs.evolve(make_context(tmp_path, env=env), sleep=time.sleep, clock=time.monotonic)


def alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


# --- llama-swap -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_night_on_llama_swap(other: Any, asking: Any) -> None:
    swap = other("llama-swap", "honest", "left-over", size_mb=200)
    shop = asking(swap.url, ["a", "b"], f"{{ backend: llama-swap, base_url: '{swap.url}' }}", of=swap, wait_s=1.2)
    ran = shop.night()
    assert ran.returncode == 0, ran.stderr
    resets = [event.data for event in shop.events("reset.finished")]
    assert [(one["verdict"], one["loaded_before"]) for one in resets] == [
        ("verified", ["left-over"]),
        ("verified", ["a"]),
    ]
    for entry in shop.summary()["entries"]:
        assert entry["model_delta_mb"] > 190 and entry["baseline_proven"] is True
    assert shop.events("warning") == []


SWAP_LIES = [
    ("never", "failed", "still loaded: a", ["a"]),
    ("stuck", "failed", "still loaded: a (stopping)", ["a"]),
    ("keeps", "unverified", "its processes are still there and gave back 0 MB", []),
    ("escapes", "unverified", "its processes are still there and gave back", []),
]


@pytest.mark.parametrize(("mode", "verdict", "reason", "after"), SWAP_LIES, ids=[lie[0] for lie in SWAP_LIES])
def test_a_lie_of_llama_swap_is_never_verified(
    other: Any, tmp_path: Path, mode: str, verdict: str, reason: str, after: list[str]
) -> None:
    swap = other("llama-swap", mode, "a", size_mb=100)
    outcome = LlamaSwapReset(base_url=swap.url, timeout_s=3.5).reset(make_context(tmp_path))
    assert outcome.verdict == verdict and reason in outcome.reason and outcome.remedy
    assert list(outcome.loaded_after or ()) == after
    pid = swap.state()["pids"]["a"]
    assert alive(pid), "it is really still there"
    if verdict == "unverified":
        assert pid in [owner["pid"] for owner in outcome.details["owners_after"]]


# --- KoboldCpp ------------------------------------------------------------------------------------------------------


def test_koboldcpp_restarts_without_its_model(other: Any, tmp_path: Path) -> None:
    kobold = other("koboldcpp", "honest", "gemma")
    backend = KoboldCppReset(base_url=kobold.url, timeout_s=30)
    context = in_real_time(tmp_path, KOBOLDCPP_ADMINPASSWORD="secret")
    assert backend.loaded(context) == ["koboldcpp/gemma"]
    assert backend.context_lengths(context) == {"gemma": 16384, "koboldcpp/gemma": 16384}
    outcome = backend.reset(context)
    assert (outcome.verdict, outcome.reason) == ("verified", "")
    assert (outcome.loaded_before, outcome.loaded_after) == (("koboldcpp/gemma",), ())
    before, after = outcome.details["owners_before"], outcome.details["owners_after"]
    assert {one["pid"] for one in before}.isdisjoint({one["pid"] for one in after})
    assert max(one["rss_mb"] for one in before) > SIZE_MB > 512 > max(one["rss_mb"] for one in after)


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("never", "still loaded: koboldcpp/gemma"),
        ("keeps", "still loaded: koboldcpp/gemma"),
        ("refuses", 'did not confirm the unload (HTTP 200: {"success": false}); it must be started with `--admin`'),
        ("dies", "KoboldCpp has not come back"),
    ],
)
def test_a_koboldcpp_that_does_not_unload_fails(other: Any, tmp_path: Path, mode: str, reason: str) -> None:
    kobold = other("koboldcpp", mode, "gemma", size_mb=50)
    outcome = KoboldCppReset(base_url=kobold.url, timeout_s=4).reset(in_real_time(tmp_path))
    assert outcome.verdict == "failed" and reason in outcome.reason and outcome.remedy


# --- vLLM -----------------------------------------------------------------------------------------------------------


def test_vllm_sleeps_which_is_never_verified_and_wakes_the_one_that_is_needed(other: Any, tmp_path: Path) -> None:
    one, two = other("vllm", "honest", "qwen", size_mb=50), other("vllm", "honest", "gemma", size_mb=50)
    backend, context = VllmReset(base_urls=(f"{one.url}/v1", two.url), timeout_s=20), make_context(tmp_path)
    assert isinstance(backend, StartsServer) and isinstance(backend, TellsContext) and backend.can_verify is False
    assert backend.loaded(context) == ["qwen", "gemma"]
    assert backend.context_lengths(context) == {"qwen": 32768, "gemma": 32768}
    outcome = backend.reset(context)
    assert (outcome.verdict, outcome.loaded_before, outcome.loaded_after) == ("unverified", ("qwen", "gemma"), ())
    assert "its process and what that holds on the card stay" in outcome.reason
    assert "backend: server" in outcome.remedy
    assert {owner["pid"] for owner in outcome.details["owners_after"]} == {one.pid, two.pid}
    assert one.state()["asleep"] and two.state()["asleep"] and backend.loaded(context) == []

    backend.start(context, ModelSpec(id="gemma"))
    assert backend.loaded(context) == ["gemma"] and one.state()["asleep"]
    assert two.asked() == ["/sleep?level=2", "/wake_up?tags=weights", "/collective_rpc", "/wake_up?tags=kv_cache"]
    shallow = attrs.evolve(backend, level=1)
    assert "system's memory" in shallow.reset(context).reason
    shallow.start(context, ModelSpec(id="gemma"))
    assert two.asked()[4:] == ["/sleep?level=1", "/wake_up"] and backend.loaded(context) == ["gemma"]
    with pytest.raises(PluginError, match="no vLLM server serves phi; they serve qwen, gemma"):
        backend.start(context, ModelSpec(id="phi"))


@pytest.mark.parametrize(
    ("mode", "reason", "remedy"),
    [
        ("never", "still loaded: qwen", "restart the server"),
        ("no_sleep", "has no sleep mode (HTTP 404", "--enable-sleep-mode"),
    ],
)
def test_a_vllm_that_does_not_sleep_fails(other: Any, tmp_path: Path, mode: str, reason: str, remedy: str) -> None:
    vllm = other("vllm", mode, "qwen", size_mb=10)
    backend, context = VllmReset(base_urls=(vllm.url,), timeout_s=3), make_context(tmp_path)
    outcome = backend.reset(context)
    assert outcome.verdict == "failed" and reason in outcome.reason and remedy in outcome.remedy
    if mode == "no_sleep":
        with pytest.raises(PluginError, match="HTTP 404"):
            backend.start(context, ModelSpec(id="qwen"))


@pytest.mark.parametrize("options", [{"base_urls": ()}, {"base_urls": ("ftp://x",)}, {"level": 0}, {"level": 3}])
def test_wrong_options_of_vllm_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        VllmReset(**options)


def test_a_night_on_two_vllm_servers_wakes_each_in_turn_and_marks_every_figure(other: Any, asking: Any) -> None:
    one, two = other("vllm", "honest", "qwen", size_mb=10), other("vllm", "honest", "gemma", size_mb=10)
    reset = f"{{ backend: vllm, base_urls: ['{one.url}', '{two.url}'], timeout_s: 10 }}"
    shop = asking(one.url, ["qwen", "gemma"], reset, of=one)
    ran = shop.night()
    assert ran.returncode == 0, ran.stderr
    assert [event.data["verdict"] for event in shop.events("reset.finished")] == ["unverified"] * 2
    assert [entry["baseline_proven"] for entry in shop.summary()["entries"]] == [False, False]
    assert (one.state()["asleep"], two.state()["asleep"]) == (True, False)
    assert any("backend: server" in warning.data["remedy"] for warning in shop.events("warning"))


# --- TabbyAPI -------------------------------------------------------------------------------------------------------


def test_tabby_unloads_both_models_and_its_process_stays(other: Any, tmp_path: Path) -> None:
    tabby = other("tabby", "honest", "qwen-exl2", "embed-bge", size_mb=50)
    backend, context = (
        TabbyReset(base_url=tabby.url, timeout_s=15),
        make_context(tmp_path, env={"TABBY_ADMIN_KEY": "k"}),
    )
    assert backend.context_lengths(context) == {"qwen-exl2": 8192, "embed-bge": 8192}
    outcome = backend.reset(context)
    assert (outcome.loaded_before, outcome.loaded_after) == (("qwen-exl2", "embed-bge"), ())
    assert outcome.verdict == "unverified" and "its processes are still there" in outcome.reason
    assert tabby.asked() == ["/v1/model/unload", "/v1/model/embedding/unload"]
    assert {one["key"] for one in tabby.state()["requests"]} == {"k"}


@pytest.mark.parametrize(
    ("mode", "reason"), [("never", "still loaded: qwen"), ("refuses", "did not confirm the unload of qwen (HTTP 500")]
)
def test_a_tabby_that_does_not_unload_fails(other: Any, tmp_path: Path, mode: str, reason: str) -> None:
    tabby = other("tabby", mode, "qwen", size_mb=10)
    outcome = TabbyReset(base_url=tabby.url, timeout_s=3).reset(make_context(tmp_path))
    assert outcome.verdict == "failed" and reason in outcome.reason and outcome.remedy
