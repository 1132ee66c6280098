"""The night: locks, orphans, plan, entries one by one, summaries, and an end that is always recorded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq import paths, planning
from runq.entry_run import run_entry
from runq.host import this_host, versions
from runq.night_context import GRACE_S, NightContext
from runq.opening import opened_journal, summary_error
from runq.prepared import PreparedQueue
from runq.record import Observer, Recorder, Silent
from runq_schemas.errors import UsageError
from runq_schemas.events import (
    NightFinished,
    NightInterrupted,
    NightResumed,
    NightStarted,
)

if TYPE_CHECKING:
    from runq.processes import Stopper
    from runq_journal.journal import Journal


@attrs.frozen(kw_only=True)
class NightRequest:
    """What to run.

    Args:
        runs: the runs folder.
        resume: continue a night instead of starting one; ``night`` names it, else the latest that is incomplete.
        only: entry ids; ``None`` for all.
        forced: per entry id, steps to run again although they are done (with ``resume``).
    """

    queue: PreparedQueue
    runs: Path
    resume: bool = False
    night: str | None = None
    only: frozenset[int] | None = None
    forced: Mapping[int, frozenset[str]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class NightResult:
    """How a night ended. ``ran`` is False when nothing was left to do."""

    night: str
    runs: Path
    total: int
    complete: int
    ran: bool
    interrupted: str | None = None
    selected_complete: bool = False
    earlier: str | None = None

    @property
    def exit_code(self) -> int:
        """0 when every selected entry is complete, 130 when interrupted, else 1."""
        if self.interrupted:
            return 130
        return 0 if self.selected_complete else 1


def run_night(
    request: NightRequest,
    *,
    interrupts: Stopper,
    observer: Observer | None = None,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    grace_s: float = GRACE_S,
) -> NightResult:
    """Run or resume a night.

    Raises:
        LockedError: another night holds the journal or an endpoint.
        JournalError: the journal cannot be written or is damaged.
        UsageError: the night to resume does not exist.
    """
    from runq.processes import boot_id

    _refuse(request, request.runs / paths.JOURNAL_NAME)
    started = now()
    with opened_journal(request.queue, request.runs, started, interrupts) as journal:
        night, works, earlier = _choose(request, journal, started)
        recorder = Recorder(journal=journal, night=night, observer=observer or Silent())
        context = NightContext(
            recorder=recorder,
            interrupts=interrupts,
            clock=clock,
            boot_id=boot_id(),
            runs=request.runs,
            grace_s=grace_s,
        )
        if request.resume and not planning.left(works):
            _nothing_left(context, request, works, started)
            return _result(context, works, request, ran=False, earlier=None)
        _start(context, request, works, started)
        interrupted = _run_all(context, works)
        return _result(context, works, request, ran=True, interrupted=interrupted, earlier=earlier)


def _refuse(request: NightRequest, journal: Path) -> None:
    """Refuse before anything is written what can be refused then.

    Raises:
        UsageError: there is nothing to resume, or no such entry.
    """
    if not request.resume:
        planning.fresh(request.queue, only=request.only)
    elif not paths.is_begun(journal):
        raise UsageError(f"{request.runs} has no journal to resume from", remedy="start a night without --resume")


def _choose(
    request: NightRequest, journal: Journal, started: datetime
) -> tuple[str, tuple[planning.Work, ...], str | None]:
    """The night's id, its work, and an earlier incomplete night of the same queue that a resume would continue."""
    with journal.reader() as reader:
        mine = planning.nights_of(reader, request.queue)
        if not request.resume:
            earlier = next((n for n in mine if reader.todo(n)), None)
            taken = frozenset(reader.night_ids())
            night = paths.new_night_id(started, request.runs, taken)
            return night, planning.fresh(request.queue, only=request.only), earlier
        night = planning.night_to_resume(reader, request.queue, request.night, request.runs)
        works = planning.resumed(request.queue, reader, night, only=request.only, forced=request.forced)
        return night, works, None


