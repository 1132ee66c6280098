"""Ollama: what it says, what its lies are, and what its processes tell."""

from __future__ import annotations

import os
import threading

import psutil
import pytest

from runq.plugin import TellsContext
from runq.testing import FakeClock, make_context
from runq_plugins.reset import ollama as module
from runq_plugins.reset.ollama import OllamaReset
from runq_plugins.reset.ollama_host import ollama_url
from runq_plugins.reset.owner import children_of_listener

LOADED = {
    "name": "qwen3:8b",
    "model": "qwen3:8b",
    "size": 6591830464,
    "digest": "500a1f067a9f782620b40bee6f7b0c89e17ae61f686b92c24933e4ca4b2b8b41",
    "details": {"parent_model": "", "format": "gguf", "family": "qwen3", "parameter_size": "8.2B"},
    "expires_at": "2126-12-01T02:20:00.123456789+01:00",
    "size_vram": 6591830464,
    "context_length": 4096,
}
STOPPING = LOADED | {"expires_at": "2020-12-01T02:20:00.123456789+01:00"}
UNLOADED = {"model": "qwen3:8b", "created_at": "2026-12-01T01:15:00.000000001Z", "response": "", "done": True}
UNLOADED |= {"done_reason": "unload"}


class Fake:
    """Answers /api/ps from a list of lists, the last one for ever."""

    def __init__(self, *listings, unload=(200, UNLOADED)):
        self.listings, self.unload = list(listings), unload

    def __call__(self, method, path, body):
        if (method, path) == ("GET", "/api/ps"):
            listing = self.listings.pop(0) if len(self.listings) > 1 else self.listings[0]
            return listing if isinstance(listing, tuple) else (200, {"models": listing})
        assert (method, path) == ("POST", "/api/generate")
        return self.unload


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def reset(serve, tmp_path, clock):
    def run(fake, **options):
        served = serve(fake)
        outcome = OllamaReset(host=served.url, **options).reset(make_context(tmp_path, clock=clock))
        return outcome, served

    return run


def test_each_model_is_asked_to_go_with_keep_alive_zero(reset):
    other = LOADED | {"name": "gemma3:4b", "model": "gemma3:4b"}
    outcome, served = reset(Fake([LOADED, other], []))
    assert served.posted() == [
        {"model": "qwen3:8b", "keep_alive": 0, "stream": False},
        {"model": "gemma3:4b", "keep_alive": 0, "stream": False},
    ]
    assert outcome.loaded_before == ("qwen3:8b", "gemma3:4b")
    assert outcome.loaded_after == ()
    # The stand-in's process is no Ollama: the list alone proves nothing.
    assert outcome.verdict == "unverified" and "cannot be seen" in outcome.reason
    assert outcome.details["loaded_mb"] == pytest.approx(2 * 6591830464 / 2**20)


def test_three_empty_readings_over_two_seconds_are_needed(reset, clock):
    outcome, served = reset(Fake([LOADED], [], [], [LOADED], []))
    # loaded, empty, empty, loaded again (evicted again), then empty at 0, 1 and 2 s
    assert [path for _, path, _ in served.requests] == [
        "/api/ps", "/api/generate", "/api/ps", "/api/ps", "/api/ps", "/api/generate", "/api/ps", "/api/ps", "/api/ps",
    ]  # fmt: skip
    assert sum(clock.slept) == 6.0
    assert outcome.loaded_after == ()


def test_stopping_is_waited_for(reset):
    outcome, served = reset(Fake([LOADED], *[[STOPPING]] * 20, []))
    assert outcome.verdict == "unverified" and outcome.loaded_after == ()
    assert len(served.posted()) == 1


def test_stopping_for_ever_fails_within_the_limit(reset, clock):
    outcome, _ = reset(Fake([LOADED], [STOPPING]), timeout_s=30)
    assert outcome.verdict == "failed" and outcome.loaded_after == ("qwen3:8b",)
    assert "Stopping..." in outcome.reason and outcome.remedy
    assert clock.now_s - 1000 == pytest.approx(30, abs=1.1)


def test_an_unload_that_did_nothing_fails(reset):
    outcome, _ = reset(Fake([LOADED]), timeout_s=10)
    assert outcome.verdict == "failed" and outcome.reason == "still loaded: qwen3:8b"


@pytest.mark.parametrize(
    "answer",
    [
        (200, {"error": "cannot"}),
        (404, {"error": "model 'qwen3:8b' not found"}),
        (200, b"garbage"),
        (200, {"done": True}),
    ],
)
def test_an_unload_that_is_not_confirmed_is_told_when_it_stays(reset, clock, answer):
    outcome, _ = reset(Fake([LOADED], unload=answer))
    assert outcome.verdict == "failed"
    assert "still loaded: qwen3:8b: Ollama did not confirm the unload of qwen3:8b (HTTP" in outcome.reason
    assert clock.now_s - 1000 < 15  # a refusal is not waited for as long as a promise


