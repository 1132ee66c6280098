"""Leases that a head on a cluster left open, met by a night that runs its entries on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runq_schemas.errors import LockedError

if TYPE_CHECKING:
    from runq.record import Recorder
    from runq_journal.journal import Journal


def refuse_leased(journal: Journal, night: str) -> None:
    """Refuse to run here what may still run elsewhere.

    Raises:
        LockedError: a lease of the night has not run out.
    """
    with journal.reader() as reader:
        rows = [row for row in reader.leases(night) if row["ended"] is None]
    if not rows:
        return
    from runq.fleet.held import left_s

    for row in rows:
        if (seconds := left_s(row["until"], row["lease_s"])) > 0:
            raise LockedError(
                f"e{row['entry']} is in the hands of {row['host']} for another {seconds:.0f} s",
                remedy="go on with --cluster, or wait until then",
            )


def end_leases(recorder: Recorder) -> None:
    """End the leases of the night that ran out while no head looked after them.

    Raises:
        JournalError: that cannot be written.
    """
    with recorder.journal.reader() as reader:
        rows = [row for row in reader.leases(recorder.night) if row["ended"] is None]
    if not rows:
        return
    from runq.fleet.held import Holding
    from runq.fleet.lease import Lease
    from runq.fleet.relay import Relay

    relay = Relay(recorder)
    for row in rows:
        holding = Holding(
            number=row["lease"],
            entry=row["entry"],
            work=None,
            machine=row["host"],
            slot=row["slot"],
            lease=Lease(lease_s=row["lease_s"], until_s=0.0, machine_until_s=0.0),
        )
        relay.recall(holding)
        relay.end(holding, "expired", f"{row['host']} was not heard from until its lease ran out")
