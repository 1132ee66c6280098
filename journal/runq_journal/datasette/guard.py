"""Who may ask, and what a page may do: this machine by its own name, and nothing but show itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})

# No script at all: whatever a model calls itself, it cannot run. Nothing from elsewhere, and no page around ours.
_POLICY = (
    b"default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none';"
    b" frame-ancestors 'none'"
)

# Charts are drawn by scripts of this server, from its JSON. Nothing is evaluated, and nothing inline is run.
_POLICY_OF_CHARTS = _POLICY + b"; script-src 'self'; connect-src 'self'"

WITH_CHARTS = "/-/dashboards"

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
)

REFUSAL = b"The journal answers to localhost, 127.0.0.1 and [::1] only. Open it by one of these names.\n"


def guarded(app: App) -> App:
    """The application, for requests to this machine's loopback names only.

    Any web page can have its own name point at 127.0.0.1 (DNS rebinding) and would then read the journal as its own;
    but the browser still sends that name as ``Host``.
    """

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                policy = _POLICY_OF_CHARTS if scope.get("path", "").startswith(WITH_CHARTS) else _POLICY
                headers = [*message.get("headers", ()), (b"content-security-policy", policy), *HEADERS]
                message = {**message, "headers": headers}
            await send(message)

        if scope["type"] == "http" and not _is_here(scope):
            await send_with_headers(
                {"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain")]}
            )
            await send({"type": "http.response.body", "body": REFUSAL})
        elif scope["type"] in {"http", "lifespan"}:  # Datasette has no websockets
            await app(scope, receive, send_with_headers)

    return guard


def _is_here(scope: Scope) -> bool:
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
    return len(hosts) == 1 and host_name(hosts[0]) in NAMES


def host_name(host: str) -> str:
    """A ``Host`` header without its port, in lower case."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()
