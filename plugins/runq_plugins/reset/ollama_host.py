"""Where Ollama listens, by the rules of its own client (Ollama envconfig/config.go, `Host` and `ConnectableHost`)."""

from __future__ import annotations

import ipaddress

DEFAULT_PORT = 11434


def ollama_url(text: str) -> str:
    """The URL that a value of `OLLAMA_HOST` means, without a trailing slash.

    A bare host gets port 11434, ``http://`` port 80, ``https://`` port 443; a port that is none falls back to these;
    ``0.0.0.0`` and ``::``, where a server binds, become loopback, where a client connects.
    """
    written = text.strip().strip("\"'")
    scheme, separator, rest = written.partition("://")
    default = DEFAULT_PORT
    if not separator:
        scheme, rest = "http", written
        if written == "ollama.com":
            scheme, rest = "https", "ollama.com:443"
    elif scheme == "http":
        default = 80
    elif scheme == "https":
        default = 443
    hostport, _, path = rest.partition("/")
    host, port = _split(hostport, default)
    return f"{scheme}://{_connectable(host)}:{port}" + (f"/{path.rstrip('/')}" if path.rstrip("/") else "")


def _split(hostport: str, default: int) -> tuple[str, int]:
    head, colon, tail = hostport.rpartition(":")
    bare = hostport.strip("[]")
    try:
        ipaddress.IPv6Address(bare)
        return bare, default
    except ValueError:
        pass
    if not colon:
        return hostport or "127.0.0.1", default
    port = int(tail) if tail.isascii() and tail.isdigit() and int(tail) < 65536 else default
    return head.strip("[]"), port


def _connectable(host: str) -> str:
    if not host or host == "0.0.0.0":  # noqa: S104 - compared, not bound
        return "127.0.0.1"
    if ":" in host:
        try:
            unspecified = ipaddress.ip_address(host.split("%", maxsplit=1)[0]).is_unspecified
        except ValueError:  # no address: the URL made of it is refused where it is used
            unspecified = False
        return "[::1]" if unspecified else f"[{host}]"
    return host
