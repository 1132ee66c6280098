"""The entries that a queue file's ``matrix`` stands for."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from runq_schemas.place import DocumentPath
from runq_schemas.queue import EntryFields, Matrix, QueueFile

Origins = Mapping[str, DocumentPath]
"""By key of an entry: where the file has what the entry got from the matrix."""


def expanded(written: QueueFile) -> tuple[QueueFile, Mapping[int, Origins]]:
    """The file with the matrix's entries behind its own, and by entry index where each came from.

    By model, then pack, then configuration: a model's entries stand together.
    """
    if written.matrix is None:
        return written, {}
    entries = list(written.entries)
    places: dict[int, Origins] = {}
    for fields, origins in _cells(written.matrix):
        places[len(entries)] = origins
        entries.append(fields)
    return attrs.evolve(written, entries=tuple(entries)), places


def _cells(matrix: Matrix) -> list[tuple[EntryFields, Origins]]:
    rest = {
        field.name: getattr(matrix, field.name)
        for field in attrs.fields(EntryFields)
        if field.name not in ("model", "pack", "config")
    }
    shared = {name: ("matrix", name) for name, value in rest.items() if value is not None}
    return [
        (
            EntryFields(model=model, pack=pack, config=config, **rest),
            {**shared, "model": ("matrix", "models", number), "pack": pack_at, "config": config_at},
        )
        for number, model in enumerate(matrix.models)
        for pack, pack_at in _axis(matrix.packs, matrix.pack, "pack")
        for config, config_at in _axis(matrix.configs, matrix.config, "config")
    ]


def _axis(several: tuple[str, ...] | None, one: str | None, key: str) -> list[tuple[str | None, DocumentPath]]:
    if several is None:
        return [(one, ("matrix", key))]
    return [(value, ("matrix", f"{key}s", number)) for number, value in enumerate(several)]
