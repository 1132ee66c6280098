"""The loop of a night on several machines: whole entries are handed out, their events taken in, their ends recorded.

Everything that decides what runs where stands in the journal (`lease.granted`, `lease.renewed`, `lease.ended`): an
entry is handed to a machine only when no lease of it is open, so that it never runs twice at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from runq import planning
from runq.fleet.held import Holding, Machine, left_s, until_text
from runq.fleet.lease import LEASE_S, REAP_S, Lease, Word, elapsed
from runq.fleet.relay import Relay
from runq.fleet.transport import Answer, Arrived, Gone, Refused, Transport
from runq.fleet.wire import Ask, Job
from runq.night_loop import finished, set_aside, write_summary
from runq.retries import FailureRow, RetryPolicy
from runq_schemas.events import HostJoined, HostLost, LeaseEnd, LeaseGranted, LeaseRenewed, NightInterrupted

if TYPE_CHECKING:
    from runq.night_context import NightContext

PUMP_S = 0.25
"""How soon the head notices Ctrl-C."""

SUMMARY_SHARE = 20
"""The summaries are written again when so many times as long as they took has passed, and at the end: of a thousand
entries they take a while, and a hundred machines end one every few seconds."""

BUSY_S = 30.0
"""A machine whose endpoint another night holds is left alone for so long."""

LOSSES = 2
"""How many machines one entry may cost in a night: the second is taken for the entry's doing."""


@attrs.frozen(kw_only=True)
class FleetOptions:
    """How a night on several machines goes.

    Args:
        queue: the queue file's text, as every machine gets it; ``queue_path`` what messages call it.
        lease_s: how long a machine may go on without a word from the head.
        hold_s: how long a machine may keep a question open until there is something to tell.
        silence_s: after so long without a word from the head no further step starts.
    """

    queue: str
    queue_path: str
    lease_s: float = LEASE_S
    hold_s: float = 2.0
    silence_s: float = 15.0


@attrs.define
class _Pending:
    work: planning.Work
    not_before_s: float = 0.0