def test_cloud_models_are_left_alone(reset):
    cloud = [
        LOADED | {"name": name, "model": name, **more}
        for name, more in [
            ("gpt-oss:120b-cloud", {}),
            ("glm:cloud", {}),
            ("proxy:7b", {"remote_host": "https://ollama.com:443"}),
        ]
    ]
    outcome, served = reset(Fake(cloud))
    assert served.posted() == [] and outcome.loaded_before == ()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, {"error": "boom"}), "answered with an error (HTTP 200"),
        ((200, b"<html>"), "is not Ollama's list"),
        ((404, {"models": []}), "is not Ollama's list"),
        ((200, {"models": None}), "is not Ollama's list"),
        ((200, [1]), "is not Ollama's list"),
        ((200, {"models": [{"size": 1}]}), "without a name"),
        ((200, {"models": ["x"]}), "without a name"),
    ],
)
def test_a_wrong_answer_fails_with_its_own_reason(reset, answer, reason):
    outcome, _ = reset(Fake(answer))
    assert outcome.verdict == "failed" and reason in outcome.reason and outcome.remedy
    assert outcome.loaded_before is None and outcome.loaded_after is None


def test_a_busy_server_is_asked_again(reset):
    outcome, _ = reset(Fake((503, {"error": "server busy"}), (503, {"error": "server busy"}), []))
    assert outcome.verdict == "unverified" and outcome.loaded_before == ()
    outcome, _ = reset(Fake((503, {"error": "server busy"})), timeout_s=5)
    assert outcome.verdict == "failed" and "busy" in outcome.reason


def test_a_server_that_ends_in_the_middle_fails_and_keeps_what_is_known(reset):
    outcome, _ = reset(Fake([LOADED], (500, b"")))
    assert outcome.verdict == "failed"
    assert outcome.loaded_before == ("qwen3:8b",) and outcome.loaded_after is None


def test_context_lengths_where_ollama_tells_them(serve, tmp_path):
    context = make_context(tmp_path)
    old = {key: value for key, value in LOADED.items() if key != "context_length"} | {"model": "old:1b"}
    cloud = LOADED | {"model": "big:cloud"}
    backend = OllamaReset(host=serve(Fake([LOADED, old, cloud])).url)
    assert isinstance(backend, TellsContext)
    assert backend.context_lengths(context) == {"qwen3:8b": 4096}
    assert OllamaReset(host=serve(Fake([])).url).context_lengths(context) == {}
    assert OllamaReset(host=serve(Fake((500, b"no"))).url).context_lengths(context) == {}


def test_nobody_listening_could_not_be_asked(tmp_path, free_port):
    backend = OllamaReset(host=f"127.0.0.1:{free_port}")
    outcome = backend.reset(make_context(tmp_path))
    assert outcome.verdict == "failed" and "could not be asked" in outcome.reason
    assert "ollama serve" in outcome.remedy
    assert backend.loaded(make_context(tmp_path)) is None


def test_a_hanging_server_is_busy_and_bounded(tmp_path, raw_server, clock):
    port = raw_server(lambda connection: threading.Event().wait(60))
    outcome = OllamaReset(host=f"127.0.0.1:{port}", timeout_s=0.5).reset(make_context(tmp_path, clock=clock))
    assert outcome.verdict == "failed" and "busy or hangs" in outcome.reason


def test_what_is_not_http_is_not_ollama(tmp_path, raw_server):
    def ssh(connection):
        connection.recv(4096)
        connection.sendall(b"SSH-2.0-x\r\n\r\n")
        connection.close()

    outcome = OllamaReset(host=f"127.0.0.1:{raw_server(ssh)}").reset(make_context(tmp_path))
    assert outcome.verdict == "failed" and "not Ollama" in outcome.reason


def test_an_unload_whose_answer_breaks_off_is_told(tmp_path, raw_server, clock):
    def behave(connection):
        if connection.recv(65536).startswith(b"GET"):
            body = b'{"models":[{"name":"m","model":"m","size":1}]}'
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        connection.close()

    outcome = OllamaReset(host=f"127.0.0.1:{raw_server(behave)}").reset(make_context(tmp_path, clock=clock))
    assert outcome.verdict == "failed" and "the unload of m was not answered" in outcome.reason


def test_loaded_lists_names(serve, tmp_path):
    served = serve(Fake([LOADED]))
    assert OllamaReset(host=served.url).loaded(make_context(tmp_path)) == ["qwen3:8b"]


# --- with real processes --------------------------------------------------------------------------------------------


