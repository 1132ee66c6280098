"""The night: locks, orphans, plan, entries one by one, summaries, and an end that is always recorded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq import paths, planning, power, suspend
from runq.before_entry import before_night
from runq.deadline import TimeWindow
from runq.executor import Executor, Local
from runq.host import this_host, versions
from runq.keep_awake import keeping_awake
from runq.leftover_leases import end_leases, refuse_leased
from runq.night_context import GRACE_S, NightContext
from runq.night_loop import finished, wait_for_start, write_summary
from runq.notify.notifier import Notifier
from runq.opening import opened_journal
from runq.pace import Pace, history_of
from runq.prepared import PreparedQueue
from runq.record import Observer, Recorder, Silent
from runq.summary import LANGUAGES
from runq_schemas.errors import UsageError
from runq_schemas.events import NightResumed, NightStarted

LAST_NOTICE_S = 5.0
"""Seconds that an interrupted night gives a notification that is under way."""

if TYPE_CHECKING:
    from runq.power import ReadsBattery
    from runq.processes import Stopper
    from runq.suspend import MachineClock
    from runq_journal.journal import Journal


@attrs.frozen(kw_only=True)
class NightRequest:
    """What to run.

    Args:
        runs: the runs folder.
        resume: continue a night instead of starting one; ``night`` names it, else the latest that is incomplete.
        only: entry ids; ``None`` for all.
        forced: per entry id, steps to run again although they are done (with ``resume``).
        lift: run entries too that were set aside (with ``resume``).
        window: when the night may work.
        max_failures: entries in a row that are not complete end the night; ``None``: what the queue file says.
        keep_awake: keep the machine awake meanwhile; the command line does unless told otherwise.
        lang: what summary.md is written in; ``None``: as before (with ``resume``), else English.
    """

    queue: PreparedQueue
    runs: Path
    resume: bool = False
    night: str | None = None
    only: frozenset[int] | None = None
    forced: Mapping[int, frozenset[str]] = attrs.field(factory=dict)
    lift: bool = False
    window: TimeWindow = attrs.field(factory=TimeWindow)
    max_failures: int | None = None
    keep_awake: bool = False
    lang: str | None = None

    @property
    def failures_allowed(self) -> int | None:
        """Entries in a row that may be incomplete before the night ends; ``None``: any number."""
        return self.queue.spec.max_failures if self.max_failures is None else self.max_failures


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
    machine: MachineClock | None = None,
    now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    grace_s: float = GRACE_S,
    battery: ReadsBattery | None = None,
    notifier: Notifier | None = None,
    executor: Executor | None = None,
) -> NightResult:
    """Run or resume a night.

    Args:
        machine: the machine's time; its own by default.
        battery: reads the machine's battery; by default as psutil tells it.
        notifier: where notifications go; nowhere by default.
        executor: runs the entries; by default this machine does, one by one.

    Raises:
        LockedError: another night holds the journal or an endpoint.
        JournalError: the journal cannot be written or is damaged.
        UsageError: the night to resume does not exist.
    """
    from runq.processes import boot_id

    machine = machine or suspend.machine_clock()
    work = suspend.WorkClock(machine.awake)
    _refuse(request, request.runs / paths.JOURNAL_NAME)
    started, executor = now(), executor or Local()
    with opened_journal(request.queue, request.runs, started, interrupts, here=executor.here) as journal:
        night, works, earlier = _choose(request, journal, started)
        if executor.here:
            refuse_leased(journal, night)
        recorder = Recorder(
            journal=journal, night=night, observer=observer or Silent(), notifier=notifier or Notifier()
        )
        context = NightContext(
            recorder=recorder,
            interrupts=interrupts,
            clock=work,
            boot_id=boot_id(),
            runs=request.runs,
            grace_s=grace_s,
            pace=_pace(request, journal, now),
            battery=battery or power.battery,
        )
        if request.resume and not planning.left(works):
            _nothing_left(context, request, works, started)
            return _result(context, works, request, ran=False, earlier=None)
        with context.disk.keeping(journal):
            _start(context, request, works, started)
            if executor.here:
                end_leases(recorder)
            before_night(context, works)
            awake = keeping_awake(recorder) if request.keep_awake else nullcontext()
            with context.attention.attending(journal.path, work, machine), awake:
                interrupted = wait_for_start(context) or executor.run(
                    context, works, request.failures_allowed, request.queue.spec.order
                )
        recorder.notifier.wait(LAST_NOTICE_S)
        return _result(context, works, request, ran=True, interrupted=interrupted, earlier=earlier)


def _pace(request: NightRequest, journal: Journal, now: Callable[[], datetime]) -> Pace:
    if request.window.until is None:
        return Pace(window=request.window, now=now)
    with journal.reader() as reader:
        return Pace(window=request.window, history=history_of(reader), now=now)


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
        works = planning.resumed(
            request.queue, reader, night, only=request.only, forced=request.forced, lift=request.lift
        )
        return night, works, None


def _start(context: NightContext, request: NightRequest, works: Sequence[planning.Work], started: datetime) -> None:
    queue = request.queue
    cls = NightResumed if request.resume else NightStarted
    paths.private_folder(context.queue_dir)
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
            window=request.window.recorded(),
            max_failures=request.failures_allowed,
            order=queue.spec.order,
            lang=_lang(context, request),
            lifted=tuple(work.prepared.entry.id for work in works if work.lifted),
        )
    )


def _lang(context: NightContext, request: NightRequest) -> str:
    if request.lang or not request.resume:
        return request.lang or LANGUAGES[0]
    with context.recorder.journal.reader() as reader:
        return str(reader.latest_plan(context.recorder.night).get("lang") or LANGUAGES[0])


def _nothing_left(
    context: NightContext, request: NightRequest, works: Sequence[planning.Work], started: datetime
) -> None:
    """Make the journal say that nothing is left, where it does not yet.

    Its runner may have died after the last step, before it could write the night's end. Or the queue file, a pack or
    a bundle is again as it was, and the newest plan is the one of an edit that was taken back.
    """
    night = context.recorder.night
    with context.recorder.journal.reader() as reader:
        ended = reader.night_summary(night)["state"] == "finished"
        planned = {entry["id"] for entry in reader.latest_plan(night)["entries"]}
        outdated = bool(reader.todo(night)) or planned != {work.prepared.entry.id for work in works}
    if outdated and request.only is None:
        _start(context, request, works, started)
        finished(context)
    elif not outdated and not ended:
        finished(context)
    write_summary(context)


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
        open_entries = {row["entry"] for row in reader.entry_results(night) if row["status"] != "complete"}
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
