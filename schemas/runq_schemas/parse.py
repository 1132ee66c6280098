"""A queue file from its text to its entries, every setting resolved."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from runq_schemas.document import Document, read_document, refuse
from runq_schemas.errors import QueueFileError
from runq_schemas.matrix import Origins, expanded
from runq_schemas.place import DocumentPath, Mark
from runq_schemas.queue import (
    LMS_RESET_COMMAND,
    Defaults,
    EntryFields,
    EntrySpec,
    PluginUse,
    QueueFile,
    QueueSpec,
)
from runq_schemas.scalar import Problem
from runq_schemas.structure import structure_queue

_Subtree = list[tuple[DocumentPath, Mark]]

_SHARED = tuple(field for field in attrs.fields(Defaults) if field.name != "reset_command")


def load_queue(path: Path) -> QueueSpec:
    """Read a queue file from disk.

    Raises:
        QueueFileError: it cannot be read, or is wrong; ``problems`` holds everything that is.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise QueueFileError(
            "there is no such file",
            where=str(path),
            remedy="Check the path; `runq init` writes a new queue file.",
        ) from None
    except IsADirectoryError:
        raise QueueFileError(
            "this is a folder, not a queue file", where=str(path), remedy="Name the YAML file in it."
        ) from None
    except OSError as error:
        raise QueueFileError(
            f"the file cannot be read: {error.strerror or error}",
            where=str(path),
            remedy="Make it readable for this user.",
        ) from error
    return parse_queue(content, path)


def parse_queue(text: str | bytes, path: Path) -> QueueSpec:
    """Parse a queue file's content.

    Args:
        text: the content; ``sha256`` of the result is that of these bytes (of a str: in UTF-8).
        path: where it came from, for messages.

    Raises:
        QueueFileError: it is wrong; ``problems`` holds everything that is, each with its line and column.
    """
    document = read_document(text, path.name)
    written = structure_queue(document)
    marks = dict(document.marks)
    written, places = expanded(written)
    for index, origins in places.items():
        _mark_expanded(marks, index, origins)
    elsewhere = _subtrees(marks)
    entries = tuple(_resolved(written, index, marks, elsewhere) for index in range(len(written.entries)))
    _refuse_repeats(entries, document)
    content = text.encode() if isinstance(text, str) else text
    return QueueSpec(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        entries=entries,
        order=written.order,
        max_failures=written.max_failures,
        marks=marks,
    )


def _resolved(
    written: QueueFile,
    index: int,
    marks: dict[DocumentPath, Mark],
    elsewhere: Mapping[DocumentPath, _Subtree],
) -> EntrySpec:
    """An entry with its own settings, else those of ``defaults``, else the built-in ones.

    ``marks`` gains the places of what comes from ``defaults``, so that a plugin's wrong option is reported
    where it is written.
    """
    entry = written.entries[index]
    values: dict[str, Any] = {}
    for field in _SHARED:
        for level, at in ((entry, ("entries", index)), (written.defaults, ("defaults",))):
            value, key = _value(level, field.name)
            if value is not None:
                values[field.name] = value
                for rest, mark in elsewhere.get((*at, key), ()):
                    marks[("entries", index, field.name, *rest)] = mark
                break
        else:
            values[field.name] = field.metadata["built_in"]
    return EntrySpec(
        index=index,
        mark=marks[("entries", index)],
        model=entry.model,
        config=entry.config,
        pack=entry.pack,
        judge_config=entry.judge_config,
        judge_model=entry.judge_model,
        **values,
    )


def _mark_expanded(marks: dict[DocumentPath, Mark], index: int, origins: Origins) -> None:
    """Give an entry of the matrix the places of what it was made from."""
    marks["entries", index] = marks[origins["model"]]
    for key, origin in origins.items():
        for path, mark in list(marks.items()):
            if path[: len(origin)] == origin:
                marks["entries", index, key, *path[len(origin) :]] = mark


def _value(level: Defaults | EntryFields, name: str) -> tuple[Any, str]:
    """A setting as this level has it, and the key that says so; ``reset`` has two spellings."""
    value = getattr(level, name)
    if name == "reset" and value is None and level.reset_command is not None:
        return reset_of(level.reset_command), "reset_command"
    return value, name


def reset_of(command: str | tuple[str, ...]) -> PluginUse:
    """The backend that touchstone's ``reset_command`` means."""
    if command == LMS_RESET_COMMAND:
        return PluginUse(name="lms")
    if command == "":
        return PluginUse(name="none")
    return PluginUse(name="command", options={"command": command})


def _subtrees(marks: Mapping[DocumentPath, Mark]) -> dict[DocumentPath, _Subtree]:
    """The places of what settings may come from elsewhere: ``defaults``, and ``reset_command`` for ``reset``."""
    found: dict[DocumentPath, _Subtree] = {}
    for path, mark in marks.items():
        if path[:1] == ("defaults",):
            found.setdefault(path[:2], []).append((path[2:], mark))
        elif path[2:3] == ("reset_command",):
            found.setdefault(path[:3], []).append((path[3:], mark))
    return found


def _refuse_repeats(entries: tuple[EntrySpec, ...], document: Document) -> None:
    first: dict[tuple[str, str, str], EntrySpec] = {}
    problems: list[tuple[Mark, Problem]] = []
    for entry in entries:
        earlier = first.setdefault(entry.key, entry)
        if earlier is not entry:
            problem = Problem(
                ("entries", entry.index),
                f"entry {entry.index} repeats entry {earlier.index} (line {earlier.mark.line}):"
                " the same config, pack and model id",
                "Remove one of the two, or change its config, pack or model.",
            )
            problems.append((entry.mark, problem))
    if problems:
        refuse(document.name, problems)
