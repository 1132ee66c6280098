"""LM Studio's server and what it offers (LM Studio's documentation, developer/rest: list)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runq.plugin import FoundServer, Look, OfferedModel, Sought
from runq_plugins.find.sizes import MB, embeds, quant_in
from runq_plugins.program import CannotStart, run_bounded
from runq_plugins.reset.lms_cli import find_lms

KEY = "LM_API_TOKEN"

DEFAULT = "http://127.0.0.1:1234"

STATUS_S = 5.0
"""Seconds for `lms server status`, which was seen to hang when LM Studio does not run."""


def find(look: Look) -> Sought:
    """Ask on port 1234, else where `lms server status` says; unlike other `lms` commands it starts nothing."""
    program = find_lms(look.env)
    places = look.places(DEFAULT)
    servers, problem = _servers(places, look)
    if not servers and not look.urls and program is not None:
        port = _port(program, look.env)
        if port is not None and f"http://127.0.0.1:{port}" not in places:
            places = (*places, f"http://127.0.0.1:{port}")
            servers, problem = _servers(places[-1:], look)
    off_path = program is not None and look.program("lms") is None
    return Sought(
        product="LM Studio",
        asked=places,
        servers=servers,
        program=program,
        for_beginners=True,
        problem=problem,
        remedy="start its server: `lms server start`, or in the app: Developer, Status: Running"
        if program
        else "install it from https://lmstudio.ai, get a model in it, and start its server (Developer)",
        note=f"`lms` is not on the PATH; runq uses {program}. For your own use: `{program} bootstrap`"
        if off_path
        else "",
    )


def _servers(places: tuple[str, ...], look: Look) -> tuple[tuple[FoundServer, ...], str]:
    found: list[FoundServer] = []
    problem = ""
    for url in places:
        try:
            models = _models(look, url)
        except PermissionError as error:
            problem = f"{error}: put LM Studio's API token into LM_API_TOKEN"
            continue
        if models is not None:
            found.append(
                FoundServer(
                    base_url=f"{url}/v1",
                    engine="lmstudio",
                    reset={"backend": "lms", **({} if url == DEFAULT else {"base_url": url})},
                    models=models,
                    key_env=KEY if look.env.get(KEY) else "",
                    note="" if models else "it has no model yet: get one in the app, or with `lms get`",
                )
            )
    return tuple(found), problem


def _models(look: Look, url: str) -> tuple[OfferedModel, ...] | None:
    """What it has on disk, by its REST interface of version 1, else 0; an unknown path is HTTP 200 with an error."""
    key = look.env.get(KEY, "").strip()
    first = look.get(url, "/api/v1/models", key=key)
    listed = first.get("models") if isinstance(first, dict) else None
    if isinstance(listed, list) and all(isinstance(one, dict) and isinstance(one.get("key"), str) for one in listed):
        return tuple(_model(one, one["key"]) for one in listed)
    second = look.get(url, "/api/v0/models", key=key)
    listed = second.get("data") if isinstance(second, dict) else None
    if isinstance(listed, list) and all(isinstance(one, dict) and "state" in one for one in listed):
        return tuple(_model(one, str(one.get("id"))) for one in listed)
    return None


def _model(one: Mapping[str, Any], name: str) -> OfferedModel:
    size, told = one.get("size_bytes"), one.get("quantization")
    quant = told.get("name") if isinstance(told, dict) else told
    kind = str(one.get("type", "llm"))
    return OfferedModel(
        id=name,
        size_mb=size / MB if isinstance(size, int) and size > 0 else None,
        quant=quant if isinstance(quant, str) and quant else quant_in(name),
        chats=not kind.startswith("embedding") and not embeds(name),
    )


def _port(program: str, env: Mapping[str, str]) -> int | None:
    try:
        ran = run_bounded([program, "server", "status", "--json"], timeout_s=STATUS_S, env=env, cwd=Path("/"))
        status = json.loads(ran.stdout)
    except (CannotStart, ValueError, RecursionError):
        return None
    port = status.get("port") if isinstance(status, dict) and status.get("running") is True else None
    return port if isinstance(port, int) else None
