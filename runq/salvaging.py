"""Saving what a damaged journal still vouches for, and putting it in the damaged one's place."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq.locks import night_locks, own_holder
from runq_schemas.errors import JournalError, RunqError

if TYPE_CHECKING:
    from runq_journal.salvage import Salvaged

SALVAGED_NAME = "journal.salvaged.db"


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of it. ``saved`` is ``None`` where the journal is whole; ``aside`` is where the damaged one is now,
    ``None`` where it was not moved.
    """

    journal: Path
    saved: Salvaged | None
    aside: Path | None = None


def run_salvage(journal: Path, *, into: Path | None, replace: bool, now: datetime) -> Outcome:
    """Copy what holds into a new file, while no night writes the journal.

    Args:
        into: the new file; by default `SALVAGED_NAME` beside the journal.
        replace: put the new file in the journal's place, and the damaged one aside under another name.
        now: local time, for the damaged one's new name.

    Raises:
        LockedError: a night writes the journal.
        JournalError: nothing of it can be read, or the new file cannot be written.
    """
    from runq_journal.salvage import salvage

    holder = own_holder(since=now.isoformat(timespec="seconds"), queue="runq salvage", journal=journal)
    with night_locks(journal, (), holder):
        if _whole(journal):
            return Outcome(journal=journal, saved=None)
        stamp = now.strftime("%Y-%m-%d_%H%M%S")
        beside = journal.with_name(f"{journal.name}.salvaged-{stamp}" if replace else SALVAGED_NAME)
        saved = salvage(journal, into or beside, now=lambda: now)
        if not replace:
            return Outcome(journal=journal, saved=saved)
        return _in_its_place(journal, saved, journal.with_name(f"{journal.name}.damaged-{stamp}"))


def _whole(journal: Path) -> bool:
    from runq_journal.reader import JournalReader

    try:
        with JournalReader.open(journal, at_rest=True) as reader:
            return reader.verify() is None
    except RunqError:
        return False


def _in_its_place(journal: Path, saved: Salvaged, aside: Path) -> Outcome:
    try:
        # The side files first: SQLite would take an old -wal file's frames for the new journal's own.
        for suffix in ("-wal", "-shm"):
            side = journal.with_name(journal.name + suffix)
            if side.exists():
                side.rename(aside.with_name(aside.name + suffix))
        journal.rename(aside)
        saved.path.rename(journal)
    except OSError as error:
        raise JournalError(
            f"The new journal could not be put in the damaged one's place: {error}",
            where=str(journal),
            remedy=f"It is whole in {saved.path}: move {journal} and its side files away, and it there.",
        ) from error
    return Outcome(journal=journal, saved=attrs.evolve(saved, path=journal), aside=aside)
