"""Room kept back on the journal's disk, for the moment when the disk is full."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import attrs

MOST_BYTES = 64 * 2**20
"""What is kept back at most: enough for the events of hundreds of entries (some 20 KiB each) and for the answers of
those that still run, and little on any disk that holds models."""

SHARE = 8
"""On a small disk no more than this part of what is free."""

LEAST_BYTES = 2**16
"""Below this nothing is worth halving: a commit of the journal writes some pages of 4 KiB."""

_CHUNK = 2**20


def reserve_path(journal: Path) -> Path:
    """The file beside a journal that holds the room."""
    return journal.with_name(journal.name + ".reserve")


def free_bytes(folder: Path) -> int:
    """What this user may still write on the disk of a folder.

    Raises:
        OSError: the folder is not there.
    """
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


@attrs.define
class Reserve:
    """A file that takes up room until it is needed.

    It gives half of what it holds at a time. Whatever fills a disk may also take the room that was given; so there is
    some left for the next time, and the next.
    """

    path: Path
    held: int = attrs.field(default=0, init=False)
    """Bytes it takes up now."""
    _fd: int | None = attrs.field(default=None, init=False)

    def keep(self) -> int:
        """Take up the room that is to be kept back, where the disk has it. Returns the bytes that are held.

        A disk that has none, or that cannot be written, is no error: then less is held.
        """
        try:
            if self._fd is None:
                self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                self.held = os.fstat(self._fd).st_blocks * 512  # what a killed runner left
            wanted = min(MOST_BYTES, (free_bytes(self.path.parent) + self.held) // SHARE)
        except OSError:
            return self.held
        if wanted > self.held:
            try:
                _take_up(self._fd, self.held, wanted)
                self.held = wanted
            except OSError:  # no room for more than it has
                with suppress(OSError):
                    os.ftruncate(self._fd, self.held)
        return self.held

    def give(self) -> int:
        """Give half of the room, or all where it is little. Returns the bytes that were given; 0 when none is left."""
        if self._fd is None or self.held == 0:
            return 0
        left = self.held // 2 if self.held > LEAST_BYTES else 0
        given = self.held - left
        os.ftruncate(self._fd, left)
        self.held = left
        return given

    def close(self) -> None:
        """Give everything, and remove the file."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd, self.held = None, 0
            with suppress(OSError):
                self.path.unlink(missing_ok=True)


def _take_up(fd: int, size: int, wanted: int) -> None:
    """Make a file of ``size`` bytes ``wanted`` bytes long, its blocks really taken.

    Raises:
        OSError: there is no room for it.
    """
    allocate = getattr(os, "posix_fallocate", None)
    if allocate is not None:
        with suppress(OSError):  # EOPNOTSUPP where the file system cannot; then they are written, or there is no room
            allocate(fd, size, wanted - size)
            if os.fstat(fd).st_blocks * 512 >= wanted:
                return
    # Random, because some file systems keep no block for zeros.
    at = size
    while at < wanted:
        at += os.pwrite(fd, os.urandom(min(_CHUNK, wanted - at)), at)
    os.fsync(fd)
