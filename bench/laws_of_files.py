"""The laws about what lies beside a journal: summaries, logs, artifacts, who may read them, and what is left over.

Beside the journal alone: where a night's folders were moved or pruned, what is gone counts as gone.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.laws import PLANS, Law, Record, last_words, planned
from runq import summary
from runq.paths import queue_dir
from runq_journal import JournalReader

RUNS_FILES = re.compile(r"journal\.db(-wal|-shm|\.lock)?")
QUEUE_FILES = re.compile(r"summary\.(json|md)|logs|night\.log|report\.html")


def summaries_are_the_journals(record: Record) -> Iterator[str]:
    """Each night's summaries are, byte for byte, what the journal says now."""
    with JournalReader.open(record.path) as reader:
        for night in record.nights:
            built = summary.build(reader, night)
            texts = {summary.JSON_NAME: summary.to_json(built), summary.MARKDOWN_NAME: summary.to_markdown(built)}
            for name, text in texts.items():
                path = queue_dir(record.path.parent, night) / name
                if not path.exists():
                    yield f"{path.name} of the night {night} is not there"
                elif path.read_bytes() != text.encode():
                    yield f"{path.name} of the night {night} is not what the journal says"


def summaries_count_as_the_events_do(record: Record) -> Iterator[str]:
    """The status of each step in summary.json is the last word of its events, counted without any view."""
    for night in record.nights:
        path = queue_dir(record.path.parent, night) / summary.JSON_NAME
        if not path.exists():
            continue
        told = json.loads(path.read_text(encoding="utf-8"))
        events = record.of(night)
        stands = last_words(events)
        newest = planned(next(event for event in reversed(events) if event.kind in PLANS))
        if [entry["id"] for entry in told["entries"]] != list(newest):
            yield f"the night {night}: its summary has other entries than its plan"
        for entry in told["entries"]:
            mine = {step["name"]: step["status"] for step in entry["steps"]}
            expected = {step: word for (number, step), word in stands.items() if number == entry["id"]}
            if mine != expected:
                yield f"the night {night}, e{entry['id']}: the summary says {mine}, the events {expected}"
            complete = all(expected.get(step["name"]) == "ok" for step in newest.get(entry["id"], ()))
            if (entry["status"] == "complete") != complete:
                yield f"the night {night}, e{entry['id']} is called {entry['status']}; its steps: {expected}"


def what_is_ok_is_still_there(record: Record) -> Iterator[str]:
    """Every artifact of an ok attempt has the SHA-256 that was recorded, as long as its bundle is there."""
    bundles: dict[tuple[str, int | None, str | None, int | None], Path] = {}
    for event in record.events:
        where = (event.night, event.entry, event.step, event.attempt)
        if event.kind == "step.started":
            bundles[where] = Path(event.data["bundle"])
        elif event.kind == "step.finished" and event.data["status"] == "ok" and where in bundles:
            bundle = bundles[where]
            for artifact in event.data["artifacts"] if bundle.exists() else ():
                path = bundle / artifact["path"]
                if not path.exists():
                    yield f"event {event.id}: {path} is gone"
                elif hashlib.sha256(path.read_bytes()).hexdigest() != artifact["sha256"]:
                    yield f"event {event.id}: {path} has changed"


def every_attempt_has_its_log(record: Record) -> Iterator[str]:
    """Every process that was recorded has a log of its own, as long as its night's logs are there."""
    logs: dict[tuple[str, int | None, str | None, int | None], Path] = {}
    for event in record.events:
        where = (event.night, event.entry, event.step, event.attempt)
        if event.kind == "step.started":
            logs[where] = Path(event.data["log"])
        elif event.kind == "step.spawned" and where in logs:
            log = logs[where]
            if not log.exists() and log.parent.exists():
                yield f"event {event.id}: {log} is not there"
    shared = [path for path in set(logs.values()) if list(logs.values()).count(path) > 1]
    yield from (f"{path} is the log of several attempts" for path in shared)


def files_are_for_the_user_alone(record: Record) -> Iterator[str]:
    """What runq made is its user's alone; what a step wrote has the modes that the step gave it."""
    runs = record.path.parent
    queues = [queue_dir(runs, night) for night in record.nights]
    for path in [runs, *runs.iterdir(), *(inner for queue in queues for inner in queue.rglob("*"))]:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o077:
            yield f"{path} has the mode {mode:o}"


def nothing_is_left_over(record: Record) -> Iterator[str]:
    """Beside the journal there are only folders of its nights, and in those only what a night is to leave.

    A runner that dies right before it writes an event leaves the folder it had just made for it, empty.
    """
    runs = record.path.parent
    queues = {queue_dir(runs, night) for night in record.nights}
    bundles = {Path(event.data["bundle"]) for event in record.events if event.kind == "step.started"}
    for path in sorted(runs.iterdir()):
        if path.is_dir():
            known = path in queues or path in bundles or not any(path.iterdir())
        else:
            known = bool(RUNS_FILES.fullmatch(path.name))
        if not known:
            yield f"{path} belongs to no night"
    for queue in queues:
        for path in sorted(queue.iterdir()) if queue.exists() else ():
            if not QUEUE_FILES.fullmatch(path.name):
                yield f"{path} was left over"


LAWS_OF_FILES: Mapping[str, Law] = {
    law.__name__.replace("_", " "): law
    for law in (
        summaries_are_the_journals,
        summaries_count_as_the_events_do,
        what_is_ok_is_still_there,
        every_attempt_has_its_log,
        files_are_for_the_user_alone,
        nothing_is_left_over,
    )
}
"""Every law about files, by its name."""


def secrets_in(runs: Path, secrets: Sequence[str], *, spared: Iterable[str] = ("*_queue/logs/*",)) -> Iterator[str]:
    """No secret stands in a file of the runs folder, or in a file's name.

    Args:
        runs: the folder.
        secrets: what must not be found.
        spared: patterns of files that hold a step's own words.
    """
    left_out = {path for pattern in spared for path in runs.glob(pattern)}
    for path in sorted(runs.rglob("*")):
        for secret in secrets:
            if secret in path.name:
                yield f"{path} has a secret in its name"
            if path.is_file() and path not in left_out and secret.encode() in path.read_bytes():
                yield f"{path} holds a secret"
