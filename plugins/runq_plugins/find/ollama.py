"""Ollama's servers and what they offer (Ollama docs/api.md: `GET /api/tags`)."""

from __future__ import annotations

from typing import Any

from runq.plugin import FoundServer, Look, OfferedModel, Sought
from runq_plugins.find.sizes import MB, embeds
from runq_plugins.reset.ollama_host import ollama_url

DEFAULT = "http://127.0.0.1:11434"


def find(look: Look) -> Sought:
    """Ask where `OLLAMA_HOST` says, else on port 11434. The `ollama` program would start the app on macOS."""
    places = look.places(ollama_url(look.env.get("OLLAMA_HOST", "")))
    program = look.program("ollama")
    return Sought(
        product="Ollama",
        asked=places,
        servers=tuple(server for url in places if (server := _server(url, look)) is not None),
        program=program,
        for_beginners=True,
        remedy="start it: open the Ollama app, or run `ollama serve`"
        if program
        else "install it from https://ollama.com/download, then get a model: `ollama pull qwen3:4b`",
    )


def _server(url: str, look: Look) -> FoundServer | None:
    listed = _listed(look, url)
    if listed is None:
        return None
    models = tuple(_model(one) for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str))
    return FoundServer(
        base_url=f"{url}/v1",
        engine="ollama",
        reset={"backend": "ollama", **({} if url == DEFAULT else {"host": url})},
        models=models,
        note="" if models else "it has no model yet: get one with `ollama pull qwen3:4b`",
    )


def _listed(look: Look, url: str) -> list[Any] | None:
    try:
        body = look.get(url, "/api/tags")
    except PermissionError:
        return None
    found = body.get("models") if isinstance(body, dict) else None
    return found if isinstance(found, list) else None


def _model(one: dict[str, Any]) -> OfferedModel:
    raw = one.get("details")
    details: dict[str, Any] = raw if isinstance(raw, dict) else {}
    size = one.get("size")
    name, family = str(one["name"]), str(details.get("family") or "")
    elsewhere = bool(one.get("remote_host") or one.get("remote_model")) or name.endswith(("-cloud", ":cloud"))
    return OfferedModel(
        id=name,
        size_mb=size / MB if isinstance(size, int) and size > 0 else None,
        quant=str(details.get("quantization_level") or ""),
        chats=not (elsewhere or embeds(name) or "bert" in family),
    )
