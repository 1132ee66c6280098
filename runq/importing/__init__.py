"""Takes results from elsewhere into the journal, so that durations and scores have a history from the first night on.

They are events of their own kind. No night is made of them: nothing of them resumes, and no baseline comes from them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import attrs

from runq import paths
from runq.importing import inspect_logs, touchstone
from runq.locks import night_locks, own_holder
from runq.redact import Redactor
from runq_journal.journal import Journal
from runq_schemas.errors import UsageError
from runq_schemas.event_parts import ImportedEntry
from runq_schemas.events import Imported


@attrs.frozen(kw_only=True)
class Taken:
    """What came of one file: ``new``, ``known`` (its content was taken over before), or ``refused`` with a reason."""

    path: Path
    status: Literal["new", "known", "refused"]
    reason: str = ""
    entries: int = 0
    steps: int = 0
    scores: int = 0


@attrs.frozen
class _Found:
    path: Path
    sha256: str
    event: Imported | None
    reason: str = ""


def run_import(given: Sequence[Path], runs: Path, *, python: str | None, now: datetime) -> list[Taken]:
    """Take over every summary and log under the given paths.

    Args:
        given: files, or folders that are searched.
        runs: the runs folder; its journal is made where there is none.
        python: the interpreter that has Inspect; by default the PATH's `python`, else runq's own.
        now: local time, for the import's id.

    Raises:
        UsageError: nothing to take over is there.
        LockedError: a night writes the journal.
        JournalError: the journal cannot be written.
    """
    wanted = [file for path in given for file in files_in(path)]
    if not wanted:
        raise UsageError(
            f"nothing to import in {', '.join(map(str, given))}",
            remedy="give touchstone's summary.json, Inspect's logs (.eval or .json), or folders that hold them",
        )
    found = _read(dict.fromkeys(wanted), python)
    journal_path = runs / paths.JOURNAL_NAME
    holder = own_holder(since=now.isoformat(timespec="seconds"), queue="runq import", journal=journal_path)
    taken: list[Taken] = []
    with night_locks(journal_path, (), holder), _opened(journal_path) as journal:
        with journal.reader() as reader:
            before = {event.data["sha256"] for event in reader.events(kinds=(Imported.kind,))}
        name = f"{now.strftime('%Y-%m-%d_%H%M%S')}_import"
        for one in found:
            if one.event is None:
                taken.append(Taken(path=one.path, status="refused", reason=one.reason))
            elif one.sha256 in before:
                taken.append(Taken(path=one.path, status="known"))
            else:
                before.add(one.sha256)
                journal.append(one.event, night=name)
                taken.append(_counted(one.path, one.event))
    return taken


def _opened(journal: Path) -> Journal:
    redactor = Redactor.of(dict(os.environ), plain=[str(journal)])  # an error's text may hold anything
    return Journal.open(journal, redact=redactor, suspects=redactor.suspects)


def files_in(path: Path) -> list[Path]:
    """The files to take over: the path itself, or what a folder holds at any depth.

    Raises:
        UsageError: there is no such path.
    """
    if path.is_file():
        return [path.absolute()]
    if not path.is_dir():
        raise UsageError(f"there is no {path}", remedy="check the path")
    summaries = sorted(path.rglob("summary.json"))
    logs = sorted(path.rglob("*.eval")) + [file for file in sorted(path.rglob("*.json")) if inspect_logs.is_log(file)]
    return [file.absolute() for file in dict.fromkeys([*summaries, *logs])]


def _read(files: Iterable[Path], python: str | None) -> list[_Found]:
    """Every file read, those that need Inspect's reader by one call of it."""
    found: dict[Path, _Found] = {}
    waiting: list[Path] = []
    for path in files:
        try:
            found[path] = _read_one(path)
        except inspect_logs.NeedsReaderError:
            waiting.append(path)
            found[path] = _Found(path, _sha256(path), None)
        except OSError as error:
            found[path] = _Found(path, "", None, f"it cannot be read: {error.strerror or error}")
    for path, event, reason in _by_inspect(waiting, python):
        found[path] = attrs.evolve(found[path], event=event, reason=reason)
    return list(found.values())


def _read_one(path: Path) -> _Found:
    """One file.

    Raises:
        NeedsReaderError: Inspect has to read it.
        OSError: it cannot be read.
    """
    sha256 = _sha256(path)
    if path.suffix == ".eval" or inspect_logs.is_log(path):
        try:
            return _Found(path, sha256, _of_log(path, sha256, inspect_logs.header_of(path)))
        except inspect_logs.UnreadableError as error:
            return _Found(path, sha256, None, str(error))
    try:
        data = json.loads(path.read_bytes())
    except ValueError as error:
        return _Found(path, sha256, None, f"it is no JSON: {error}")
    if not touchstone.is_summary(data):
        return _Found(path, sha256, None, "it is neither a summary of touchstone nor a log of Inspect")
    if touchstone.is_ours(data):
        return _Found(path, sha256, None, "runq wrote it itself; what is in it is in that night's journal")
    event = _event("touchstone", path, sha256, touchstone.measured_at(data), touchstone.entries_of(data))
    return _Found(path, sha256, event, "" if event else "no step of it ran")


def _by_inspect(paths_: Sequence[Path], python: str | None) -> Iterator[tuple[Path, Imported | None, str]]:
    if not paths_:
        return
    program = python or shutil.which("python") or sys.executable
    try:
        headers = inspect_logs.read_with_inspect(paths_, program)
    except inspect_logs.UnreadableError as error:
        why = f"it is packed so that only Inspect reads it, and {error}; name its interpreter with --python"
        for path in paths_:
            yield path, None, why
        return
    for path, header in zip(paths_, headers, strict=True):
        if isinstance(header, str):
            yield path, None, header
        else:
            yield path, _of_log(path, _sha256(path), header), ""


def _of_log(path: Path, sha256: str, header: Any) -> Imported | None:
    return _event("inspect", path, sha256, inspect_logs.measured_at(header), (inspect_logs.entry_of(header),))


def _event(
    source: str, path: Path, sha256: str, measured_at: str | None, entries: tuple[ImportedEntry, ...]
) -> Imported | None:
    if not entries:
        return None
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    return Imported(source=source, path=str(path), sha256=sha256, measured_at=measured_at or written, entries=entries)


def _counted(path: Path, event: Imported) -> Taken:
    steps = [step for entry in event.entries for step in entry.steps]
    return Taken(
        path=path,
        status="new",
        entries=len(event.entries),
        steps=len(steps),
        scores=sum(len(step.metrics) for step in steps),
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
