"""llama.cpp's router and llama-swap as they document themselves: what is asked, what is believed, what is refused."""

from __future__ import annotations

import threading

import pytest

from runq.plugin import TellsContext
from runq.testing import FakeClock, make_context
from runq_plugins.reset.llama_swap import LlamaSwapReset
from runq_plugins.reset.llamacpp import LlamaCppReset
from runq_plugins.reset.mlx import MlxReset

ROUTER = {"role": "router", "max_instances": 1, "model_path": "none", "build_info": "b0-unknown"}
SINGLE = {"model_path": "/models/qwen3-8b.gguf", "model_alias": "qwen3-8b", "is_sleeping": False, "total_slots": 4}
NOT_RUNNING = {"error": {"code": 400, "message": "model is not running", "type": "invalid_request_error"}}


def model(name, value, **more):
    args = ["llama-server", "--ctx-size", "4096", "--alias", name]
    return {"id": name, "object": "model", "owned_by": "llamacpp", "status": {"value": value, "args": args}, **more}


def answering(*listings, unload=(200, {"success": True}), props=(200, ROUTER)):
    """A router that answers GET /models from a list of lists, the last one for ever."""
    left = list(listings)

    def script(method, path, body):
        if path == "/props":
            return props
        if (method, path) == ("GET", "/models"):
            listing = left.pop(0) if len(left) > 1 else left[0]
            return listing if isinstance(listing, tuple) else (200, {"object": "list", "data": listing})
        assert (method, path) == ("POST", "/models/unload"), "never DELETE /models, which deletes files"
        return unload

    return script


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def reset(serve, tmp_path, clock):
    def run(script, cls=LlamaCppReset, env=None, **options):
        served = serve(script)
        outcome = cls(base_url=f"{served.url}/v1", **options).reset(make_context(tmp_path, clock=clock, env=env or {}))
        return outcome, served

    return run


# --- llama.cpp's router ---------------------------------------------------------------------------------------------


def test_loaded_and_sleeping_models_are_unloaded_and_the_others_are_left_alone(reset):
    before = [
        model("a", "loaded"),
        model("b", "sleeping"),
        model("embed", "loaded"),
        model("c", "unloaded", failed=True, exit_code=1),
        model("d", "downloading"),
        model("e", "downloaded"),
    ]
    outcome, served = reset(answering(before, [model("a", "unloaded"), model("d", "downloading")]))
    assert served.posted() == [{"model": "a"}, {"model": "b"}, {"model": "embed"}]
    assert (outcome.loaded_before, outcome.loaded_after) == (("a", "b", "embed"), ())
    # The stand-in's process is no llama-server: the list alone proves nothing.
    assert outcome.verdict == "unverified" and "cannot be seen" in outcome.reason


def test_a_load_under_way_is_waited_for_and_then_evicted(reset, clock):
    loading, loaded = [model("a", "loading")], [model("a", "loaded")]
    outcome, served = reset(answering(loading, loading, loading, loaded, []), timeout_s=60)
    assert [path for _, path, _ in served.requests][:6] == ["/props", *["/models"] * 4, "/models/unload"]
    assert outcome.loaded_before == ("a",) and outcome.loaded_after == ()


def test_a_load_that_hangs_is_evicted_after_half_the_limit(reset, clock):
    left = {"loading": True}

    def script(method, path, body):
        if path == "/models/unload":
            assert clock.now_s - 1000 == pytest.approx(15, abs=1.1)
            left["loading"] = False
            return 200, {"success": True}
        return answering([model("a", "loading")] if left["loading"] else [])(method, path, body)

    outcome, served = reset(script, timeout_s=30)
    assert served.posted() == [{"model": "a"}] and outcome.loaded_after == ()


def test_a_model_that_stays_loaded_fails_within_the_limit(reset, clock):
    outcome, _served = reset(answering([model("a", "loaded")]), timeout_s=20)
    assert (outcome.verdict, outcome.reason) == ("failed", "still loaded: a") and outcome.remedy
    assert clock.now_s - 1000 == pytest.approx(20, abs=1.1)


def test_one_that_ended_by_itself_is_done_and_a_refusal_is_told(reset, clock):
    outcome, _ = reset(answering([model("a", "loaded")], [], unload=(400, NOT_RUNNING)))
    assert outcome.loaded_after == ()
    refusal = (400, {"error": {"code": 400, "message": "model is not found"}})
    outcome, _ = reset(answering([model("a", "loaded")], unload=refusal))
    assert outcome.verdict == "failed" and "did not confirm the unload of a (HTTP 400" in outcome.reason


def test_a_server_with_one_model_cannot_unload_and_says_what_can(reset, clock):
    outcome, served = reset(answering([], props=(200, SINGLE)))
    assert outcome.verdict == "failed" and "started with one model, qwen3-8b, and cannot unload" in outcome.reason
    assert "backend: server" in outcome.remedy and "--models-dir" in outcome.remedy
    assert outcome.loaded_after == ("qwen3-8b",) and served.posted() == [] and clock.slept == []


@pytest.mark.parametrize(
    ("props", "listing", "reason"),
    [
        ((200, {"error": "Unexpected endpoint or method. (GET /props)"}), [], "not what llama-server says of itself"),
        ((404, {"error": {"code": 404}}), [], "not what llama-server says of itself"),
        ((200, b"<html>"), [], "not what llama-server says of itself"),
        ((401, {"error": {"message": "Invalid API Key"}}), [], "without a key"),
        ((200, ROUTER), (500, {"data": []}), "not llama-server's list"),
        ((200, ROUTER), (200, {"data": None}), "not llama-server's list"),
        ((200, ROUTER), [{"id": "a"}], "with their status"),
        ((200, ROUTER), [{"id": "a", "status": {}}], "with their status"),
        ((200, ROUTER), ["a"], "with their status"),
    ],
)
def test_a_wrong_answer_fails_with_its_own_reason(reset, props, listing, reason):
    outcome, _ = reset(answering(listing, props=props))
    assert outcome.verdict == "failed" and reason in outcome.reason and outcome.remedy
    assert (outcome.loaded_before, outcome.loaded_after) == (None, None)


