"""Rebuilding summaries from the journal alone, and checking its hash chain."""

from __future__ import annotations

from pathlib import Path

import attrs

from runq import summary
from runq.locks import holder_of, journal_lock_path
from runq_journal.reader import JournalReader
from runq_schemas.errors import JournalError, UsageError


@attrs.frozen(kw_only=True)
class Rebuilt:
    """The files that were written for one night."""

    night: str
    files: tuple[Path, ...]


def rebuild(journal: Path, *, night: str | None = None, every: bool = False, lang: str | None = None) -> list[Rebuilt]:
    """Write the summaries of one night (the latest by default) or of all into their folders.

    The folder lies beside the journal, so that a runs folder which was moved or copied rebuilds in its new place.

    Args:
        lang: what summary.md is written in; by default what its night was told.

    Raises:
        UsageError: there is no such night.
        OSError: a file could not be written.
    """
    from runq.paths import queue_dir

    with JournalReader.open(journal) as reader:
        wanted = reader.night_ids() if every else [chosen_night(reader, night)]
        return [
            Rebuilt(night=one, files=summary.write(reader, one, queue_dir(journal.parent, one), lang=lang))
            for one in wanted
        ]


def chosen_night(reader: JournalReader, night: str | None) -> str:
    """The night that a command means: by id or folder, else the latest.

    Raises:
        UsageError: there is none.
    """
    latest = reader.latest_night() if night is None else None
    return latest or _chosen(reader.night_ids(), night)


def _chosen(known: list[str], night: str | None) -> str:
    if not known:
        raise UsageError("the journal has no night yet", remedy="start one with `runq night QUEUE`")
    if night is None:
        return known[0]
    wanted = Path(night).name.removesuffix("_queue")
    if wanted in known:
        return wanted
    raise UsageError(
        f"there is no night {night!r}", remedy=f"nights are {', '.join(known[:5])}; `runq nights` lists all"
    )


def summary_at(journal: Path, event: int) -> str:
    """The summary.json of the night of an event as it was right after that event.

    Raises:
        UsageError: there is no such event, or it belongs to no planned night yet.
    """
    with JournalReader.open(journal, upto=event) as reader:
        night = reader.night_of(event)
        if night is None:
            raise UsageError(f"the journal has no event {event}", remedy="`runq browse` shows the events")
        return summary.to_json(summary.build(reader, night))


def verify(journal: Path) -> int:
    """Check the hash chain. Returns the number of events.

    Raises:
        JournalError: the chain is broken; says where.
    """
    at_rest = holder_of(journal_lock_path(journal)) is None
    with JournalReader.open(journal, at_rest=at_rest) as reader:
        broken = reader.verify()
        if broken is not None:
            raise JournalError(
                f"the journal is damaged: {broken}",
                where=str(journal),
                remedy="leave the file as it is; `runq salvage` copies what holds into a new one",
            )
        return reader.count()
