"""The process that runs one entry on a machine of a cluster: `python -m runq.fleet.agent FOLDER`.

It is the local night's own code on a journal of this machine, its outbox. It knows nothing of Dask: what it may do
stands in a file that the Dask worker writes, what it did in the outbox, which the worker reads. So it outlives the
worker, and a worker that comes back finds all of it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq.attention import SLICE_S, Attention
from runq.fleet.lease import REAP_S, elapsed, in_touch, over
from runq.fleet.wire import Job, Terms
from runq.planning import Work, fresh
from runq_schemas.errors import LockedError, QueueFileError, RunqError
from runq_schemas.events import EntryFinished, EntryStarted, LeaseRenewed, NightInterrupted, NightResumed, NightStarted

if TYPE_CHECKING:
    from runq.night_context import NightContext
    from runq.pace import Pace
    from runq.prepared import PreparedQueue
    from runq.processes import Interrupts
    from runq_journal.journal import Journal

JOB, TERMS, ENDED, LOCK, LOG = "job.json", "terms.json", "ended.json", "agent.lock", "agent.log"
BUSY = 3
"""Exit code: another night holds the machine's endpoint; nothing ran."""


def write_whole(path: Path, text: str) -> None:
    """Write a file so that whoever reads it finds all of it or the one before."""
    part = path.with_name(path.name + ".part")
    part.touch(mode=0o600)
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def read_terms(folder: Path) -> Terms:
    """The terms as last told."""
    return Terms(**json.loads((folder / TERMS).read_text(encoding="utf-8")))


def slot_folder(folder: Path, slot: int) -> Path:
    """The outbox of a slot: the journal of all that ran in it this night."""
    return folder.parent / f"slot{slot}"


@attrs.define
class Leash:
    """Holds a running entry to its lease: looked at whenever whoever waits wakes up."""

    folder: Path
    boot_id: str
    interrupts: Interrupts
    silence_s: float
    ending_s: float

    def look(self) -> None:
        """Ask to stop where the lease says so."""
        why = over(read_terms(self.folder), self.boot_id, elapsed(), ending_s=self.ending_s)
        if why and not self.interrupts.requested:
            self.interrupts.request(why)

    def in_touch(self) -> bool:
        """Whether a step may start."""
        return in_touch(read_terms(self.folder), elapsed(), self.silence_s)


@attrs.define
class LeasedAttention(Attention):
    """Lets nothing start while the head is silent: by then the entry may soon be another machine's."""

    leash: Leash | None = attrs.field(default=None, kw_only=True)

    @property
    def waits(self) -> bool:
        """Whether `gate` has something to do."""
        return self.leash is not None and not self.leash.in_touch()

    def gate(self) -> bool:
        """Wait for a word from the head. Returns whether that was needed.

        Raises:
            Interrupted: the lease ran out meanwhile, or a signal came.
        """
        waited = False
        self.interrupts.sleep(0)
        while self.waits:
            waited = True
            self.interrupts.sleep(SLICE_S)
        return waited


def prepared_of(job: Job, environ: Mapping[str, str]) -> PreparedQueue:
    """The job's entry, prepared on this machine with its plugins and its environment.

    Raises:
        QueueFileError: it cannot run here.
    """
    from runq.discovery import Plugins
    from runq.prepare import prepare
    from runq_schemas.parse import parse_queue

    spec = parse_queue(job.queue, Path(job.queue_path))
    mine = attrs.evolve(spec, entries=(spec.entries[job.index],))
    base = Path(job.base_dir)
    return prepare(mine, base_dir=base, plugins=Plugins(), environ=environ, cwd=base)


def run_job(folder: Path) -> int:
    """Run the entry of a job's folder. Returns the exit code: 0, whatever came of the entry; `BUSY`."""
    from runq.opening import opened_journal
    from runq.processes import Interrupts

    job = Job.from_json((folder / JOB).read_text(encoding="utf-8"))
    slot = slot_folder(folder, job.slot)
    with Interrupts() as interrupts:
        try:
            queue = prepared_of(job, os.environ)
        except QueueFileError as error:
            return _cannot_run(job, slot, error)
        try:
            with opened_journal(queue, slot, datetime.now().astimezone(), interrupts) as journal:
                _run(job, folder, queue, journal, interrupts)
        except LockedError as error:
            print(error, file=sys.stderr)  # noqa: T201 - into the folder's log
            return BUSY
    return 0


def _cannot_run(job: Job, slot: Path, error: RunqError) -> int:
    """Record that the entry cannot run on this machine: its failure, with the reason."""
    from runq_journal.journal import Journal

    with Journal.open(slot / "journal.db") as journal:
        granted = LeaseRenewed(lease=job.lease, host=job.host, until="")
        journal.append(granted, night=job.night, entry=job.entry)
        journal.append(EntryStarted(), night=job.night, entry=job.entry)
        where = f"{error.where}: " if error.where else ""
        reason = f"it cannot run on {job.host}: {where}{error.message}"
        journal.append(EntryFinished(status="failed", reason=reason), night=job.night, entry=job.entry)
    return 0


