"""Into the head's journal with what the machines wrote: each event once, in its machine's order, with its origin.

The head is the only writer. How far it has come with each outbox stands in the events themselves (``origin``), so that
a head that was killed asks for what follows the last event it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import attrs

from runq.fleet.held import Holding
from runq.fleet.wire import Reading, Told, Written
from runq_journal.stored import Sample
from runq_schemas.errors import JournalError
from runq_schemas.events import (
    DeliveredLate,
    EntryFinished,
    LeaseEnd,
    LeaseEnded,
    ServerFinished,
    StepFinished,
    to_data,
)

if TYPE_CHECKING:
    from runq.record import Recorder


@attrs.define
class Relay:
    """Appends for the machines of one night."""

    recorder: Recorder
    have: dict[str, tuple[int, int]] = attrs.field(factory=dict, init=False)
    """By outbox: the number of the last event, and of the last reading, that is in the journal."""
    _resumed: set[tuple[int, str, str, str]] | None = attrs.field(default=None, init=False)

    def resume(self) -> None:
        """Find how far an earlier head has come."""
        night = self.recorder.night
        with self.recorder.journal.reader() as reader:
            for event in reader.events(night=night):
                origin = event.data.get("origin")
                if origin and "seq" in origin:
                    self.have[origin["outbox"]] = (int(origin["seq"]), 0)
            if self.have:  # the readings have no origin; what stands there already is not written again
                self._resumed = {_row(s.entry, s.step, s.probe, s.at) for s in reader.samples(night)}

    def take(self, host: str, told: Told, holdings: Mapping[int, Holding]) -> None:
        """Append what a machine told.

        Raises:
            JournalError: it cannot be written.
        """
        for outbox, events in told.events.items():
            seq, reading = self.have.get(outbox, (0, 0))
            rows = [row for row in told.readings.get(outbox, ()) if row[0] > reading]
            self._readings(rows)
            reading = max([reading, *(row[0] for row in rows)])
            for event in events:
                if event.seq <= seq:
                    continue
                self._event(host, outbox, event, holdings.get(event.lease))
                seq = event.seq
                self.have[outbox] = (seq, reading)

    def _readings(self, rows: Sequence[Reading]) -> None:
        samples = []
        for _, at, entry, step, probe, mb in rows:
            moment = datetime.fromisoformat(at)
            if self._resumed is None or _row(entry, step, probe, moment) not in self._resumed:
                samples.append(Sample(night=self.recorder.night, at=moment, entry=entry, step=step, probe=probe, mb=mb))
        try:
            self.recorder.journal.add_samples(samples)
        except JournalError as error:  # readings are no reason to end a night, as in `SampleBatch.flush`
            self.recorder.warn(f"{len(samples)} memory readings could not be written: {error.message}")

    def _event(self, host: str, outbox: str, event: Written, holding: Holding | None) -> None:
        origin = {"host": host, "lease": event.lease, "outbox": outbox, "seq": event.seq, "at": event.at}
        if holding is None:
            late = DeliveredLate(lease=event.lease, host=host, name=event.kind, event=event.data)
            self.recorder.relayed(
                DeliveredLate.kind, {**to_data(late), "origin": origin}, entry=event.entry, step=None, attempt=None
            )
            return
        self.recorder.relayed(
            event.kind, {**event.data, "origin": origin}, entry=event.entry, step=event.step, attempt=event.attempt
        )
        _note(holding, event.kind, event.step, event.attempt, event.data)

    def end(self, holding: Holding, how: LeaseEnd, reason: str) -> None:
        """Write the ends that a machine could not, and that of its lease."""
        origin = {"host": holding.machine, "lease": holding.number}
        for step, attempt in list(holding.open_steps.items()):
            died = StepFinished(status="interrupted", reason=reason)
            self._own(StepFinished.kind, to_data(died), origin, holding, step, attempt)
        for attempt in list(holding.open_servers):
            gone = ServerFinished(stopped=False, reason=reason)
            self._own(ServerFinished.kind, to_data(gone), origin, holding, "server", attempt)
        if holding.started and holding.finished is None:
            self._own(EntryFinished.kind, to_data(EntryFinished(status="interrupted", reason=reason)), origin, holding)
        ended = LeaseEnded(lease=holding.number, host=holding.machine, how=how, reason=reason)
        self.recorder.event(ended, entry=holding.entry)

    def _own(
        self,
        kind: str,
        data: dict[str, Any],
        origin: dict[str, Any],
        holding: Holding,
        step: str | None = None,
        attempt: int | None = None,
    ) -> None:
        self.recorder.relayed(kind, {**data, "origin": origin}, entry=holding.entry, step=step, attempt=attempt)
        _note(holding, kind, step, attempt, data)

    def recall(self, holding: Holding) -> None:
        """Bring a lease of an earlier head up to what its journal says."""
        with self.recorder.journal.reader() as reader:
            for event in reader.events(night=self.recorder.night, entry=holding.entry, after=holding.number):
                if (event.data.get("origin") or {}).get("lease") == holding.number:
                    _note(holding, event.kind, event.step, event.attempt, event.data)


def _note(holding: Holding, kind: str, step: str | None, attempt: int | None, data: Mapping[str, Any]) -> None:
    """Remember what the head needs of a lease's events."""
    if kind == "entry.started":
        holding.started = True
    elif kind == "entry.finished":
        holding.finished, holding.reason = data["status"], data.get("reason", "")
    elif kind == "step.started" and step is not None:
        holding.open_steps[step] = attempt or 1
    elif kind == "server.started":
        holding.open_servers.add(attempt or 1)
    elif kind == "step.finished" and step is not None:
        holding.open_steps.pop(step, None)
        holding.last_ended = data["status"]
    elif kind == "server.finished":
        holding.open_servers.discard(attempt or 1)
    elif kind == "step.deferred":
        holding.deferred = True


def _row(entry: int, step: str, probe: str, at: datetime) -> tuple[int, str, str, str]:
    return entry, step, probe, at.isoformat()