def test_the_runners_end_proves_the_eviction(model_server, tmp_path):
    server = model_server("ollama", "frees")
    (runner,) = psutil.Process(server.pid).children()
    outcome = OllamaReset(host=server.url).reset(make_context(tmp_path))
    assert (outcome.verdict, outcome.loaded_before, outcome.loaded_after) == ("verified", ("qwen3:8b",), ())
    assert outcome.reason == ""
    (before,) = outcome.details["owners_before"]
    assert before["pid"] == runner.pid and before["rss_mb"] > 200
    assert outcome.details["owners_after"] == []


def test_an_empty_list_with_its_runner_still_there_is_not_verified(model_server, tmp_path, clock):
    server = model_server("ollama", "keeps")
    outcome = OllamaReset(host=server.url, timeout_s=20).reset(make_context(tmp_path, clock=clock))
    assert outcome.verdict == "unverified" and outcome.loaded_after == ()
    assert "still there and gave back 0 MB of 200 MB" in outcome.reason
    assert clock.now_s - 1000 < 25


def test_a_runner_that_let_go_of_three_quarters_is_verified(model_server, tmp_path):
    server = model_server("ollama", "shrinks")
    assert OllamaReset(host=server.url).reset(make_context(tmp_path)).verdict == "verified"


def test_a_model_that_was_loading_is_evicted_once_it_is_listed(model_server, tmp_path):
    server = model_server("ollama", "loading")
    outcome = OllamaReset(host=server.url).reset(make_context(tmp_path))
    assert (outcome.verdict, outcome.loaded_before) == ("verified", ("qwen3:8b",))


def test_an_unlisted_runner_is_doubted(model_server, tmp_path, clock):
    server = model_server("ollama", "orphan")
    outcome = OllamaReset(host=server.url, timeout_s=15).reset(make_context(tmp_path, clock=clock))
    assert outcome.verdict == "unverified" and "is still there: a model is loading" in outcome.reason
    assert outcome.loaded_before == ()


def test_a_server_without_runners_is_proven_empty(model_server, tmp_path, clock):
    server = model_server("ollama", "idle")
    outcome = OllamaReset(host=server.url).reset(make_context(tmp_path, clock=clock))
    assert (outcome.verdict, outcome.loaded_before, outcome.loaded_after) == ("verified", (), ())
    assert sum(clock.slept) == 2.0


def test_a_tunnel_or_proxy_on_the_port_is_not_the_server(model_server, tmp_path):
    server = model_server("ollama", "idle", name="ssh")
    outcome = OllamaReset(host=server.url).reset(make_context(tmp_path))
    assert outcome.verdict == "unverified" and "cannot be seen" in outcome.reason


def test_a_remote_host_is_at_best_unverified(monkeypatch):
    assert children_of_listener("http://192.0.2.1:11434", ("ollama",)) is None
    monkeypatch.setattr(module.owner, "listener", lambda _: psutil.Process(os.getpid()))
    monkeypatch.setattr(module.owner, "bears", lambda *_: True)
    monkeypatch.setattr(psutil.Process, "children", lambda *_, **__: (_ for _ in ()).throw(psutil.NoSuchProcess(1)))
    assert children_of_listener("http://127.0.0.1:1", ("ollama",)) is None


# --- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("  'example.com' ", "http://example.com:11434"),
        ("example.com:1234", "http://example.com:1234"),
        (":1234", "http://127.0.0.1:1234"),
        ("http://example.com", "http://example.com:80"),
        ("https://example.com", "https://example.com:443"),
        ("https://example.com:8443/a/b/", "https://example.com:8443/a/b"),
        ("ollama.com", "https://ollama.com:443"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:5", "http://127.0.0.1:5"),
        ("::", "http://[::1]:11434"),
        ("[::]:5", "http://[::1]:5"),
        ("[fe80::1]", "http://[fe80::1]:11434"),
        ("[2001:db8::1]:99", "http://[2001:db8::1]:99"),
        ("example.com:nonsense", "http://example.com:11434"),
        ("example.com:70000", "http://example.com:11434"),
    ],
)
def test_ollama_host_is_read_as_ollama_reads_it(text, url):
    assert ollama_url(text) == url


def test_the_host_comes_from_the_option_else_from_the_environment(tmp_path, serve):
    assert OllamaReset().endpoint({"OLLAMA_HOST": "0.0.0.0:777"}) == "http://127.0.0.1:777"
    assert OllamaReset().endpoint({}) == "http://127.0.0.1:11434"
    assert OllamaReset(host="h").endpoint({}) == "http://h:11434"
    served = serve(Fake([LOADED]))
    assert OllamaReset().loaded(make_context(tmp_path, env={"OLLAMA_HOST": served.url})) == ["qwen3:8b"]


@pytest.mark.parametrize("options", [{"host": "ftp://x"}, {"host": "a:b:5"}, {"timeout_s": 0}, {"timeout_s": -1}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        OllamaReset(**options)


@pytest.mark.parametrize("expires", [None, 5, "soon", "2020-01-01T00:00:00"])
def test_an_odd_expiry_is_no_note(expires):
    assert module._expired(expires) is False
