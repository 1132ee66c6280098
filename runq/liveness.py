"""Which night runs now: the journal cannot know, the lock's holder can."""

from __future__ import annotations

from pathlib import Path

import attrs

from runq.locks import Holder, holder_of, journal_lock_path
from runq_journal.reader import JournalReader


@attrs.frozen
class Runner:
    """The process that runs a night now."""

    night: str
    holder: Holder


def runner_of(journal: Path, reader: JournalReader) -> Runner | None:
    """Who runs a night of this journal now; ``None`` when nobody does.

    The lock is the journal's, and there is one runner: its night is the one that wrote last.
    """
    holder = holder_of(journal_lock_path(journal))
    last = reader.last_event(None)
    return None if holder is None or last is None else Runner(last.night, holder)


def state_of(night: str, recorded: str, runner: Runner | None) -> str:
    """The state of a night for people: a recorded ``running`` without a living runner is ``died``."""
    if recorded != "running":
        return recorded
    return "running" if runner is not None and runner.night == night else "died"
