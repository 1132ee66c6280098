"""The rules of a lease: who may run an entry, until when, told by clocks that never have to agree.

The head counts from when it *received* a word of the machine, the machine from when it *said* it. That is never later,
so the machine's time runs out before the head's, whatever the network did between. Neither clock stands still while its
machine sleeps.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import attrs

from runq.fleet.wire import Terms

LEASE_S = 300.0
"""How long a machine may go on without a word from the head, unless told otherwise."""

REAP_S = 5.0
"""What ending a step may take beyond its grace: the machine begins so much earlier to be done in time."""


def elapsed() -> float:
    """Seconds that never go back and count the time asleep (see `runq.suspend.machine_clock` for the sources)."""
    clocks: Any = time  # which clocks it has differs by platform
    if sys.platform.startswith("linux") and hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(clocks.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(clocks.CLOCK_MONOTONIC_RAW)
    return time.monotonic()


@attrs.frozen(kw_only=True)
class Word:
    """A word from a machine: what its clock showed (``said_s``), and when it reached the head (``heard_s``)."""

    boot_id: str
    said_s: float
    heard_s: float


@attrs.frozen(kw_only=True)
class Lease:
    """A lease as the head holds it.

    Args:
        until_s: when it runs out, by the head's clock.
        machine_until_s: the same for the machine, by its own; never later.
    """

    lease_s: float
    until_s: float
    machine_until_s: float

    @classmethod
    def granted(cls, word: Word, lease_s: float, now_s: float) -> Lease:
        """A lease from now on. The machine counts from its last word, which is as old as the head knows at least."""
        machine_until_s = word.said_s + (now_s - word.heard_s) + lease_s
        return cls(lease_s=lease_s, until_s=now_s + lease_s, machine_until_s=machine_until_s)

    def renewed(self, word: Word) -> Lease:
        """The lease, counted from a later word of the machine."""
        return Lease(
            lease_s=self.lease_s,
            until_s=max(self.until_s, word.heard_s + self.lease_s),
            machine_until_s=max(self.machine_until_s, word.said_s + self.lease_s),
        )

    def due(self, now_s: float) -> bool:
        """Whether it is worth a renewal: a third of it is over. Each one is an event."""
        return self.until_s - now_s < self.lease_s * 2 / 3

    def expired(self, now_s: float) -> bool:
        """Whether the entry may run elsewhere."""
        return now_s >= self.until_s


def over(terms: Terms, boot_id: str, now_s: float, *, ending_s: float) -> str:
    """Why a machine has to end what it runs; empty while it may go on.

    Args:
        ending_s: how long the ending may take: it has to be over before the lease is.
    """
    if terms.boot_id != boot_id:
        return "the machine has booted since its lease was granted"
    if terms.stop:
        return terms.stop
    if now_s >= terms.until_s - ending_s:
        return "its lease ran out without a word from the head"
    return ""


def in_touch(terms: Terms, now_s: float, silence_s: float) -> bool:
    """Whether a step may start: the head was heard from not long ago."""
    return now_s - terms.heard_s < silence_s
