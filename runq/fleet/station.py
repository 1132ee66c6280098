"""What a Dask worker does for a night: it starts an entry's process, and carries what that wrote to the head.

All it knows lies in files (`runq.fleet.agent`): a worker that was restarted goes on where the one before left off.
These functions are what Dask carries to the worker; they have to be importable there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from runq.fleet.agent import BUSY, ENDED, JOB, LOCK, LOG, TERMS, write_whole
from runq.fleet.lease import elapsed
from runq.fleet.wire import Ask, Job, Reading, Terms, Told, Written, job_folder, outbox_folder
from runq.paths import private_folder

LOOK_EVERY_S = 0.2
"""How often a worker looks whether there is something to tell."""

POLL_S = 0.1

_OWN = ("night.started", "night.resumed", "night.interrupted", "night.finished")
"""What an outbox says of itself; the head's night has words of its own."""


def state_folder() -> Path:
    """Where this machine keeps the outboxes: ``$RUNQ_FLEET_STATE``, else the user's state folder."""
    if os.environ.get("RUNQ_FLEET_STATE"):
        return Path(os.environ["RUNQ_FLEET_STATE"])
    import platformdirs

    return platformdirs.user_state_path("runq")


def introduce(token: str = "", token_path: str = "") -> dict[str, Any]:
    """What a machine is: its host, its versions and plugins, and whether it shares the head's runs folder."""
    from runq.discovery import offers
    from runq.host import this_host, versions
    from runq.processes import boot_id

    logging.getLogger("distributed.worker").addFilter(_not_every_question)
    shares = False
    with suppress(OSError):
        shares = bool(token) and Path(token_path).read_text(encoding="utf-8") == token
    return {
        "host": attrs.asdict(this_host()),
        "versions": versions(),
        "plugins": sorted((one.kind, one.name, one.distribution, one.version) for one in offers()),
        "boot_id": boot_id(),
        "now_s": elapsed(),
        "shares": shares,
    }


def _not_every_question(record: logging.LogRecord) -> bool:
    # Dask writes a line for each function that is run beside the tasks: here one every two seconds, all night.
    return not record.getMessage().startswith("Run out-of-band function")


_started_here: set[Path] = set()
"""The folders whose process this very worker started, and will sweep up behind."""

STARTING_S = 10.0
"""What a process may take until it holds its lock: before that nobody takes it for dead."""


