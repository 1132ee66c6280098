"""A night in a workshop, and a receiver that hears what is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs
import pytest

from ..night.conftest import workshop, workshop_class

__all__ = ["workshop", "workshop_class"]


@attrs.define
class Receiver:
    port: int
    heard: list[dict[str, Any]] = attrs.field(factory=list)
    hang: threading.Event | None = None

    @property
    def url(self) -> str:
        return f"json://user:a-secret-word@127.0.0.1:{self.port}/hook"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if made.hang is not None:
                made.hang.wait(120)
            made.heard.append(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Receiver(port=server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    if made.hang is not None:
        made.hang.set()
    server.shutdown()
    server.server_close()
