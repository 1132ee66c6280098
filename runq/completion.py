"""What a shell completes from the journal: nights, entries, steps.

Each function here is a `shell_complete` of click. It reads and never writes, imports little, and has no answer rather
than an error: whatever goes wrong, a traceback must not end up in somebody's prompt.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from runq_journal.reader import JournalReader

Complete = Callable[[click.Context, click.Parameter, str], list["CompletionItem[str]"]]
Offers = Callable[[click.Context, str], Iterable["CompletionItem[str]"]]


def _quietly(offers: Offers) -> Complete:
    """Keep what begins with the typed text; nothing at all when something goes wrong."""

    @wraps(offers)
    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        try:
            return [item for item in offers(ctx, incomplete) if item.value.startswith(incomplete)]
        except Exception:  # no journal, a damaged one, one of an older runq: an error belongs to commands
            return []

    return complete


@_quietly
def nights(ctx: click.Context, _incomplete: str) -> Iterator[CompletionItem[str]]:
    """Night ids, the newest first; only those of the queue file where one is given."""
    queue = _queue(ctx)
    with _journal(ctx) as reader:
        rows = reader.nights()
    for row in rows:
        if queue is None or _of(queue, row):
            # The journal alone cannot tell a night that runs from one whose runner died.
            state = "without an end" if row["state"] == "running" else row["state"]
            yield _item(row["night"], f"{state}, {Path(row['queue_path']).name}")


@_quietly
def entries(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem[str]]:
    """The entries of the night that is given, else of the latest; as numbers where a digit was typed."""
    letter = "" if incomplete.isdecimal() else "e"
    with _journal(ctx) as reader:
        plan = reader.latest_plan(_night(ctx, reader))
    for entry in plan["entries"]:
        yield _item(f"{letter}{entry['id']}", _about(entry))


@_quietly
def only(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem[str]]:
    """The entries of a queue file after what the list already has, as its latest night numbered them.

    A file that changed since may have other entries at these numbers: then nothing is offered, unless it is a resume,
    whose numbers are the night's.
    """
    queue, resume = _queue(ctx), bool(ctx.params.get("resume"))
    if queue is None:
        return
    with _journal(ctx) as reader:
        plan = reader.latest_plan(_night(ctx, reader, queue))
    if not resume and plan["queue_sha256"] != _sha256(queue):
        return
    head, comma, _ = incomplete.rpartition(",")
    taken = head.split(",")
    for entry in plan["entries"]:
        name = f"e{entry['id' if resume else 'index']}"
        if name not in taken:
            yield _item(f"{head}{comma}{name}", _about(entry))


@_quietly
def steps(ctx: click.Context, _incomplete: str) -> Iterator[CompletionItem[str]]:
    """The steps of the entry that is given."""
    number = int(str(ctx.params["entry"]).removeprefix("e"))
    with _journal(ctx) as reader:
        plan = reader.latest_plan(_night(ctx, reader))
    for entry in plan["entries"]:
        if entry["id"] == number:
            yield from (_item(step["name"]) for step in entry["steps"])


@_quietly
def logged_steps(ctx: click.Context, _incomplete: str) -> Iterator[CompletionItem[str]]:
    """What has a log of the entry that is given: its steps that ran, and `server`."""
    number = int(str(ctx.params["entry"]).removeprefix("e"))
    with _journal(ctx) as reader:
        night = _night(ctx, reader)
        started = reader.events(night=night, entry=number, kinds=("step.started", "server.started"))
        names = dict.fromkeys(event.step for event in started if event.step)
    yield from (_item(name) for name in names)


def _item(value: str, about: str | None = None) -> CompletionItem[str]:
    from runq.logs import one_line

    # One line, and no control characters: a model's id is anybody's text, and the shells read lines.
    return CompletionItem(one_line(value), help=one_line(about) if about else None)


def _about(entry: Mapping[str, Any]) -> str:
    pack = f", {Path(entry['pack']).name}" if entry["pack"] else ""
    return f"{entry['model']['id']}{pack}"


def _queue(ctx: click.Context) -> Path | None:
    """The queue file that is given, where the command takes one."""
    if all(param.name != "queue" for param in ctx.command.params):
        return None
    # An option that still lacks its value stops click before it has named the arguments: they are left in `args`.
    return _path(ctx.params.get("queue") or next(iter(ctx.args), None))


def _path(typed: str | Path | None) -> Path | None:
    # A shell hands over the words as they were typed: it has not expanded `~` yet.
    return None if typed is None else Path(typed).expanduser().absolute()


@contextmanager
def _journal(ctx: click.Context) -> Iterator[JournalReader]:
    """The journal that the command would read; nothing is made beside it."""
    from runq import paths
    from runq_journal.reader import JournalReader

    queue = _queue(ctx)
    runs = paths.runs_dir(_path(ctx.params.get("runs")), environ=os.environ, beside=queue.parent if queue else None)
    with JournalReader.open(paths.existing_journal(runs), at_rest=True) as reader:
        yield reader


def _night(ctx: click.Context, reader: JournalReader, queue: Path | None = None) -> str:
    """The night that is given by id or folder, else the latest, of the queue where there is one."""
    given = ctx.params.get("night")
    if given:
        return Path(given).name.removesuffix("_queue")
    return str(next(row["night"] for row in reader.nights() if queue is None or _of(queue, row)))


def _of(queue: Path, row: Mapping[str, Any]) -> bool:
    """Whether a resume of the queue file accepts this night: it is the same file, or the night's file is gone."""
    recorded = Path(row["queue_path"])
    return recorded.resolve() == queue.resolve() or not recorded.exists()


def _sha256(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()