@attrs.define
class Fleet:
    """Runs the entries of one night on whatever machines the transport brings."""

    context: NightContext
    transport: Transport
    options: FleetOptions
    failures: FailureRow
    now: Callable[[], float] = elapsed
    relay: Relay = attrs.field(init=False)
    machines: dict[str, Machine] = attrs.field(factory=dict, init=False)
    held: dict[int, Holding] = attrs.field(factory=dict, init=False)
    pending: list[_Pending] = attrs.field(factory=list, init=False)
    later: dict[int, tuple[planning.Work, float]] = attrs.field(factory=dict, init=False)
    losses: dict[int, int] = attrs.field(factory=dict, init=False)
    lost: set[int] = attrs.field(factory=set, init=False)
    """Entries of which a machine may have begun an attempt that nobody knows of."""
    stopped: str = attrs.field(default="", init=False)
    _summary_due_s: float | None = attrs.field(default=None, init=False)
    _summary_after_s: float = attrs.field(default=0.0, init=False)
    _round: int = attrs.field(default=0, init=False)

    @relay.default
    def _nothing_taken_yet(self) -> Relay:
        return Relay(self.context.recorder)

    def run(self, works: Sequence[planning.Work]) -> None:
        """Every entry once, then round after round those that are to be tried again at the end.

        Raises:
            Interrupted: a signal or somebody ends the night.
            JournalError: the journal cannot be written.
        """
        self._adopt({work.prepared.entry.id: work for work in works})
        mine = {one.entry for one in self.held.values()}
        for work in works:
            if work.to_tell:
                set_aside(self.context, work)
            elif work.runs and work.prepared.entry.id not in mine:
                self.pending.append(_Pending(work))
        while self.pending or self.held:
            while (self.pending and not self.stopped) or self.held:
                self._gate()
                if not self.context.attention.waits and not self.context.attention.ends and not self.stopped:
                    self._hand_out()
                self._pump()
            self._next_round()

    def stop(self, reason: str) -> None:
        """Have every machine end what it runs, and wait for the word of those that can be reached, not for ever."""
        for one in self.held.values():
            one.stop = reason
        end = self.now() + 2 * self.options.hold_s + self.context.grace_s + REAP_S
        while self.held and self.now() < end and not self.context.interrupts.kill_now:
            self._pump()

    # --- what an earlier head left --------------------------------------------------------------------------------

    def _adopt(self, works: Mapping[int, planning.Work]) -> None:
        """Take over the leases that are open: their entries may still be running."""
        self.relay.resume()
        night = self.context.recorder.night
        with self.context.recorder.journal.reader() as reader:
            rows = reader.leases(night)
        self.lost = {row["entry"] for row in rows if row["ended"] in ("expired", "died")}
        for row in (row for row in rows if row["ended"] is None):
            until_s = self.now() + left_s(row["until"], row["lease_s"])
            lease = Lease(lease_s=row["lease_s"], until_s=until_s, machine_until_s=0.0)
            holding = Holding(
                number=row["lease"],
                entry=row["entry"],
                work=works.get(row["entry"]),
                machine=row["host"],
                slot=row["slot"],
                lease=lease,
            )
            self.relay.recall(holding)
            self.held[holding.number] = holding

    # --- machines -------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Take in what has come, ask who can be asked, and look at the leases."""
        for news in self.transport.news(PUMP_S):
            match news:
                case Arrived():
                    self._arrived(news)
                case Gone():
                    self._gone(news)
                case Refused():
                    self.context.recorder.warn(f"{news.name} takes no part: {news.reason}", news.remedy)
                case Answer():
                    self._answer(news)
        self._renew()
        self._expire()
        self._summarise()
        for machine in self.machines.values():
            if machine.address is not None and not machine.asked:
                self._ask(machine)

    def _arrived(self, news: Arrived) -> None:
        word = Word(boot_id=news.boot_id, said_s=news.said_s, heard_s=news.heard_s)
        before = self.machines.get(news.name)
        machine = Machine(
            name=news.name,
            slots=news.slots,
            word=word,
            resources=news.resources,
            address=news.address,
            not_before_s=before.not_before_s if before else 0.0,
        )
        self.machines[news.name] = machine
        joined = HostJoined(host=news.name, machine=news.machine, address=news.address, slots=news.slots)
        self.context.recorder.event(joined)

    def _gone(self, news: Gone) -> None:
        for machine in self.machines.values():
            if machine.address == news.address:
                machine.address = None
                self.context.recorder.event(HostLost(host=machine.name, reason=news.reason))

    def _ask(self, machine: Machine) -> None:
        if machine.address is None:
            return
        terms = {
            number: one.terms(machine.word) if one.lease.machine_until_s > 0 else None
            for number, one in self.held.items()
            if one.machine == machine.name
        }
        machine.asked = True
        journal = self.context.recorder.journal.uuid
        stopping = any(one.stop for one in self.held.values())
        ask = Ask(
            journal=journal,
            night=self.context.recorder.night,
            have=dict(self.relay.have),
            terms=terms,
            hold_s=min(self.options.hold_s, PUMP_S) if stopping else self.options.hold_s,
        )
        self.transport.ask(machine.address, ask)

    def _answer(self, news: Answer) -> None:
        machine = next((one for one in self.machines.values() if one.address == news.address), None)
        if machine is None:
            return
        machine.asked = False
        told = news.told
        if told is None:
            return
        machine.word = Word(boot_id=told.boot_id, said_s=told.now_s, heard_s=news.heard_s)
        mine = {number: one for number, one in self.held.items() if one.machine == machine.name}
        self.relay.take(machine.name, told, mine)
        for number, code in told.ended.items():
            if number in mine:
                self._ended(mine[number], machine, code)

    # --- leases ---------------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        now_s = self.now()
        for one in self.held.values():
            machine = self.machines.get(one.machine)
            if machine is None:
                continue
            renewed = one.lease.renewed(machine.word)
            # In small steps it is not worth an event, and one that ran out is not brought back.
            if one.lease.due(now_s) and not one.lease.expired(now_s) and renewed.until_s > one.lease.until_s:
                until = until_text(renewed.until_s - now_s)
                event = LeaseRenewed(lease=one.number, host=one.machine, until=until)
                self.context.recorder.event(event, entry=one.entry)  # on disk before the machine is told
                one.lease = renewed
            elif one.lease.machine_until_s == 0.0 and machine.word.heard_s + one.lease.lease_s > now_s:
                one.lease = attrs.evolve(one.lease, machine_until_s=machine.word.said_s + one.lease.until_s - now_s)

    def _expire(self) -> None:
        now_s = self.now()
        for one in [one for one in self.held.values() if one.lease.expired(now_s)]:
            reason = f"{one.machine} was not heard from until its lease ran out"
            self._lost(one, "expired", reason)

    def _ended(self, one: Holding, machine: Machine, code: int | None) -> None:
        if one.finished is not None and one.finished != "interrupted":
            self._close(one, "done", "")
            self._outcome(one)
        elif not one.started and code is not None and code != 0:
            self._close(one, "refused", f"another night holds the endpoint of {one.machine}")
            machine.not_before_s = self.now() + BUSY_S
            if one.work is not None:
                self.pending.insert(0, _Pending(one.work))
        elif one.stop:
            self._close(one, "done", one.stop)
        else:
            self._lost(one, "died", one.reason or f"what ran it on {one.machine} died")

    def _lost(self, one: Holding, how: LeaseEnd, reason: str) -> None:
        """A machine could not finish an entry: it goes elsewhere, unless it has cost too many machines."""
        self._close(one, how, reason)
        self.lost.add(one.entry)
        lost = self.losses[one.entry] = self.losses.get(one.entry, 0) + 1
        if one.stop or self.stopped or one.work is None:
            return
        if lost >= max(LOSSES, one.work.prepared.spec.retries + 1):
            self.context.recorder.warn(
                f"e{one.entry} was lost {lost} times and is not tried again in this night",
                "look at its logs and the machines', then resume with --resume",
                entry=one.entry,
            )
            self._count(good=False)
            return
        self.pending.insert(0, _Pending(self._once_more(one.work)))

    def _close(self, one: Holding, how: LeaseEnd, reason: str) -> None:
        self.relay.end(one, how, reason)
        del self.held[one.number]
        self._summary_due_s = self._summary_after_s

    def _summarise(self) -> None:
        if self._summary_due_s is None or (began_s := self.now()) < self._summary_due_s:
            return
        write_summary(self.context)
        took_s = self.now() - began_s
        self._summary_due_s, self._summary_after_s = None, self.now() + SUMMARY_SHARE * took_s

    # --- entries --------------------------------------------------------------------------------------------------

    def _gate(self) -> None:
        """Let signals and questions in; with nothing out, pause or end where somebody asked for it."""
        attention = self.context.attention
        if self.held and (attention.waits or attention.ends):
            self.context.interrupts.sleep(0)
        else:
            attention.gate()

    def _hand_out(self) -> None:
        now_s = self.now()
        left = self.context.pace.left_s()
        if left is not None and left <= 0:
            self._defer_all()
        for machine in self.machines.values():
            while machine.ready(now_s) and (slot := machine.free_slot(self.held.values())) is not None:
                found = next((one for one in self.pending if one.not_before_s <= now_s), None)
                if found is None:
                    return
                self.pending.remove(found)
                self._grant(found.work, machine, slot)

    def _grant(self, work: planning.Work, machine: Machine, slot: int) -> None:
        """Hand an entry to a machine: the lease is on disk before the machine hears of it."""
        lease_s, prepared = self.options.lease_s, work.prepared
        lease = Lease.granted(machine.word, lease_s, self.now())
        granted = LeaseGranted(host=machine.name, until=until_text(lease_s), lease_s=lease_s, slot=slot)
        number = self.context.recorder.event(granted, entry=prepared.entry.id)
        one = Holding(number=number, entry=prepared.entry.id, work=work, machine=machine.name, slot=slot, lease=lease)
        self.held[number] = one
        window = self.context.pace.window
        job = Job(
            journal=self.context.recorder.journal.uuid,
            night=self.context.recorder.night,
            lease=number,
            host=machine.name,
            slot=slot,
            entry=prepared.entry.id,
            index=prepared.spec.index,
            queue=self.options.queue,
            queue_path=self.options.queue_path,
            base_dir=str(prepared.entry.base_dir),
            runs=str(self.context.runs),
            decisions=work.decisions,
            past=work.past,
            identities=work.identities,
            until=window.until.isoformat() if window.until else None,
            hard=window.hard,
            usual=self._usual(machine.name, work),
            silence_s=self.options.silence_s,
            grace_s=self.context.grace_s,
            mark=f"_l{number}" if prepared.entry.id in self.lost else "",
        )
        assert machine.address is not None  # noqa: S101 - `ready` says so
        self.transport.start(machine.address, number, job.to_json(), one.terms(machine.word), {"endpoint": 1})

    def _usual(self, host: str, work: planning.Work) -> dict[str, tuple[float, int]]:
        """How long the entry's steps usually take on a machine; asked for only where a deadline goes by it."""
        if self.context.pace.window.until is None:
            return {}
        model, pack = work.prepared.spec.model.id, work.prepared.spec.pack
        with self.context.recorder.journal.reader() as reader:
            rows = reader.durations(host)
        return {
            row["step"]: (row["seconds"], row["n"]) for row in rows if (row["model_id"], row["pack"]) == (model, pack)
        }

    def _once_more(self, work: planning.Work) -> planning.Work:
        with self.context.recorder.journal.reader() as reader:
            return planning.once_more(work, reader, self.context.recorder.night)

    def _outcome(self, one: Holding) -> None:
        """What an entry's end means for the night."""
        if one.work is None:
            return
        good = one.finished == "complete"
        policy = RetryPolicy.of(one.work.prepared.spec)
        if not good and policy.when == "end" and one.last_ended and policy.again(one.last_ended, self._round):
            self.later[one.entry] = (one.work, self.now())
        if not one.deferred:
            self._count(good=good)

    def _count(self, *, good: bool) -> None:
        self.failures = self.failures.after(good)
        if self.failures.too_long and not self.stopped:
            self.stopped = f"max_failures ended the night: {self.failures.count} entries in a row failed"
            self.context.recorder.warn(self.stopped, "resume it with --resume")

    def _next_round(self) -> None:
        self._round += 1
        if self.stopped:
            self.pending = []
            return
        self.failures = attrs.evolve(self.failures, count=0)
        for work, ended_s in self.later.values():
            wait_s = RetryPolicy.of(work.prepared.spec).wait_before(self._round)
            self.pending.append(_Pending(self._once_more(work), ended_s + wait_s))
        self.later = {}

    def _defer_all(self) -> None:
        from runq.pace import defer

        for one in self.pending:
            steps = [decision.step for decision in one.work.decisions if decision.run]
            defer(self.context, one.work.prepared, steps, self.context.pace.ruling(one.work.prepared, steps[0]).reason)
        self.pending = []


def run_fleet(
    context: NightContext,
    works: Sequence[planning.Work],
    max_failures: int | None,
    *,
    transport: Transport,
    options: FleetOptions,
) -> str | None:
    """Run every entry on the machines of the transport. Returns the signal's name when one ended the night."""
    from runq.processes import Interrupted

    interrupted: str | None = None
    fleet = Fleet(context, transport, options, FailureRow(limit=max_failures))
    try:
        fleet.run(works)
    except Interrupted as error:
        interrupted = str(error)
        fleet.stop(f"the night was interrupted: {interrupted}")
    finally:
        transport.close()
    if interrupted:
        context.recorder.event(NightInterrupted(reason=interrupted))
    else:
        finished(context, fleet.stopped)
    write_summary(context)
    return interrupted
