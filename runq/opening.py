"""Before anything runs: the locks, the journal, and an end to what a dead runner left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from runq import paths
from runq.locks import night_locks, own_holder
from runq.prepared import PreparedQueue
from runq_schemas.event_parts import RUNNER_DIED
from runq_schemas.events import NightInterrupted, ServerFinished, StepFinished

if TYPE_CHECKING:
    from runq.processes import Stopper
    from runq_journal.journal import Journal


@contextmanager
def opened_journal(
    queue: PreparedQueue, runs: Path, started: datetime, interrupts: Stopper, *, here: bool = True
) -> Iterator[Journal]:
    """The journal of a runs folder for writing, nobody else at it or at the queue's endpoints, no orphan left.

    Args:
        here: whether the entries run on this machine; else its endpoints are not the ones they use.

    Raises:
        LockedError: another night holds the journal or an endpoint.
        JournalError: the journal cannot be written or is damaged.
    """
    from runq.processes import become_subreaper
    from runq_journal.journal import Journal

    path = runs / paths.JOURNAL_NAME
    holder = own_holder(since=started.isoformat(timespec="seconds"), queue=str(queue.spec.path), journal=path)
    endpoints = [url for entry in queue.entries for url in entry.endpoints() if here]
    redactor = queue.redactor(runs, os.environ)
    with (
        night_locks(path, endpoints, holder),
        Journal.open(path, redact=redactor, suspects=redactor.suspects) as journal,
    ):
        become_subreaper()
        _remove_leftovers(path)
        if here:
            paths.shared_token(path).unlink(missing_ok=True)
        for dead in _close_dead_nights(journal, interrupts):
            summary_error(journal, dead, runs)
        yield journal


def _remove_leftovers(journal: Path) -> None:
    """Remove what a runner that was killed left beside the journal, which we hold; a night makes its own."""
    from runq.control.address import remove_stale
    from runq_journal.reserve import reserve_path

    remove_stale(journal)
    with suppress(OSError):
        reserve_path(journal).unlink()


def summary_error(journal: Journal, night: str, runs: Path) -> OSError | None:
    """Write the summaries of a night. Returns why they could not be written; they can be rebuilt at any time."""
    from runq.summary import write

    try:
        with journal.reader() as reader:
            write(reader, night, paths.queue_dir(runs, night))
    except OSError as error:
        return error
    return None


def _close_dead_nights(journal: Journal, interrupts: Stopper) -> list[str]:
    """End what an earlier runner left running, and record that it died. We hold the lock, so it is dead.

    Returns the nights that ended so: their summaries are to be written once more.
    """
    from runq.processes import Recorded, helper_mark, sweep

    with journal.reader() as reader:
        helper = reader.unfinished_helper()
        # What another machine runs has a lease, and is ended by it.
        open_runs = [row for row in reader.unfinished() if row["host"] is None]
        dead = reader.unfinished_nights()
    recorded = [
        Recorded(pid=row["pid"], created_at=row["created_at"], boot_id=row["boot_id"])
        for row in open_runs
        if row["pid"] is not None
    ]
    nights = {*dead, *(row["night"] for row in open_runs)}
    helpers = () if helper is None else (helper_mark(journal.uuid, helper.night, helper.id),)
    ended = sweep(journal.uuid, recorded, nights=nights, helpers=helpers, kill_now=lambda: interrupts.kill_now)
    for row in open_runs:
        survivors = tuple(ended.survivors)
        reason = f"{RUNNER_DIED} while it was running"
        event = (
            ServerFinished(stopped=False, reason=reason, survivors=survivors)
            if row["kind"] == "server.started"
            else StepFinished(status="interrupted", reason=reason, survivors=survivors)
        )
        journal.append(event, night=row["night"], entry=row["entry"], step=row["step"], attempt=row["attempt"])
    for night in dead:
        journal.append(NightInterrupted(reason=RUNNER_DIED), night=night)
    return dead
