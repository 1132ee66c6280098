"""The errors a user can meet: each says what is wrong, where, and what to do next."""

from __future__ import annotations

from typing import ClassVar


class RunqError(Exception):
    """Something went wrong in a way the user can act on.

    Args:
        message: one sentence without a trailing full stop.
        where: the place, for example ``queue.yaml, entry 2, line 14, column 7``.
        remedy: what to do next, in the imperative.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  {self.remedy}" if self.remedy else text


class UsageError(RunqError):
    """The command was called with arguments that do not fit (exit 2)."""

    exit_code = 2


class QueueFileError(RunqError):
    """The queue file is wrong, or what it names is not there (exit 2).

    ``problems`` holds every problem found, this one first, so that a user mends a file in one go.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        remedy: str = "",
        others: tuple[QueueFileError, ...] = (),
    ) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.others = others

    @property
    def problems(self) -> tuple[QueueFileError, ...]:
        """Every problem found in the file, in the order of the file."""
        return (self, *self.others)


class PluginError(RunqError):
    """A plugin is missing, broken, has a wrong option, or could not do its work (exit 2 before a night)."""

    exit_code = 2


class LockedError(RunqError):
    """Another night holds the journal or an endpoint (exit 3)."""

    exit_code = 3


class JournalError(RunqError):
    """The journal cannot be read or written, or its hash chain is broken (exit 4).

    Args:
        no_room: its disk is full, or looks so: what could not be written may be when there is room.
    """

    exit_code = 4

    def __init__(self, message: str, *, where: str = "", remedy: str = "", no_room: bool = False) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.no_room = no_room
