"""Where servers are looked for and what they offer. The answers are those of the servers' own documentation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runq.looking import FindsServers, Look, OfferedModel, Sought
from runq_plugins.find import sizes
from runq_plugins.reset.llama_swap import LlamaSwapReset
from runq_plugins.reset.llamacpp import LlamaCppReset
from runq_plugins.reset.lms import LmsReset
from runq_plugins.reset.mlx import MlxReset
from runq_plugins.reset.ollama import OllamaReset
from runq_plugins.reset.vllm import VllmReset

from ..stand_ins.model_hosts import Host, host, lms

__all__ = ["Host", "host", "lms"]

ALL = (LlamaSwapReset, LlamaCppReset, LmsReset, MlxReset, OllamaReset, VllmReset)

LMS_V1 = {
    "models": [
        {"type": "llm", "publisher": "qwen", "key": "qwen/qwen3-8b", "display_name": "Qwen3 8B",
         "quantization": {"name": "Q4_K_M", "bits_per_weight": 4}, "size_bytes": 5027783488, "params_string": "8B",
         "loaded_instances": [{"id": "qwen/qwen3-8b", "config": {"context_length": 8192}}],
         "max_context_length": 40960, "format": "gguf"},
        {"type": "embedding", "publisher": "nomic-ai", "key": "text-embedding-nomic-embed-text-v1.5",
         "quantization": None, "size_bytes": 84106624, "loaded_instances": [], "max_context_length": 2048},
    ]
}  # fmt: skip
LMS_V0 = {
    "object": "list",
    "data": [
        {"id": "qwen3-8b", "object": "model", "type": "llm", "quantization": "Q4_K_M", "state": "not-loaded"},
        {"id": "embed", "object": "model", "type": "embeddings", "state": "not-loaded"},
    ],
}
LMS_LIE = {"error": "Unexpected endpoint or method. (GET /running)"}  # HTTP 200 on every unknown path
ROUTER_MODELS = {
    "object": "list",
    "data": [
        {"id": "qwen3-8b-Q8_0", "object": "model", "owned_by": "llamacpp",
         "status": {"value": "unloaded", "args": ["llama-server", "--ctx-size", "512", "--model", "MODEL"]}},
        {"id": "bge-m3", "object": "model", "owned_by": "llamacpp", "status": {"value": "loaded", "args": []},
         "meta": {"size": 1100 * 2**20}},
    ],
}  # fmt: skip
SWAP_MODELS = {"object": "list", "data": [{"id": "qwen3-8b-q4_k_m", "object": "model", "owned_by": "llama-swap"}]}
VLLM_MODELS = {
    "object": "list",
    "data": [{"id": "qwen", "object": "model", "owned_by": "vllm", "root": "Qwen/Qwen3-8B-AWQ", "max_model_len": 4096}],
}
MLX_MODELS = {"object": "list", "data": [{"id": "mlx-community/Qwen3-8B-4bit", "object": "model", "created": 1}]}

Pages = dict[str, Any]


@pytest.fixture
def pages(serve: Any) -> Callable[..., Any]:
    """A server with these answers, 404 otherwise."""

    def start(known: Pages, otherwise: tuple[int, Any] = (404, {"error": {"code": 404}})) -> Any:
        return serve(lambda _method, path, _body: (200, known[path]) if path in known else otherwise)

    return start


def look(url: str, **env: str) -> Look:
    return Look(urls=(url,), env={"HOME": "/nowhere", **env})


def only(sought: Sought) -> Any:
    (server,) = sought.servers
    return server


def test_every_built_in_backend_with_servers_of_its_own_can_look() -> None:
    assert all(isinstance(cls, FindsServers) for cls in ALL)


def test_lm_studio(pages: Any) -> None:
    served = pages({"/api/v1/models": LMS_V1}, (200, LMS_LIE))
    server = only(LmsReset.find(look(served.url + "/v1/", LM_API_TOKEN="secret")))
    assert server.base_url == f"{served.url}/v1"
    assert server.reset == {"backend": "lms", "base_url": served.url}
    assert server.models == (
        OfferedModel(id="qwen/qwen3-8b", size_mb=5027783488 / 2**20, quant="Q4_K_M"),
        OfferedModel(id="text-embedding-nomic-embed-text-v1.5", size_mb=84106624 / 2**20, chats=False),
    )
    assert served.headers[0]["Authorization"] == "Bearer secret"


def test_an_lm_studio_without_version_1(pages: Any) -> None:
    served = pages({"/api/v0/models": LMS_V0}, (200, LMS_LIE))
    models = only(LmsReset.find(look(served.url))).models
    assert [(m.id, m.size_mb, m.quant, m.chats) for m in models] == [
        ("qwen3-8b", None, "Q4_K_M", True), ("embed", None, "", False),
    ]  # fmt: skip


def test_lm_studio_on_another_port_is_found_by_lms_which_is_not_woken(
    pages: Any, lms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    served = pages({"/api/v1/models": LMS_V1})
    folder = tmp_path / ".lmstudio" / "bin"
    folder.mkdir(parents=True)
    program = folder / "lms"
    answer = json.dumps({"running": True, "port": served.port})
    program.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/calls\necho '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setattr("runq_plugins.find.lms.DEFAULT", f"http://127.0.0.1:{free_port}")
    sought = LmsReset.find(Look(env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}))
    assert only(sought).base_url == f"{served.url}/v1"
    assert sought.program == str(program)
    assert sought.note == f"`lms` is not on the PATH; runq uses {program}. For your own use: `{program} bootstrap`"
    assert (tmp_path / "calls").read_text() == "server status --json\n"


def test_ollama(host: Any) -> None:
    ollama = host("ollama")
    sought = OllamaReset.find(Look(env={"OLLAMA_HOST": ollama.url.removeprefix("http://")}))
    server = only(sought)
    assert server.base_url == f"{ollama.url}/v1"
    assert server.reset == {"backend": "ollama", "host": ollama.url}
    assert [(m.id, m.quant, m.chats) for m in server.models] == [
        ("qwen3:8b", "Q4_K_M", True),
        ("gemma3:4b", "Q4_K_M", True),
        ("nomic-embed-text:latest", "F16", False),
        ("gpt-oss:120b-cloud", "MXFP4", False),
    ]
    assert server.models[1].size_mb == 3338801804 / 2**20
    assert [one["method"] for one in ollama.state()["requests"]] == ["GET"], "it only reads"


def test_the_usual_port_of_ollama_needs_no_option(monkeypatch: pytest.MonkeyPatch, host: Any) -> None:
    ollama = host("ollama")
    monkeypatch.setattr("runq_plugins.find.ollama.DEFAULT", ollama.url)
    assert only(OllamaReset.find(look(ollama.url))).reset == {"backend": "ollama"}


def test_a_llama_cpp_router(pages: Any, tmp_path: Path) -> None:
    for part in ("00001-of-00002", "00002-of-00002"):
        (tmp_path / f"model-Q8_0-{part}.gguf").write_bytes(b"x" * 2**20)
    listed = json.loads(json.dumps(ROUTER_MODELS).replace("MODEL", str(tmp_path / "model-Q8_0-00001-of-00002.gguf")))
    served = pages({"/props": {"role": "router"}, "/v1/models": listed})
    server = only(LlamaCppReset.find(look(served.url)))
    assert server.reset == {"backend": "llamacpp", "base_url": served.url} and server.note == ""
    assert server.models == (
        OfferedModel(id="qwen3-8b-Q8_0", size_mb=2.0, quant="Q8_0"),
        OfferedModel(id="bge-m3", size_mb=1100.0, chats=False),
    )


def test_a_llama_server_of_one_model_cannot_be_emptied(pages: Any) -> None:
    served = pages({"/props": {"model_path": "/models/qwen3-8b-Q4_K_M.gguf", "model_alias": "qwen3"}})
    server = only(LlamaCppReset.find(look(served.url)))
    assert server.reset == {"backend": "none"} and "--models-dir" in server.note
    assert server.models == (OfferedModel(id="qwen3", quant="Q4_K_M"),)


def test_a_key_that_is_wanted_is_told(serve: Any) -> None:
    served = serve(lambda *_: (401, {"error": {"message": "Invalid API Key", "type": "authentication_error"}}))
    sought = LlamaCppReset.find(look(served.url, LLAMA_API_KEY="wrong"))
    assert sought.servers == ()
    assert sought.problem == f"{served.url} refuses to answer without a key: put its key into LLAMA_API_KEY"
    assert "wrong" not in repr(sought)


def test_llama_swap(pages: Any) -> None:
    served = pages({"/running": {"running": []}, "/v1/models": SWAP_MODELS})
    server = only(LlamaSwapReset.find(look(served.url)))
    assert server.reset == {"backend": "llama-swap", "base_url": served.url}
    assert server.models == (OfferedModel(id="qwen3-8b-q4_k_m", quant="q4_k_m"),)


@pytest.mark.parametrize(
    ("asleep", "reset", "note"),
    [({"is_sleeping": False}, {"backend": "vllm"}, ""), (None, {"backend": "none"}, "--enable-sleep-mode")],
)
def test_vllm(pages: Any, tmp_path: Path, asleep: Any, reset: Any, note: str) -> None:
    weights = tmp_path / "hub" / "models--Qwen--Qwen3-8B-AWQ" / "snapshots" / "abc" / "model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"x" * 3 * 2**20)
    served = pages({"/v1/models": VLLM_MODELS, **({"/is_sleeping": asleep} if asleep else {})})
    server = only(VllmReset.find(look(served.url, HF_HOME=str(tmp_path))))
    assert server.reset == ({**reset, "base_urls": [served.url]} if asleep else reset)
    assert note in server.note and bool(note) == bool(server.note)
    assert server.models == (OfferedModel(id="qwen", size_mb=3.0, quant="AWQ"),)


def test_mlx(pages: Any) -> None:
    served = pages({"/health": {"status": "ok"}, "/v1/models": MLX_MODELS})
    server = only(MlxReset.find(look(served.url)))
    assert server.reset == {"backend": "mlx", "port": served.port}
    assert server.models == (OfferedModel(id="mlx-community/Qwen3-8B-4bit", quant="4bit"),)
    assert "end this server" in server.note


EVERY: dict[str, Pages] = {
    "LM Studio": {"/api/v1/models": LMS_V1, "/v1/models": {"data": [{"id": "qwen/qwen3-8b", "object": "model"}]}},
    "Ollama": {"/api/tags": {"models": []}, "/v1/models": {"data": [{"id": "a", "owned_by": "library"}]}},
    "llama.cpp": {"/props": {"role": "router"}, "/v1/models": ROUTER_MODELS, "/health": {"status": "ok"}},
    "llama-swap": {"/running": {"running": []}, "/v1/models": SWAP_MODELS},
    "vLLM": {"/v1/models": VLLM_MODELS, "/version": {"version": "0.14.0"}},
    "mlx_lm": {"/v1/models": MLX_MODELS, "/health": {"status": "ok"}},
    "": {"/": {}, "/health": {"status": "ok"}},
}


@pytest.mark.parametrize("product", EVERY)
def test_a_server_is_taken_for_what_it_is_and_for_nothing_else(pages: Any, product: str) -> None:
    served = pages(EVERY[product], (200, LMS_LIE) if product == "LM Studio" else (404, {"detail": "Not Found"}))
    shared = look(served.url)
    found = [sought.product for cls in ALL if (sought := cls.find(shared)).servers]
    assert found == ([product] if product else [])


@pytest.mark.parametrize("cls", ALL)
def test_where_nothing_listens_there_is_advice(cls: Any, free_port: int) -> None:
    sought = cls.find(look(f"http://127.0.0.1:{free_port}", PATH="/nowhere"))
    assert sought.servers == () and sought.program is None and sought.problem == ""
    assert "install it" in sought.remedy


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("smollm2-Q4_1", "Q4_1"), ("Qwen3-8B-UD-IQ2_XXS.gguf", "IQ2_XXS"), ("gemma-3-4b-it-F16", "F16"),
        ("mlx-community/Qwen3-8B-4bit", "4bit"), ("Qwen/Qwen3-8B-FP8", "FP8"), ("q4-lab/model-Q5_K_S", "Q5_K_S"),
        ("qwen3:8b", ""), ("llama-3.1-8b-instruct", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_quantisation_in_a_name(name: str, quant: str) -> None:
    assert sizes.quant_in(name) == quant


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("text-embedding-nomic-embed-text-v1.5", True), ("BAAI/bge-m3", True), ("bge-reranker-v2-m3", True),
        ("google-bert", True), ("bertram-7b", False), ("qwen3:8b", False),
    ],
)  # fmt: skip
def test_what_makes_embeddings_does_not_chat(name: str, expected: bool) -> None:
    assert sizes.embeds(name) is expected
