"""What all tests share: servers with answers told in advance, and what to do when something real is missing."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

import attrs
import pytest
from hypothesis import settings

# A machine that does other things too takes longer for an example now and then: that is no failure.
settings.register_profile("runq", deadline=None)
settings.load_profile("runq")

Answer = tuple[int, Any]
Script = Callable[[str, str, Any], Answer]


@attrs.define
class Served:
    url: str
    port: int
    requests: list[tuple[str, str, Any]] = attrs.field(factory=list)
    headers: list[dict[str, str]] = attrs.field(factory=list)

    def posted(self) -> list[Any]:
        return [body for method, _, body in self.requests if method == "POST"]


@pytest.fixture(scope="session", autouse=True)
def nothing_keeps_the_machine_awake() -> None:
    """Nor warns that nothing does, except in the tests of it: what this machine has is not theirs."""
    os.environ["RUNQ_KEEP_AWAKE"] = "0"


@pytest.fixture
def serve() -> Iterator[Callable[[Script], Served]]:
    """Start an HTTP server that answers ``script(method, path, body) -> (status, JSON or bytes)``."""
    servers: list[ThreadingHTTPServer] = []

    def start(script: Script) -> Served:
        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                served.requests.append((self.command, self.path, body))
                served.headers.append(dict(self.headers))
                status, content = script(self.command, self.path, body)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = _answer

            def log_message(self, *_: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        servers.append(server)
        port = server.server_address[1]
        served = Served(url=f"http://127.0.0.1:{port}", port=port)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return served

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def raw_server() -> Iterator[Callable[[Callable[[socket.socket], None]], int]]:
    """Start a server that does what ``behave(connection)`` does with each connection; gives its port."""
    listening: list[socket.socket] = []
    held: list[socket.socket] = []

    def start(behave: Callable[[socket.socket], None]) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listening.append(listener)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                held.append(connection)
                threading.Thread(target=guarded, args=(connection,), daemon=True).start()

        def guarded(connection: socket.socket) -> None:
            with contextlib.suppress(OSError):
                behave(connection)

        threading.Thread(target=accept, daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for sock in [*listening, *held]:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()


@pytest.fixture
def disk_of(tmp_path: Path, missing: Callable[[str], NoReturn]) -> Iterator[Callable[[int], Path]]:
    """Makes a disk of so many MB: a file system of its own, which only root can mount."""
    mounted: list[Path] = []

    def mount(megabytes: int) -> Path:
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        argv = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        try:
            made = subprocess.run(argv, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            missing("there is no `mount` on this machine")
        if made.returncode != 0:
            missing(f"a disk of its own could not be mounted: {made.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def free_port() -> int:
    """A port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


@pytest.fixture(autouse=True)
def no_subreaper_for_other_tests() -> Iterator[None]:
    """A night that ran in this process made it adopt orphans; the next test's orphans are not its business."""
    yield
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


@pytest.fixture(scope="session")
def missing_session() -> Callable[[str], NoReturn]:
    """As `missing`, for fixtures of the whole session."""

    def tell(what: str) -> NoReturn:
        if os.environ.get("CI"):
            pytest.fail(f"{what}, and in CI it must be there")
        pytest.skip(what)

    return tell


@pytest.fixture
def missing(missing_session: Callable[[str], NoReturn]) -> Callable[[str], NoReturn]:
    """Called when something real that a test needs is not here: skips at home, fails in CI, where it must be."""
    return missing_session