def _run(job: Job, folder: Path, queue: PreparedQueue, journal: Journal, interrupts: Interrupts) -> None:
    from runq import suspend
    from runq.entry_run import run_entry
    from runq.night_context import NightContext
    from runq.night_loop import finished
    from runq.processes import Interrupted, boot_id
    from runq.record import Recorder

    work = fresh(queue)[0]
    prepared = attrs.evolve(work.prepared, entry=attrs.evolve(work.prepared.entry, id=job.entry))
    work = attrs.evolve(work, prepared=prepared, decisions=job.decisions)
    leash = Leash(folder, boot_id(), interrupts, job.silence_s, job.grace_s + REAP_S)
    recorder = Recorder(journal=journal, night=job.night)
    context = NightContext(
        recorder=recorder,
        interrupts=interrupts,
        clock=suspend.WorkClock(suspend.machine_clock().awake),
        boot_id=leash.boot_id,
        runs=Path(job.runs),
        grace_s=job.grace_s,
        pace=_pace(job, queue),
        mark=job.mark,
    )
    context.attention = LeasedAttention(recorder, interrupts, leash=leash)
    _begin(context, job, queue, work, folder)
    interrupts.attend(leash.look)
    try:
        leash.look()
        changed = {step for step, now in work.identities.items() if now != job.identities.get(step)}
        if changed:
            recorder.event(EntryStarted(), entry=job.entry)
            reason = f"{', '.join(sorted(changed))}: what it reads is not the same on {job.host} as on the head"
            recorder.event(EntryFinished(status="failed", reason=reason), entry=job.entry)
            finished(context)
            return
        run_entry(context, prepared, job.decisions, job.past, steps=[step.name for step in prepared.steps])
        finished(context)
    except Interrupted as error:
        recorder.event(NightInterrupted(reason=str(error)))
        raise SystemExit(0) from None
    finally:
        interrupts.attend(None)
        context.servers.stop_all()
        context.samples.flush()


def _pace(job: Job, queue: PreparedQueue) -> Pace:
    from runq.deadline import TimeWindow, Usual
    from runq.pace import Pace

    spec = queue.entries[0].spec
    return Pace(
        window=TimeWindow(until=datetime.fromisoformat(job.until) if job.until else None, hard=job.hard),
        history={
            (step, spec.model.id, spec.pack or ""): Usual(seconds=seconds, n=n)
            for step, (seconds, n) in job.usual.items()
        },
    )


def _begin(context: NightContext, job: Job, queue: PreparedQueue, work: Work, folder: Path) -> None:
    """Write the outbox's own plan: what `runq status` and the settle rule of this machine go by."""
    from runq.host import this_host, versions

    with context.recorder.journal.reader() as reader:
        known = any(night == job.night for night in reader.night_ids())
    slot = slot_folder(folder, job.slot)
    context.recorder.event(
        (NightResumed if known else NightStarted)(
            queue_path=job.queue_path,
            queue_sha256=queue.spec.sha256,
            base_dir=job.base_dir,
            runs_dir=str(slot),
            queue_dir=str(slot / f"{job.night}_queue"),
            started_local=datetime.now().astimezone().isoformat(timespec="seconds"),
            entries=(work.planned(),),
            host=this_host(),
            boot_id=context.boot_id,
            pid=os.getpid(),
            versions=versions(),
            plugins=queue.plugins,
        )
    )
    # What follows belongs to this lease, what stands before to an earlier one.
    granted = LeaseRenewed(lease=job.lease, host=job.host, until="")
    context.recorder.event(granted, entry=job.entry)


def sweep(folder: Path) -> None:
    """End what an entry's process left that was killed, and write its ends into the outbox."""
    from runq.opening import opened_journal
    from runq.processes import Interrupts

    job = Job.from_json((folder / JOB).read_text(encoding="utf-8"))
    slot = slot_folder(folder, job.slot)
    if not (slot / "journal.db").exists():
        return
    queue = attrs.evolve(prepared_of(job, os.environ), entries=())
    with Interrupts() as interrupts, opened_journal(queue, slot, datetime.now().astimezone(), interrupts):
        pass  # whoever opens it ends what a dead runner left


def main(argv: list[str]) -> int:
    """Run a job's folder, or with ``--sweep`` end what its dead process left. Returns the exit code."""
    from filelock import FileLock

    *words, place = argv
    folder = Path(place)
    with FileLock(folder / LOCK, mode=0o600):
        if (folder / ENDED).exists():
            return 0
        if "--sweep" in words:
            sweep(folder)
            code: int | None = None
        else:
            code = run_job(folder)
        write_whole(folder / ENDED, json.dumps({"exit_code": code}))
        return code or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
