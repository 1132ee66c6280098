"""The types that runq, its journal and its plugins share: queue file, events, errors.

This is the table of contents. Names are imported when they are used: errors and events must not cost the YAML
reader's start.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runq_schemas.document import Document, read_document
    from runq_schemas.errors import (
        JournalError,
        LockedError,
        PluginError,
        QueueFileError,
        RunqError,
        UsageError,
    )
    from runq_schemas.events import EVENT_CLASSES, Event, UnknownEvent, from_data, to_data
    from runq_schemas.json_schema import queue_json_schema
    from runq_schemas.parse import load_queue, parse_queue
    from runq_schemas.place import Mark
    from runq_schemas.queue import EntrySpec, ModelSpec, PluginUse, QueueSpec, SettleSpec, described
    from runq_schemas.scalar import Scalar, to_json
    from runq_schemas.structure import OptionError, OptionErrors, structure_options, structure_queue

__all__ = [
    "EVENT_CLASSES",
    "Document",
    "EntrySpec",
    "Event",
    "JournalError",
    "LockedError",
    "Mark",
    "ModelSpec",
    "OptionError",
    "OptionErrors",
    "PluginError",
    "PluginUse",
    "QueueFileError",
    "QueueSpec",
    "RunqError",
    "Scalar",
    "SettleSpec",
    "UnknownEvent",
    "UsageError",
    "described",
    "from_data",
    "load_queue",
    "parse_queue",
    "queue_json_schema",
    "read_document",
    "structure_options",
    "structure_queue",
    "to_data",
    "to_json",
]

_HOMES = {
    "document": ("Document", "read_document"),
    "errors": ("JournalError", "LockedError", "PluginError", "QueueFileError", "RunqError", "UsageError"),
    "events": ("EVENT_CLASSES", "Event", "UnknownEvent", "from_data", "to_data"),
    "json_schema": ("queue_json_schema",),
    "parse": ("load_queue", "parse_queue"),
    "place": ("Mark",),
    "queue": ("EntrySpec", "ModelSpec", "PluginUse", "QueueSpec", "SettleSpec", "described"),
    "scalar": ("Scalar", "to_json"),
    "structure": ("OptionError", "OptionErrors", "structure_options", "structure_queue"),
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"runq_schemas.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