def test_the_key_of_the_environment_is_sent_and_the_context_is_told(serve, tmp_path):
    meta = {"n_ctx": 2048, "n_ctx_train": 8192, "size": 143025408}
    served = serve(answering([model("a", "loaded", meta=meta), model("b", "loaded"), model("c", "unloaded")]))
    backend = LlamaCppReset(base_url=served.url)
    context = make_context(tmp_path, env={"LLAMA_API_KEY": " secret "})
    assert isinstance(backend, TellsContext)
    assert backend.context_lengths(context) == {"a": 2048, "b": 4096}
    assert backend.loaded(context) == ["a", "b"]
    assert {headers["Authorization"] for headers in served.headers} == {"Bearer secret"}
    assert "secret" not in repr(backend.registry(context))
    assert backend.endpoint({}) == served.url == LlamaCppReset(base_url=f"{served.url}/v1/").endpoint({})


def test_a_router_that_hangs_is_busy_and_bounded(tmp_path, raw_server, clock):
    port = raw_server(lambda connection: threading.Event().wait(60))
    backend = LlamaCppReset(base_url=f"http://127.0.0.1:{port}", timeout_s=0.5)
    outcome = backend.reset(make_context(tmp_path, clock=clock))
    assert outcome.verdict == "failed" and "busy or hangs" in outcome.reason


# --- llama-swap -----------------------------------------------------------------------------------------------------


def upstream(name, state="ready", cmd="llama-server --port 5801 -m q.gguf -c 8192"):
    return {"model": name, "state": state, "cmd": cmd, "proxy": "http://localhost:5801", "ttl": 300, "name": name}


def swapping(*listings, unload=(200, {"msg": "ok"}), older=(404, b"404 page not found")):
    left = list(listings)

    def script(method, path, body):
        if path == "/running":
            listing = left.pop(0) if len(left) > 1 else left[0]
            return listing if isinstance(listing, tuple) else (200, {"running": listing})
        return {"/api/models/unload": unload, "/unload": older}[path]

    return script


def test_llama_swap_is_told_once_to_stop_everything(reset):
    outcome, served = reset(swapping([upstream("a"), upstream("embed")], []), LlamaSwapReset)
    assert [path for method, path, _ in served.requests if method == "POST"] == ["/api/models/unload"]
    assert (outcome.loaded_before, outcome.loaded_after) == (("a", "embed"), ())


def test_an_older_llama_swap_is_told_by_its_older_path(reset):
    outcome, served = reset(swapping([upstream("a")], [], unload=(404, b"no"), older=(200, b"OK")), LlamaSwapReset)
    assert "/unload" in [path for _, path, _ in served.requests] and outcome.loaded_after == ()
    outcome, _ = reset(swapping([upstream("a")], unload=(404, b"no")), LlamaSwapReset)
    assert outcome.verdict == "failed" and "llama-swap did not confirm the unload (HTTP 404" in outcome.reason


def test_a_start_is_waited_for_and_a_stop_that_never_ends_is_told(reset, clock):
    starting, ready = [upstream("a", "starting")], [upstream("a")]
    _, served = reset(swapping(starting, starting, ready, []), LlamaSwapReset)
    assert [path for _, path, _ in served.requests][:4] == [*["/running"] * 3, "/api/models/unload"]
    outcome, _ = reset(swapping(ready, [upstream("a", "stopping")]), LlamaSwapReset, timeout_s=20)
    assert (outcome.verdict, outcome.reason) == ("failed", "still loaded: a (stopping)")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((401, {"error": "unauthorized"}), "without a key"),
        ((200, {"running": None}), "not llama-swap's list"),
        ((200, {"running": [{"state": "ready"}]}), "not llama-swap's list"),
        ((502, {"running": []}), "not llama-swap's list"),
    ],
)
def test_a_wrong_list_of_llama_swap_fails(reset, answer, reason):
    outcome, _ = reset(swapping(answer), LlamaSwapReset)
    assert outcome.verdict == "failed" and reason in outcome.reason and outcome.remedy


@pytest.mark.parametrize(
    ("cmd", "length"),
    [
        ("llama-server --ctx-size 4096", {"a": 4096}),
        ("llama-server --ctx-size=4096 -m x", {"a": 4096}),
        ("llama-server -c 0", {}),
        ("llama-server -c", {}),
        ("vllm serve x", {}),
        ("unbalanced ' quote", {}),
        (None, {}),
    ],
)
def test_the_context_in_an_upstreams_command_line(serve, tmp_path, cmd, length):
    served = serve(swapping([upstream("a", cmd=cmd)]))
    assert LlamaSwapReset(base_url=served.url).context_lengths(make_context(tmp_path)) == length


# --- mlx ------------------------------------------------------------------------------------------------------------


def test_mlx_is_the_server_backend_with_its_command_line():
    backend = MlxReset()
    assert backend.argv == ("mlx_lm.server", "--model", "{model}", "--port", "{port}")
    assert backend.endpoint({}) == "http://127.0.0.1:8080"
    assert MlxReset(port=9000).endpoint({}) == "http://127.0.0.1:9000"
    with pytest.raises(ValueError, match="argv"):
        MlxReset(argv=("mlx_lm.server", "{typo}"))
