"""llama.cpp's servers, a router or one of a single model (llama.cpp tools/server/README.md: `/props`, `/models`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runq.plugin import FoundServer, Look, OfferedModel, Sought
from runq_plugins.find.openai_list import listed
from runq_plugins.find.sizes import MB, embeds, file_mb, quant_in

KEY = "LLAMA_API_KEY"

DEFAULT = "http://127.0.0.1:8080"

NEWER = "http://127.0.0.1:9931"
"""The default port that llama.cpp's README gives since 2026 (pull request 26508)."""

SINGLE_NOTE = (
    "it was started with one model and cannot unload it, so no baseline can be proven; as a router it can: "
    "start it without `-m`, with `--models-dir DIR`"
)


def find(look: Look) -> Sought:
    """Ask on the ports 8080 and 9931."""
    places = look.places(DEFAULT, NEWER)
    program = look.program("llama-server")
    servers: list[FoundServer] = []
    problem = ""
    for url in places:
        try:
            server = _server(url, look)
        except PermissionError as error:
            problem = f"{error}: put its key into LLAMA_API_KEY"
            continue
        if server is not None:
            servers.append(server)
    return Sought(
        product="llama.cpp",
        asked=places,
        servers=tuple(servers),
        program=program,
        problem=problem,
        remedy="start it as a router: `llama-server --models-dir DIR`, DIR with your .gguf files"
        if program
        else "install it (https://github.com/ggml-org/llama.cpp), then `llama-server --models-dir DIR`",
    )


def _server(url: str, look: Look) -> FoundServer | None:
    key = look.env.get(KEY, "").strip()
    props = look.get(url, "/props", key=key)
    if not isinstance(props, dict):
        return None
    if props.get("role") == "router":
        models = tuple(_routed(one) for one in listed(look, url, key) or ())
        reset: dict[str, Any] = {"backend": "llamacpp", **({} if url == DEFAULT else {"base_url": url})}
        note = "" if models else "it has no model: start it with `--models-dir DIR`, DIR with your .gguf files"
        return FoundServer(
            base_url=f"{url}/v1", engine="llamacpp", reset=reset, models=models, note=note, key_env=KEY if key else ""
        )
    path = props.get("model_path")
    if not isinstance(path, str):
        return None
    alias = props.get("model_alias")
    name = alias if isinstance(alias, str) and alias else path
    only = OfferedModel(id=name, size_mb=file_mb(path), quant=quant_in(path), chats=not embeds(name))
    return FoundServer(
        base_url=f"{url}/v1",
        engine="llamacpp",
        reset={"backend": "none"},
        models=(only,),
        note=SINGLE_NOTE,
        key_env=KEY if key else "",
    )


def _routed(one: dict[str, Any]) -> OfferedModel:
    name = one["id"]
    status, meta = one.get("status"), one.get("meta")
    args = status.get("args") if isinstance(status, dict) else None
    path = _after(args if isinstance(args, list) else (), ("--model", "-m"))
    size = meta.get("size") if isinstance(meta, dict) else None
    on_disk = file_mb(path) if path else None
    return OfferedModel(
        id=name,
        size_mb=on_disk if on_disk is not None else size / MB if isinstance(size, int) else None,
        quant=quant_in(name) or quant_in(path),
        chats=not embeds(name),
    )


def _after(words: Sequence[object], options: tuple[str, ...]) -> str:
    for at, word in enumerate(words[:-1]):
        if word in options:
            return str(words[at + 1])
    return ""
