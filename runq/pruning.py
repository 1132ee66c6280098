"""Making room in the runs folder: what is old and what no resume needs. Events are never touched.

Nothing is written down about it: only a night writes events, and what is gone is gone from the disk alone.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from runq import paths
from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from runq_journal.journal import Journal
    from runq_journal.reader import JournalReader

Kind = Literal["bundles", "logs", "samples"]
KINDS: tuple[Kind, ...] = ("bundles", "logs", "samples")

_AGE = re.compile(r"(\d{1,5})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}

NOT_COMPLETE = "it is not complete: a resume needs them"
LATEST = "it is the latest night of its queue: a resume looks at them"


def age(text: str) -> timedelta:
    """``30d``, ``8w`` or ``12h`` as a time.

    Raises:
        UsageError: it is none of these.
    """
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        raise UsageError(f"--older-than {text!r} is no age", remedy="write 30d, 8w or 12h")
    return timedelta(hours=int(found[1]) * _HOURS[found[2]])


@attrs.frozen(kw_only=True)
class Item:
    """Files of one kind that one night left: folders for bundles, files for logs; ``bytes`` is what they hold."""

    kind: Kind
    night: str
    paths: tuple[Path, ...]
    bytes: int


@attrs.frozen(kw_only=True)
class Plan:
    """What would be deleted.

    ``kept`` says for each old night whose bundles stay, why. ``samples`` is how many memory readings are older than
    ``before``, whatever night they belong to.
    """

    before: datetime
    items: tuple[Item, ...]
    samples: int
    kept: Mapping[str, str]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to delete."""
        return not self.items and self.samples == 0


def make_plan(reader: JournalReader, runs: Path, *, before: datetime, kinds: Collection[str]) -> Plan:
    """What of the nights that ended before a moment can go.

    Args:
        reader: of the journal that no night writes.
        runs: its folder; nothing outside it is looked at, wherever it was when a night wrote there.
        before: the moment, aware.
        kinds: of `KINDS`.
    """
    items: list[Item] = []
    kept: dict[str, str] = {}
    seen: set[str] = set()
    for row in reader.nights():  # the newest first
        night, latest = row["night"], row["queue_path"] not in seen
        seen.add(row["queue_path"])
        last = reader.last_event(night)
        if last is None or datetime.fromisoformat(last.at) >= before:
            continue
        if "bundles" in kinds and (found := list(_bundles(runs, night))):
            why = LATEST if latest else NOT_COMPLETE if reader.todo(night) else ""
            if why:
                kept[night] = why
            else:
                items.append(_item("bundles", night, found))
        if "logs" in kinds and (found := list(_logs(runs, night))):
            items.append(_item("logs", night, found))
    samples = reader.count_samples(before) if "samples" in kinds else 0
    return Plan(before=before, items=tuple(items), samples=samples, kept=kept)


def carry_out(plan: Plan, journal: Journal) -> list[str]:
    """Delete what the plan names. Returns what could not be deleted, in words; the rest is gone."""
    failed: list[str] = []
    for item in plan.items:
        for path in item.paths:
            try:
                shutil.rmtree(path) if item.kind == "bundles" else path.unlink(missing_ok=True)
            except OSError as error:
                failed.append(f"{path}: {error.strerror or error}")
    if plan.samples:
        journal.prune_samples(plan.before)
    return failed


def _bundles(runs: Path, night: str) -> Iterator[Path]:
    """The bundles of a night: folders of this runs folder, and no links to anywhere."""
    name = re.compile(rf"{re.escape(night)}_e\d+_.*", re.DOTALL)
    for path in sorted(runs.iterdir()):
        if name.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            yield path


def _logs(runs: Path, night: str) -> Iterator[Path]:
    """What a night's steps, servers and restarts printed, and what the night itself did without a terminal."""
    folder = paths.queue_dir(runs, night)
    logs = folder / "logs"
    if folder.is_symlink() or logs.is_symlink():
        return
    found = sorted(logs.iterdir()) if logs.is_dir() else []
    for path in (*found, folder / "night.log"):
        if path.is_file() and not path.is_symlink():
            yield path


def _item(kind: Kind, night: str, found: list[Path]) -> Item:
    return Item(kind=kind, night=night, paths=tuple(found), bytes=sum(_bytes(path) for path in found))


def _bytes(path: Path) -> int:
    """What a file or a folder holds; links count as themselves."""
    if not path.is_dir():
        return path.lstat().st_size
    total = 0
    for folder, _, files in os.walk(path):
        for file in files:
            total += Path(folder, file).lstat().st_size
    return total


def cutoff(text: str, now: datetime) -> datetime:
    """The moment that lies so long before now, in UTC.

    Raises:
        UsageError: the text is no age.
    """
    return now.astimezone(UTC) - age(text)
