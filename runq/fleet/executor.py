"""The machines of a Dask cluster as a night's executor."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq.discovery import Offer
from runq.fleet.dask_transport import DaskTransport, Own
from runq.fleet.head import FleetOptions, run_fleet
from runq.fleet.secure import security_for
from runq.host import versions
from runq.paths import JOURNAL_NAME, private_folder, shared_token
from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from runq.fleet.transport import Transport
    from runq.night_context import NightContext
    from runq.planning import Work
    from runq.prepared import PreparedQueue
    from runq_schemas.queue import Order

FIRST_LOOK_S = 20.0


@attrs.frozen(kw_only=True)
class OnCluster:
    """Runs a night's entries on the machines that a transport reaches."""

    transport: Transport
    options: FleetOptions
    here: bool = False

    def run(self, context: NightContext, works: Sequence[Work], max_failures: int | None, order: Order) -> str | None:
        """Run every entry, see `runq.executor.Executor.run`."""
        return run_fleet(context, works, max_failures, transport=self.transport, options=self.options)


@contextmanager
def dask_cluster(
    address: str, queue: PreparedQueue, runs: Path, *, certificates: Path, insecure: bool, lease_s: float
) -> Iterator[OnCluster]:
    """The workers of a Dask scheduler, compared with the head before anything is written.

    Raises:
        UsageError: the scheduler cannot be reached, or a worker of it may not take part.
    """
    security = security_for(address, certificates, insecure=insecure)
    if queue.spec.order == "phases":
        raise UsageError(
            "order: phases is about one machine", remedy="leave it out for a cluster, which hands out whole entries"
        )
    private_folder(runs)
    token = secrets.token_hex(16)
    shared = shared_token(runs / JOURNAL_NAME)
    shared.touch(mode=0o600)
    shared.write_text(token, encoding="utf-8")
    own = Own(versions=versions(), plugins=_used(queue.offers), token=token, token_path=shared)
    try:
        try:
            transport = DaskTransport(address, security=security, own=own)
        except OSError as error:
            raise UsageError(
                f"no Dask scheduler answers at {address}: {error}",
                remedy="start one with `dask scheduler`; docs/cluster.md says how",
            ) from error
        refused = transport.refusals(FIRST_LOOK_S)
        if refused:
            transport.close()
            one = refused[0]
            raise UsageError(f"the worker {one.name} may not take part: {one.reason}", remedy=one.remedy)
        text = queue.spec.path.read_text(encoding="utf-8")
        options = FleetOptions(queue=text, queue_path=str(queue.spec.path), lease_s=lease_s)
        yield OnCluster(transport=transport, options=options)
    finally:
        shared.unlink(missing_ok=True)


def _used(offers: Sequence[Offer]) -> frozenset[tuple[str, str, str, str]]:
    return frozenset((one.kind, one.name, one.distribution, one.version) for one in offers)
