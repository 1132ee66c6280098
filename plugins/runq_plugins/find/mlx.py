"""mlx_lm's server (ml-explore/mlx-lm mlx_lm/server.py: `/health`, `/v1/models` lists the Hugging Face cache)."""

from __future__ import annotations

from runq.plugin import FoundServer, Look, OfferedModel, Sought
from runq_plugins.find.openai_list import listed
from runq_plugins.find.sizes import embeds, hub_mb, quant_in

DEFAULT = "http://127.0.0.1:8080"

STOP_NOTE = "end this server before the night: it cannot unload, so runq starts and ends one per model on its port"


def find(look: Look) -> Sought:
    """Ask on port 8080."""
    places = look.places(DEFAULT)
    program = look.program("mlx_lm.server")
    return Sought(
        product="mlx_lm",
        asked=places,
        servers=tuple(server for url in places if (server := _server(url, look)) is not None),
        program=program,
        remedy="start it once so that its models can be listed: `mlx_lm.server`"
        if program
        else "on a Mac with Apple silicon install it: `pip install mlx-lm`, then `mlx_lm.server`",
    )


def _server(url: str, look: Look) -> FoundServer | None:
    try:
        # Its answers to unknown paths are 404; llama.cpp, which has the same port and health, knows /props.
        if look.get(url, "/health") != {"status": "ok"} or look.get(url, "/props") is not None:
            return None
        models = listed(look, url)
    except PermissionError:
        return None
    if models is None or any("owned_by" in one for one in models):
        return None
    port = url.rpartition(":")[2]
    return FoundServer(
        base_url=f"{url}/v1",
        engine="mlx",
        reset={"backend": "mlx", **({} if url == DEFAULT or not port.isdecimal() else {"port": int(port)})},
        models=tuple(
            OfferedModel(
                id=one["id"],
                size_mb=hub_mb(one["id"], look.env),
                quant=quant_in(one["id"]),
                chats=not embeds(one["id"]),
            )
            for one in models
        ),
        note=STOP_NOTE,
    )