def run_lease(job_text: str, terms: Terms) -> str:
    """Start an entry's process and wait for its end: the Dask task that takes up the machine's place meanwhile.

    Called again for the same lease, by a Dask that does not know better, it starts nothing.

    Returns:
        ``ended``, or ``busy`` where another night holds the endpoint.
    """
    job = Job.from_json(job_text)
    folder = job_folder(outbox_folder(state_folder(), job.journal, job.night), job.lease)
    private_folder(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return _wait_for(folder)
    _started_here.add(folder)
    try:
        _tell(folder, terms)
        write_whole(folder / JOB, job_text)
        code = _run_agent(folder)
        if not (folder / ENDED).exists():
            _run_agent(folder, "--sweep")
    finally:
        _started_here.discard(folder)
    return "busy" if code == BUSY else "ended"


def _run_agent(folder: Path, *words: str) -> int:
    # A session of its own: what ends the Dask worker does not end the entry, which has its lease.
    with (folder / LOG).open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "runq.fleet.agent", *words, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return child.wait()


def _wait_for(folder: Path) -> str:
    while not _ended(folder):
        time.sleep(POLL_S)
    return "ended"


def _ended(folder: Path) -> bool:
    """Whether an entry's process has ended; one that was killed is swept up first."""
    if (folder / ENDED).exists():
        return True
    job = folder / JOB
    if folder in _started_here or not job.exists() or time.time() - job.stat().st_mtime < STARTING_S or _held(folder):
        return False
    _run_agent(folder, "--sweep")
    return (folder / ENDED).exists()


def _held(folder: Path) -> bool:
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False


def _tell(folder: Path, terms: Terms) -> None:
    write_whole(folder / TERMS, json.dumps(attrs.asdict(terms)))


async def exchange(ask: Ask) -> Told:
    """Take the terms, and tell what is new; wait for something new as long as the head allows."""
    return await exchange_from(state_folder(), ask)


async def exchange_from(state: Path, ask: Ask) -> Told:
    """The same from any state folder."""
    from runq.processes import boot_id

    outbox = outbox_folder(state, ask.journal, ask.night)
    boot, heard_s = boot_id(), elapsed()
    for lease, terms in ask.terms.items():
        folder = job_folder(outbox, lease)
        if terms is not None and folder.exists():
            _tell(folder, attrs.evolve(terms, heard_s=heard_s))
    end = heard_s + ask.hold_s
    seen: dict[Path, tuple[int, int]] = {}
    while True:
        told = await asyncio.to_thread(_news, outbox, ask, boot, seen)
        if told is not None and (told.events or told.ended):
            return told
        if elapsed() >= end:
            return told or Told(boot_id=boot, now_s=elapsed(), events={}, readings={}, ended={})
        await asyncio.sleep(LOOK_EVERY_S)


def _news(outbox: Path, ask: Ask, boot: str, seen: dict[Path, tuple[int, int]]) -> Told | None:
    """What is new; ``None`` where nothing can be, because no file has changed since the last look."""
    changed = False
    for slot in sorted(outbox.glob("slot*/journal.db")):
        stamp = _stamp(slot)
        changed = changed or seen.get(slot) != stamp
        seen[slot] = stamp
    # In this order: once an end is told, all that was written before it is told with it.
    ended = {lease: code for lease in ask.terms if (code := _end(job_folder(outbox, lease))) is not _RUNS}
    if not changed and not ended:
        return None
    events: dict[str, list[Written]] = {}
    readings: dict[str, list[Reading]] = {}
    for slot in seen:
        uuid, written, read = _after(slot, ask)
        if written:
            events[uuid], readings[uuid] = written, read
        if len(written) >= ask.most:
            ended = {}
    return Told(boot_id=boot, now_s=elapsed(), events=events, readings=readings, ended=ended)


_RUNS = object()


def _end(folder: Path) -> Any:
    if not folder.exists() or not _ended(folder):
        return _RUNS
    return json.loads((folder / ENDED).read_text(encoding="utf-8"))["exit_code"]


def _stamp(journal: Path) -> tuple[int, int]:
    stamp = [0, 0]
    for path in (journal, journal.with_name(journal.name + "-wal")):
        with suppress(OSError):
            stat = path.stat()
            stamp = [stamp[0] + stat.st_size, max(stamp[1], stat.st_mtime_ns)]
    return stamp[0], stamp[1]


def _after(journal: Path, ask: Ask) -> tuple[str, list[Written], list[Reading]]:
    """What an outbox has behind what the head has."""
    from runq_journal.reader import JournalReader
    from runq_schemas.errors import JournalError

    try:
        with JournalReader.open(journal) as reader:
            have, have_readings = ask.have.get(reader.uuid, (0, 0))
            written = []
            for event in _with_lease(reader, ask.night, have):
                written.append(event)
                if len(written) == ask.most:
                    break
            whole = len(written) < ask.most
            read = list(reader.readings_after(ask.night, have_readings)) if written and whole else []
            return reader.uuid, written, read
    except JournalError:  # it is being made
        return "", [], []


def _with_lease(reader: Any, night: str, have: int) -> Iterator[Written]:
    # Leases are few: the one that event `have` stands under is found by reading them all.
    begun = [one for one in reader.events(night=night, kinds=("lease.renewed",)) if one.id <= have]
    lease = int(begun[-1].data["lease"]) if begun else 0
    for event in reader.events(night=night, after=have):
        if event.kind == "lease.renewed":  # it may be younger than the reading above
            lease = int(event.data["lease"])
            continue
        if event.kind in _OWN or lease == 0:
            continue
        yield Written(
            seq=event.id,
            lease=lease,
            at=event.at,
            kind=event.kind,
            entry=event.entry,
            step=event.step,
            attempt=event.attempt,
            data=dict(event.data),
        )
