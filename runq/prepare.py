"""From a queue file's spec to entries that can run, or to every reason why they cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from runq.discovery import Plugins
from runq.making import Making, Problem
from runq.prepared import PreparedEntry, PreparedQueue
from runq_schemas.errors import QueueFileError
from runq_schemas.place import Mark
from runq_schemas.queue import QueueSpec


def prepare(
    spec: QueueSpec, *, base_dir: Path, plugins: Plugins, environ: Mapping[str, str], cwd: Path
) -> PreparedQueue:
    """Make every entry's plugins and steps, and refuse whatever would fail tonight for a reason known now.

    Args:
        base_dir: what relative paths in the file are relative to, and the steps' working directory.
        environ: the runner's environment, for ``${NAME}``.
        cwd: the current directory, to recognise paths meant relative to it.

    Raises:
        QueueFileError: with every problem of the file.
    """
    problems: list[Problem] = []
    prepared: list[PreparedEntry] = []
    used: list[tuple[str, str]] = []
    for entry_spec in spec.entries:
        making = Making(spec, entry_spec, base_dir, plugins, environ, cwd)
        made = making.entry()
        problems += making.problems
        used += making.used
        if made is not None:
            prepared.append(made)
    if problems:
        first, *others = _told_once(spec, problems)
        raise QueueFileError(first.message, where=first.where, remedy=first.remedy, others=tuple(others))
    return PreparedQueue(spec=spec, base_dir=base_dir, entries=tuple(prepared), offers=plugins.used(used))


def _told_once(spec: QueueSpec, problems: Sequence[Problem]) -> Iterator[QueueFileError]:
    """A mistake in `defaults` is a problem of every entry that takes it from there, and is told once."""
    alike: dict[tuple[str, str, Mark | None], list[Problem]] = {}
    for problem in problems:
        key = (problem.message, problem.remedy, problem.mark if problem.written else None)
        alike.setdefault(key, []).append(problem)
    for (message, remedy, _), having in alike.items():
        numbers, mark = list(dict.fromkeys(problem.entry for problem in having)), having[0].mark
        whose = f"entry {numbers[0]}" if len(numbers) == 1 else f"entries {', '.join(map(str, numbers))}"
        if len(numbers) > 1 and len(numbers) == len(spec.entries):
            whose = "every entry"
        where = f"{spec.path.name}, {whose}, line {mark.line}, column {mark.column}"
        yield QueueFileError(message, where=where, remedy=remedy)
