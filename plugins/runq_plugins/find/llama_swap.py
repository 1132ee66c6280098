"""llama-swap's servers (mostlygeek/llama-swap internal/server: `/running`, `/v1/models`)."""

from __future__ import annotations

from runq.plugin import FoundServer, Look, OfferedModel, Sought
from runq_plugins.find.openai_list import listed
from runq_plugins.find.sizes import embeds, quant_in

KEY = "LLAMA_SWAP_API_KEY"

DEFAULT = "http://127.0.0.1:8080"


def find(look: Look) -> Sought:
    """Ask on port 8080."""
    places = look.places(DEFAULT)
    program = look.program("llama-swap")
    servers: list[FoundServer] = []
    problem = ""
    for url in places:
        try:
            server = _server(url, look)
        except PermissionError as error:
            problem = f"{error}: put one of its `apiKeys` into LLAMA_SWAP_API_KEY"
            continue
        if server is not None:
            servers.append(server)
    return Sought(
        product="llama-swap",
        asked=places,
        servers=tuple(servers),
        program=program,
        problem=problem,
        remedy="start it: `llama-swap --config FILE`"
        if program
        else "install it (https://github.com/mostlygeek/llama-swap), then `llama-swap --config FILE`",
    )


def _server(url: str, look: Look) -> FoundServer | None:
    key = look.env.get(KEY, "").strip()
    running = look.get(url, "/running", key=key)
    if not (isinstance(running, dict) and isinstance(running.get("running"), list)):
        return None
    models = tuple(
        OfferedModel(id=one["id"], quant=quant_in(one["id"]), chats=not embeds(one["id"]))
        for one in listed(look, url, key) or ()
    )
    return FoundServer(
        key_env=KEY if key else "",
        base_url=f"{url}/v1",
        engine="llama-swap",
        reset={"backend": "llama-swap", **({} if url == DEFAULT else {"base_url": url})},
        models=models,
    )
