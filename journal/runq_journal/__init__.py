"""The append-only journal: store, hash chain, migrations, views.

Nothing here is imported before it is used, so that a command that only needs one name stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runq_journal.chain import GENESIS, Break, first_break, verify
    from runq_journal.datasette import metadata_path
    from runq_journal.journal import Journal
    from runq_journal.reader import JournalReader
    from runq_journal.stored import Sample, StoredEvent

__all__ = [
    "GENESIS",
    "Break",
    "Journal",
    "JournalReader",
    "Sample",
    "StoredEvent",
    "first_break",
    "metadata_path",
    "verify",
]

_HOMES = {
    "GENESIS": "chain",
    "Break": "chain",
    "Journal": "journal",
    "JournalReader": "reader",
    "Sample": "stored",
    "StoredEvent": "stored",
    "first_break": "chain",
    "metadata_path": "datasette",
    "verify": "chain",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
