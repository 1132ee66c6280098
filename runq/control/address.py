"""Where a runner's socket is: beside the journal's lock where the path is short enough for one, else elsewhere.

The runner writes the place into the lock's record, which whoever asks reads: the two need not agree on any rule, and
an environment that differs (cron, SSH) does not matter.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from runq.paths import private_folder

MAX_PATH_BYTES = 107 if sys.platform.startswith("linux") else 103
"""``sun_path`` holds 108 bytes on Linux and 104 on macOS and the BSDs, one of them the end (unix(7), unix(4))."""

SOCKET_NAME = "socket"


class NoSocketError(Exception):
    """No socket can be made on this machine; the message says why."""


def places(journal: Path) -> Iterator[Path]:
    """Folders for the socket of a journal's runner, the best first; none is made by asking."""
    import platformdirs

    yield journal.with_name(journal.name + ".control")
    name = hashlib.sha256(os.fsencode(journal)).hexdigest()[:16]
    yield platformdirs.user_runtime_path("runq") / name
    yield platformdirs.user_state_path("runq") / "control" / name


def listen(journal: Path) -> tuple[socket.socket, Path]:
    """A listening socket that only its user can reach, and its path. The caller holds the journal's lock.

    What a runner left there that was killed is removed: whoever holds the lock has no rival.

    Raises:
        NoSocketError: there can be none.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise NoSocketError("this system has no local sockets")
    why = "every path is too long for a socket"
    for folder in places(journal):
        if _fits(folder):
            try:
                return _listen_in(folder)
            except OSError as error:  # not every file system has sockets
                why = f"{folder}: {error.strerror or error}"
    folder = Path(tempfile.mkdtemp(prefix="runq-"))
    try:
        return _listen_in(folder)
    except OSError as error:
        with suppress(OSError):
            folder.rmdir()
        raise NoSocketError(f"{why}; {folder}: {error.strerror or error}") from error


def close(listener: socket.socket, path: Path) -> None:
    """Close a listening socket and leave nothing behind."""
    listener.close()
    with suppress(OSError):
        path.unlink()
    with suppress(OSError):
        path.parent.rmdir()


def remove_stale(journal: Path) -> None:
    """Remove the socket that a killed runner left beside the journal. The caller holds the journal's lock."""
    folder = next(places(journal))
    with suppress(OSError):
        (folder / SOCKET_NAME).unlink()
    with suppress(OSError):
        folder.rmdir()


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder / SOCKET_NAME)) <= MAX_PATH_BYTES


def _listen_in(folder: Path) -> tuple[socket.socket, Path]:
    private_folder(folder)
    _private(folder)
    path = folder / SOCKET_NAME
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # until here the folder alone keeps others out
        listener.listen(8)
    except BaseException:
        listener.close()
        path.unlink(missing_ok=True)
        raise
    return listener, path


def _private(folder: Path) -> None:
    """Make sure that the folder is ours and nobody else's.

    Raises:
        OSError: it is a link, or another's.
    """
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(None, "it is not a folder of this user")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