def _start(context: NightContext, request: NightRequest, works: Sequence[planning.Work], started: datetime) -> None:
    queue = request.queue
    cls = NightResumed if request.resume else NightStarted
    context.queue_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    context.recorder.event(
        cls(
            queue_path=str(queue.spec.path),
            queue_sha256=queue.spec.sha256,
            base_dir=str(queue.base_dir),
            runs_dir=str(request.runs),
            queue_dir=str(context.queue_dir),
            started_local=started.isoformat(timespec="seconds"),
            entries=tuple(work.planned() for work in works),
            host=this_host(),
            boot_id=context.boot_id,
            pid=os.getpid(),
            versions=versions(),
            plugins=queue.plugins,
            only=None if request.only is None else tuple(sorted(request.only)),
        )
    )


def _run_all(context: NightContext, works: Sequence[planning.Work]) -> str | None:
    """Run every entry. Returns the signal's name when one ended the night. Servers are gone afterwards."""
    from runq.processes import Interrupted

    interrupted: str | None = None
    hung_up = False
    try:
        for work in works:
            context.interrupts.check()
            if context.interrupts.hung_up and not hung_up:
                hung_up = True
                context.recorder.warn("the terminal was closed; the night goes on", "see `runq status`")
            if not work.runs:
                continue
            outcome = run_entry(context, work.prepared, work.decisions, work.past)
            write_summary(context)
            if outcome.stop_night:
                context.recorder.warn(f"on_dirty: stop ended the night: {outcome.reason}", "resume it with --resume")
                break
    except Interrupted as error:
        interrupted = str(error)
    finally:
        context.servers.stop_all()
    if interrupted:
        context.recorder.event(NightInterrupted(reason=interrupted))
    else:
        _finished(context)
    write_summary(context)
    return interrupted


def _finished(context: NightContext) -> None:
    with context.recorder.journal.reader() as reader:
        row = reader.night_summary(context.recorder.night)
    context.recorder.event(NightFinished(total=row["total"], complete=row["complete"]))


def _nothing_left(
    context: NightContext, request: NightRequest, works: Sequence[planning.Work], started: datetime
) -> None:
    """Make the journal say that nothing is left, where it does not yet.

    Its runner may have died after the last step, before it could write the night's end. Or the queue file, a pack or
    a bundle is again as it was, and the newest plan is the one of an edit that was taken back.
    """
    night = context.recorder.night
    with context.recorder.journal.reader() as reader:
        finished = reader.night_summary(night)["state"] == "finished"
        planned = {entry["id"] for entry in reader.latest_plan(night)["entries"]}
        outdated = bool(reader.todo(night)) or planned != {work.prepared.entry.id for work in works}
    if outdated and request.only is None:
        _start(context, request, works, started)
        _finished(context)
    elif not outdated and not finished:
        _finished(context)
    write_summary(context)


def write_summary(context: NightContext) -> None:
    """Write the summaries from the journal; a failure is a warning, they can be rebuilt by `runq replay`."""
    error = summary_error(context.recorder.journal, context.recorder.night, context.runs)
    if error is not None:
        context.recorder.warn(
            f"the summary could not be written: {error}", "make room, then run `runq replay` to write it"
        )


def _result(
    context: NightContext,
    works: Sequence[planning.Work],
    request: NightRequest,
    *,
    ran: bool,
    interrupted: str | None = None,
    earlier: str | None,
) -> NightResult:
    night = context.recorder.night
    with context.recorder.journal.reader() as reader:
        open_entries = {row["entry"] for row in reader.todo(night)}
    ids = [work.prepared.entry.id for work in works]
    chosen = [work.prepared.entry.id for work in works if work.selected]
    return NightResult(
        night=night,
        runs=request.runs,
        total=len(ids),
        complete=sum(1 for number in ids if number not in open_entries),
        ran=ran,
        interrupted=interrupted,
        selected_complete=all(number not in open_entries for number in chosen),
        earlier=earlier,
    )
