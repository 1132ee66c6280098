"""One HTTP request with a limit that holds.

urllib3's timeouts apply to each socket operation, and looking a name up has none: a server that sends a byte now
and then, or a dead name server, can hold a caller for ever. So the request runs in a daemon thread, the caller
leaves at its deadline, and closing the socket then ends the thread too. No retries, no redirects, and no proxies:
an environment's `HTTP_PROXY` must never see a request for 127.0.0.1.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, NewConnectionError, ProtocolError
from urllib3.exceptions import TimeoutError as Urllib3Timeout
from urllib3.util import Url, parse_url

BODY_LIMIT_BYTES = 4 * 2**20
"""No list of models comes near it; a body without end must not fill the memory that is being measured."""

TICK_S = 0.1
"""How often an interrupted night is noticed while a request is under way, in seconds."""

_CHUNK_BYTES = 64 * 2**10


@attrs.frozen(kw_only=True)
class HttpReply:
    """A complete answer. ``body`` is the JSON it holds, ``None`` where it is not JSON; ``text`` is it as text."""

    status: int
    body: Any
    text: str

    def summary(self) -> str:
        """Status and the beginning of the text, for a reason that a person reads."""
        text = " ".join(self.text.split())
        return f"HTTP {self.status}: {text[:200] or 'an empty body'}"


class HttpFailure(Exception):
    """No complete answer came; the message says why, without the URL's credentials."""


class Unreachable(HttpFailure):
    """Nothing accepts a connection there, or the name is unknown."""


class TimedOut(HttpFailure):
    """No complete answer within the limit."""


class Garbage(HttpFailure):
    """Something answered, but not HTTP, not to the end, or without end."""


def request_json(
    method: str,
    url: str,
    *,
    body: Any = None,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    sleep: Callable[[float], None] | None = None,
) -> HttpReply:
    """Send one request and read its whole answer within ``timeout_s`` seconds, whatever the other side does.

    Args:
        method: ``GET``, ``POST`` ...
        url: an http or https URL.
        body: JSON data to send; nothing when ``None``.
        timeout_s: seconds for everything together: name, connection, answer.
        headers: further headers.
        sleep: called with 0 while waiting, so that an interrupted night's exception gets through.

    Raises:
        Unreachable, TimedOut, Garbage: there is no complete answer.
    """
    target = _parse(url)
    call = _Call(method, target, None if body is None else json.dumps(body).encode(), dict(headers or {}), timeout_s)
    deadline = time.monotonic() + timeout_s
    call.start()
    try:
        while not call.ended.wait(max(0.0, min(TICK_S, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                raise TimedOut(f"{call.where} gave no complete answer within {timeout_s:g} s")
            if sleep is not None:
                sleep(0.0)
    finally:
        call.abandon()
    if call.failure is not None:
        raise call.failure
    if call.reply is None:  # pragma: no cover - the thread sets one of the two
        raise Garbage(f"{call.where} gave no answer")
    return call.reply


def _parse(url: str) -> Url:
    try:
        target = parse_url(url)
    except HTTPError as error:
        raise Unreachable(f"{url!r} is not a URL") from error
    if target.scheme not in ("http", "https") or not target.host:
        raise Unreachable(f"{url!r} is not an http or https URL")
    return target


class _Call(threading.Thread):
    """The request, in its own thread."""

    def __init__(self, method: str, target: Url, body: bytes | None, headers: dict[str, str], timeout_s: float) -> None:
        super().__init__(name="runq-http", daemon=True)
        self.where = f"{target.host}:{target.port or (443 if target.scheme == 'https' else 80)}"
        self.ended = threading.Event()
        self.reply: HttpReply | None = None
        self.failure: HttpFailure | None = None
        self._abandoned = False
        self._method, self._body = method, body
        self._path = target.request_uri
        self._headers = {"User-Agent": "runq", "Accept": "application/json", **headers}
        if body is not None:
            self._headers["Content-Type"] = "application/json"
        host = (target.host or "").strip("[]")
        kind = HTTPSConnection if target.scheme == "https" else HTTPConnection
        self._connection = kind(host, target.port, timeout=timeout_s)

    def run(self) -> None:
        try:
            self.reply = self._exchange()
        except Exception as error:  # a thread has no caller: every failure becomes a value
            self.failure = self._classify(error)
        finally:
            self._connection.close()
            self.ended.set()

    def abandon(self) -> None:
        """End the thread's waiting: a socket that is shut down wakes whoever reads from it."""
        self._abandoned = True
        sock = self._connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _exchange(self) -> HttpReply:
        self._connection.connect()
        if self._abandoned:  # a slow name server: a request nobody waits for must not be sent, it may unload a model
            raise TimedOut(f"{self.where} was given up")
        self._connection.request(
            self._method,
            self._path,
            body=self._body,
            headers=self._headers,
            preload_content=False,
            decode_content=False,
        )
        response = self._connection.getresponse()
        content = bytearray()
        while chunk := response.read1(_CHUNK_BYTES):
            content += chunk
            if len(content) > BODY_LIMIT_BYTES:
                raise Garbage(f"{self.where} sent more than {BODY_LIMIT_BYTES // 2**20} MB")
            if self._abandoned:
                raise TimedOut(f"{self.where} was given up")
        text = content.decode("utf-8", "replace")
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = None
        return HttpReply(status=response.status, body=body, text=text)

    def _classify(self, error: Exception) -> HttpFailure:
        if isinstance(error, HttpFailure):
            return error
        # A refused connection is a NewConnectionError, which urllib3 counts among its timeouts.
        if isinstance(error, (TimeoutError, Urllib3Timeout)) and not isinstance(error, NewConnectionError):
            return TimedOut(f"{self.where} gave no complete answer in time")
        if isinstance(error, http.client.RemoteDisconnected):
            return Garbage(f"{self.where} ended the connection without an answer")
        if isinstance(error, (http.client.HTTPException, ProtocolError)):
            return Garbage(f"{self.where} did not answer in complete HTTP ({_short(error)})")
        if isinstance(error, ConnectionResetError):
            return Garbage(f"{self.where} broke the connection off")
        if isinstance(error, (OSError, HTTPError)):
            return Unreachable(f"{self.where} cannot be reached ({_short(error)})")
        return Unreachable(f"{self.where} cannot be asked ({_short(error)})")


def _short(error: Exception) -> str:
    """The innermost cause in a few words: urllib3 wraps what the system said."""
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    text = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(inner)
    return f"{type(inner).__name__}: {text}"[:200]
