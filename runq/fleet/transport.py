"""What the head asks of whatever carries its words to the machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from runq.fleet.wire import Ask, Terms, Told
from runq_schemas.event_parts import Host


@attrs.frozen(kw_only=True)
class Arrived:
    """A machine is there. ``address`` is what it is asked by; a machine that comes back may have another one.

    Args:
        slots: how many entries it runs at a time.
        resources: what it has, by name (Dask worker resources).
        said_s: its clock when it introduced itself; ``heard_s``: the head's when that arrived.
    """

    name: str
    address: str
    machine: Host
    slots: int
    resources: Mapping[str, float]
    boot_id: str
    said_s: float
    heard_s: float


@attrs.frozen(kw_only=True)
class Gone:
    """A machine is no longer there."""

    address: str
    reason: str


@attrs.frozen(kw_only=True)
class Refused:
    """A machine that may not take part, and why."""

    name: str
    reason: str
    remedy: str


@attrs.frozen(kw_only=True)
class Answer:
    """What a machine told; ``None`` where no answer came."""

    address: str
    told: Told | None
    heard_s: float


News = Arrived | Gone | Refused | Answer


class Transport(Protocol):
    """Carries; never waits for a machine, and never raises because of one."""

    def news(self, timeout_s: float) -> Sequence[News]:
        """What has come since; waits so long at most for the first of it."""
        ...

    def ask(self, address: str, ask: Ask) -> None:
        """Ask a machine; an `Answer` follows in any case."""
        ...

    def start(self, address: str, lease: int, job: str, terms: Terms, resources: Mapping[str, float]) -> None:
        """Have a machine start an entry, if it has not yet."""
        ...

    def close(self) -> None:
        """Let go of everything; what runs on the machines goes on."""
        ...
