"""Who runs the entries of a night: this machine, one by one, or the machines of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from runq.night_loop import run_all

if TYPE_CHECKING:
    from runq.night_context import NightContext
    from runq.planning import Work
    from runq_schemas.queue import Order


class Executor(Protocol):
    """Runs what a night has planned, and records its end."""

    @property
    def here(self) -> bool:
        """Whether the entries run on this machine: then its endpoints are locked for the night."""
        ...

    def run(self, context: NightContext, works: Sequence[Work], max_failures: int | None, order: Order) -> str | None:
        """Run every entry and record the night's end. Returns the signal's name when one ended it before.

        Args:
            max_failures: entries in a row that may be incomplete before the night ends; ``None``: any number.

        Raises:
            JournalError: the journal cannot be written.
        """
        ...


class Local:
    """Today's night: one entry after the other, here."""

    here = True

    def run(self, context: NightContext, works: Sequence[Work], max_failures: int | None, order: Order) -> str | None:
        """Run every entry, see `Executor.run`."""
        return run_all(context, works, max_failures, order)
