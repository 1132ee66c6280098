"""vLLM's servers, one model each (vLLM docs, OpenAI-compatible server: `/version`, `/v1/models`)."""

from __future__ import annotations

from runq.plugin import FoundServer, Look, OfferedModel, Sought
from runq_plugins.find.openai_list import listed
from runq_plugins.find.sizes import embeds, hub_mb, quant_in

KEY = "VLLM_API_KEY"

DEFAULT = "http://127.0.0.1:8000"

AWAKE_NOTE = (
    "it has no sleep mode, so it keeps its model all night and no baseline can be proven; with VLLM_SERVER_DEV_MODE=1 "
    "and `--enable-sleep-mode` it can let go, and with `reset: {backend: server, ...}` runq starts and ends it itself"
)


def find(look: Look) -> Sought:
    """Ask on port 8000."""
    places = look.places(DEFAULT)
    program = look.program("vllm")
    servers: list[FoundServer] = []
    problem = ""
    for url in places:
        try:
            server = _server(url, look)
        except PermissionError as error:
            problem = f"{error}: put its key into VLLM_API_KEY"
            continue
        if server is not None:
            servers.append(server)
    return Sought(
        product="vLLM",
        asked=places,
        servers=tuple(servers),
        program=program,
        problem=problem,
        remedy="start it: `VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --enable-sleep-mode`"
        if program
        else "install it (https://docs.vllm.ai), then `vllm serve MODEL --enable-sleep-mode`",
    )


def _server(url: str, look: Look) -> FoundServer | None:
    key = look.env.get(KEY, "").strip()
    models = listed(look, url, key)
    if not models or not all(one.get("owned_by") == "vllm" for one in models):
        return None
    asleep = look.get(url, "/is_sleeping", key=key)
    sleeps = isinstance(asleep, dict) and isinstance(asleep.get("is_sleeping"), bool)
    return FoundServer(
        key_env=KEY if key else "",
        base_url=f"{url}/v1",
        engine="vllm",
        reset={"backend": "vllm", **({} if url == DEFAULT else {"base_urls": [url]})}
        if sleeps
        else {"backend": "none"},
        models=tuple(
            OfferedModel(
                id=one["id"],
                size_mb=hub_mb(str(one.get("root") or one["id"]), look.env),
                quant=quant_in(str(one.get("root") or one["id"])),
                chats=not embeds(one["id"]),
            )
            for one in models
        ),
        note="" if sleeps else AWAKE_NOTE,
    )
