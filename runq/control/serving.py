"""The runner's end of the socket: a thread that takes one connection after the other."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runq.control.address import close, listen
from runq.control.wire import Ask, WireError, answer_line, parse_ask, read_line
from runq.processes.interrupts import wait_readable

LINE_S = 2.0
"""Seconds a connection may take for its question: it is on this machine. Others wait meanwhile."""

_UCRED = struct.Struct("3i")  # pid, uid, gid (unix(7), SO_PEERCRED)


class ControlServer:
    """Listens for one runner until it is closed.

    Args:
        journal: the journal whose lock the runner holds.
        handle: gives a question's answer; called in the server's thread.

    Raises:
        NoSocketError: no socket can be made.
    """

    def __init__(self, journal: Path, handle: Callable[[Ask], dict[str, Any]]) -> None:
        self._listener, self.path = listen(journal)
        self._handle = handle
        self._end_reader, self._end_writer = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="runq-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; the socket's file is gone afterwards."""
        self._end_writer.close()
        self._thread.join(LINE_S)
        self._end_reader.close()
        close(self._listener, self.path)

    def _serve(self) -> None:
        while True:
            try:
                ready = wait_readable(60.0, self._listener.fileno(), self._end_reader.fileno())
                if self._end_reader.fileno() in ready:
                    return
                if not ready:
                    continue
                connection, _ = self._listener.accept()
            except (OSError, ValueError):  # closed under us, or the table of open files is full
                if self._listener.fileno() < 0 or wait_readable(0.5, self._end_reader.fileno()):
                    return
                continue
            with connection, contextlib.suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        try:
            ask = parse_ask(read_line(connection, LINE_S))
            answer = self._handle(ask) if _is_ours(connection) else {"ok": False, "message": "another user's runner"}
        except WireError as error:
            answer = {"ok": False, "message": str(error)}
        connection.settimeout(LINE_S)
        connection.sendall(answer_line(answer))


def _is_ours(connection: socket.socket) -> bool:
    """Whether the other end is this user's, or root's, where the system tells; elsewhere the folder's mode decides."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    _, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, option, _UCRED.size))
    return uid in (os.geteuid(), 0)
