"""What every journal keeps, whatever happened to the nights in it: each law a pure function over the events.

    python -m bench.laws RUNS/journal.db

A law takes a `Record` and yields a sentence for every place where it is broken. They say what runq promises (an event
is on disk before the act that depends on it, nothing runs twice, nothing is lost, one runner at a time; docs/laws.md)
in terms of the events alone, without runq's own views, so that a fault in a view does not hide one in the night. What
needs the files beside the journal is in `bench.laws_of_files`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from runq_journal import JournalReader, Sample, StoredEvent
from runq_schemas.event_parts import RUNNER_DIED

PLANS = ("night.started", "night.resumed")
ENDS = ("night.interrupted", "night.finished")
WORDS = ("step.started", "step.finished", "step.skipped")
"""The kinds that say how a step stands; the last one counts."""

OF_AN_ENTRY = (
    "reset.started",
    "reset.finished",
    "settle.started",
    "settle.finished",
    "cooldown.started",
    "server.started",
    "server.spawned",
    "step.started",
    "step.spawned",
)
"""The kinds that are written only while their entry has its turn."""

CLOCKS_AGREE_S = 1.0
"""How far the wall clock and the monotonic one may part while an attempt runs before the former counts as set."""

Key = tuple[str, int | None, str | None, int | None]


@attrs.frozen(kw_only=True)
class Record:
    """A journal, read once. ``breaks`` is what is wrong with its hash chain, in words."""

    path: Path
    uuid: str
    events: tuple[StoredEvent, ...]
    samples: tuple[Sample, ...]
    breaks: tuple[str, ...]

    @property
    def nights(self) -> tuple[str, ...]:
        """The nights that were started, the oldest first; no checks and no imports."""
        return tuple(dict.fromkeys(event.night for event in self.events if event.kind == "night.started"))

    def of(self, night: str) -> tuple[StoredEvent, ...]:
        """The events of a night."""
        return tuple(event for event in self.events if event.night == night)


Law = Callable[[Record], Iterator[str]]


def read(journal: Path) -> Record:
    """Read a journal that nobody writes now.

    Raises:
        JournalError: it cannot be read.
    """
    with JournalReader.open(journal) as reader:
        breaks = tuple(str(one) for one in reader.breaks())
        events = tuple(reader.events())
        nights = dict.fromkeys(event.night for event in events)
        samples = tuple(sample for night in nights for sample in reader.samples(night))
        return Record(path=journal, uuid=reader.uuid, events=events, samples=samples, breaks=breaks)


def key(event: StoredEvent) -> Key:
    """The attempt that an event is about."""
    return (event.night, event.entry, event.step, event.attempt)


def lane(event: StoredEvent) -> int:
    """Whose turn an event belongs to: 0 is the runner's own, another number a lease of a machine of a cluster."""
    origin = event.data.get("origin")
    return int(origin["lease"]) if origin else 0


def written_at(event: StoredEvent) -> datetime:
    """When an event was first written, by whoever wrote it."""
    return datetime.fromisoformat((event.data.get("origin") or {}).get("at") or event.at)


def named(event: StoredEvent) -> str:
    """An attempt in words."""
    return f"attempt {event.attempt} of e{event.entry} {event.step}"


def by_runner_that_died(event: StoredEvent) -> bool:
    """Whether a later runner wrote the event for one that could not."""
    ends = ("step.finished", "server.finished", "night.interrupted")
    return event.kind in ends and str(event.data.get("reason", "")).startswith(RUNNER_DIED)


# --- the laws -------------------------------------------------------------------------------------------------------


def the_chain_is_whole(record: Record) -> Iterator[str]:
    """The hash chain holds: no event was edited, removed, inserted or moved."""
    yield from record.breaks


def every_start_has_one_end(record: Record) -> Iterator[str]:
    """Every attempt and every server that was started has exactly one end, and nothing ends that was not started."""
    for family in ("step", "server"):
        open_since: dict[Key, int] = {}
        seen: set[Key] = set()
        for event in record.events:
            if event.kind == f"{family}.started":
                if key(event) in seen:
                    yield f"event {event.id}: {named(event)} was started before"
                seen.add(key(event))
                open_since[key(event)] = event.id
            elif event.kind == f"{family}.finished" and open_since.pop(key(event), None) is None:
                had = "has ended before" if key(event) in seen else "was never started"
                yield f"event {event.id}: {named(event)} {had}"
        for (_, entry, step, attempt), number in open_since.items():
            yield f"event {number}: attempt {attempt} of e{entry} {step} has no end"


def a_process_is_recorded_between_start_and_end(record: Record) -> Iterator[str]:
    """A process is recorded once, between start and end of its attempt, and none ends that was not recorded."""
    open_now: set[Key] = set()
    spawned: set[Key] = set()
    for event in record.events:
        if event.kind in ("step.started", "server.started"):
            open_now.add(key(event))
        elif event.kind in ("step.spawned", "server.spawned"):
            if key(event) not in open_now:
                yield f"event {event.id}: {named(event)} has a process and does not run"
            if key(event) in spawned:
                yield f"event {event.id}: {named(event)} has a second process"
            spawned.add(key(event))
        elif event.kind in ("step.finished", "server.finished"):
            open_now.discard(key(event))
            ended = event.data.get("exit_code") is not None or event.data.get("signal") is not None
            if ended and key(event) not in spawned:
                yield f"event {event.id}: {named(event)} ended a process that was never recorded"


def attempts_count_up_from_one(record: Record) -> Iterator[str]:
    """The attempts of a step are 1, 2, 3 and so on over all resumes."""
    last: dict[tuple[str, int | None, str | None], int] = {}
    for event in record.events:
        if event.kind == "step.started":
            where = (event.night, event.entry, event.step)
            expected = last.get(where, 0) + 1
            if event.attempt != expected:
                yield f"event {event.id}: {named(event)} should be attempt {expected}"
            last[where] = event.attempt or expected


_STOOD_OTHERWISE = re.compile(r"has not run|was running when the runner died|\w+ in attempt \d+")


def what_is_ok_does_not_run_again(record: Record) -> Iterator[str]:
    """A step that is ok starts again only under a later plan that says so, and for a reason that is true."""
    plan: dict[str, StoredEvent] = {}
    ok: dict[tuple[str, int | None, str | None], int] = {}
    for event in record.events:
        where = (event.night, event.entry, event.step)
        if event.kind in PLANS:
            plan[event.night] = event
        elif event.kind == "step.finished" and event.data["status"] == "ok":
            ok[where] = event.id
        elif event.kind == "step.started" and where in ok:
            finished, newest = ok.pop(where), plan.get(event.night)
            steps = {step["name"]: step for step in planned(newest).get(event.entry or 0, ())}
            step = steps.get(event.step or "")
            if newest is None or newest.id < finished:
                yield f"event {event.id}: {named(event)} started although it was ok in event {finished}"
            elif step is None or not step["run"]:
                yield f"event {event.id}: {named(event)} was ok in event {finished}, and the plan does not run it"
            elif _STOOD_OTHERWISE.fullmatch(step["why"]):
                yield f"event {event.id}: {named(event)} was ok in event {finished}, but the plan says: {step['why']}"


def planned(plan: StoredEvent | None) -> Mapping[int, Sequence[Mapping[str, Any]]]:
    """The steps of each entry id in a plan, in their order; none without a plan."""
    return {entry["id"]: entry["steps"] for entry in plan.data["entries"]} if plan else {}


def a_step_builds_on_an_ok_one(record: Record) -> Iterator[str]:
    """A step starts only when the one before it in its entry is ok."""
    plan: dict[str, StoredEvent] = {}
    last: dict[tuple[str, int | None, str | None], str] = {}
    for event in record.events:
        if event.kind in PLANS:
            plan[event.night] = event
        elif event.kind == "step.started":
            names = [step["name"] for step in planned(plan.get(event.night)).get(event.entry or 0, ())]
            position = names.index(event.step) if event.step in names else 0
            for before in names[:position]:
                if last.get((event.night, event.entry, before)) != "ok":
                    yield f"event {event.id}: {named(event)} started although {before} is not ok"
            last[event.night, event.entry, event.step] = "running"
        elif event.kind == "step.finished":
            last[event.night, event.entry, event.step] = event.data["status"]


def one_thing_at_a_time(record: Record) -> Iterator[str]:
    """One night, one entry, one step at a time, each inside the other; what is open when a runner dies ends so.

    On a cluster each lease is a turn of its own, and those of several machines lie side by side.
    """
    nights = set(record.nights)
    night: str | None = None
    turns: dict[int, tuple[int | None, Key | None]] = {}
    for event in (one for one in record.events if one.night in nights):
        entry, step = turns.get(lane(event), (None, None))
        if event.kind in PLANS:
            if night is not None:
                yield f"event {event.id}: {event.kind} while the night {night} has no end"
            night = event.night
        elif event.kind in ENDS:
            if night != event.night and not (event.kind == "night.finished" and night is None):
                yield f"event {event.id}: {event.kind} of a night that does not run"
            if step is not None or (entry is not None and not by_runner_that_died(event)):
                yield f"event {event.id}: {event.kind} while e{entry} has no end"
            night, entry, step = None, None, None
        elif event.kind == "entry.started":
            if night != event.night or entry is not None:
                yield f"event {event.id}: e{event.entry} started " + (
                    "outside its night" if night != event.night else f"while e{entry} has its turn"
                )
            entry = event.entry
        elif event.kind == "entry.finished":
            if entry != event.entry or step is not None:
                yield f"event {event.id}: e{event.entry} ended " + ("while a step runs" if step else "without a start")
            entry = None
        elif event.kind == "step.finished":
            step = None
        elif event.kind in OF_AN_ENTRY:
            if entry != event.entry or night != event.night:
                yield f"event {event.id}: {event.kind} of e{event.entry} outside its turn"
            if step is not None and event.kind != "step.spawned":
                yield f"event {event.id}: {event.kind} while {step[2]} of e{step[1]} runs"
            if event.kind == "step.started":
                step = key(event)
        turns[lane(event)] = (entry, step)
    if night is not None:
        yield f"the night {night} has no end"


def a_baseline_comes_first(record: Record) -> Iterator[str]:
    """The first step of an entry's turn comes after its reset and its settling, or shares a baseline that is named.

    In ``order: phases`` an entry's later turn may go on with the baseline of its own earlier one.
    """
    phases = False
    proven: set[int | None] = set()
    turns: dict[int, tuple[bool, bool, bool]] = {}
    for event in record.events:
        reset, settled, first = turns.get(lane(event), (True, True, True))
        if event.kind in PLANS:
            phases, proven = event.data.get("order") == "phases", set()
        elif event.kind == "entry.started":
            reset = settled = False
            first = True
        elif event.kind == "reset.finished":
            reset = True
        elif event.kind == "settle.finished" and reset:
            settled = True
            proven.add(event.entry)
        elif event.kind == "step.started":
            shared = event.data.get("baseline_event") is not None or (phases and event.entry in proven)
            if first and not settled and not shared:
                yield f"event {event.id}: {named(event)} started without a reset and a baseline"
            first = False
        turns[lane(event)] = (reset, settled, first)


def one_writer_at_a_time(record: Record) -> Iterator[str]:
    """While a night has no end, its runner's own clock never falls, unless a later runner says that it died."""
    before: StoredEvent | None = None
    night: str | None = None
    for event in record.events:
        fell = before is not None and event.elapsed_s < before.elapsed_s
        if fell and night is not None and not by_runner_that_died(event):
            yield f"event {event.id}: another runner wrote while that of the night {night} was at work"
        if event.kind in PLANS:
            night = event.night
        elif event.kind in ENDS:
            night = None
        before = event


def samples_lie_within_a_step(record: Record) -> Iterator[str]:
    """Every probe reading was taken while its step ran; of steps during which the clock was set, only that they ran."""
    spans: dict[tuple[str, int | None, str | None], list[tuple[datetime, datetime, bool]]] = {}
    started: dict[Key, StoredEvent] = {}
    for event in record.events:
        if event.kind == "step.started":
            started[key(event)] = event
        elif event.kind == "step.finished" and key(event) in started:
            first = started.pop(key(event))
            begin, end = written_at(first), written_at(event)
            awake_s = event.elapsed_s - first.elapsed_s
            same_runner = not by_runner_that_died(event) and lane(event) == 0
            sure = begin <= end and not (same_runner and abs((end - begin).total_seconds() - awake_s) > CLOCKS_AGREE_S)
            spans.setdefault((event.night, event.entry, event.step), []).append((begin, end, sure))
    for sample in record.samples:
        found = spans.get((sample.night, sample.entry, sample.step), [])
        if not any(not sure or begin <= sample.at <= end for begin, end, sure in found):
            where = f"e{sample.entry} {sample.step}"
            yield f"a reading of {sample.probe} at {sample.at.isoformat()} lies in no attempt of {where}"


def an_entry_is_one_machines_at_a_time(record: Record) -> Iterator[str]:
    """No entry has two open leases, no place of a machine two entries; what is written under a lease lies within it."""
    open_now: dict[int, StoredEvent] = {}
    for event in record.events:
        if event.kind == "lease.granted":
            place = (event.data["host"], event.data["slot"])
            for number, other in open_now.items():
                if (other.night, other.entry) == (event.night, event.entry):
                    yield f"event {event.id}: e{event.entry} is handed out while lease {number} of it is open"
                if (other.data["host"], other.data["slot"]) == place:
                    yield f"event {event.id}: {place[0]} gets e{event.entry} while it has e{other.entry}"
            open_now[event.id] = event
        elif event.kind in ("lease.renewed", "lease.ended"):
            number = int(event.data["lease"])
            if number not in open_now:
                yield f"event {event.id}: {event.kind} of lease {number}, which is not open"
            elif event.kind == "lease.ended":
                del open_now[number]
        elif event.kind != "delivery.late" and (number := lane(event)):
            granted = open_now.get(number)
            if granted is None or granted.entry != event.entry:
                yield f"event {event.id}: {event.kind} of e{event.entry} under lease {number}, which is not open for it"


def each_machines_words_come_once_and_in_order(record: Record) -> Iterator[str]:
    """What a machine wrote stands here in its order, nothing twice."""
    last: dict[str, int] = {}
    for event in record.events:
        origin = event.data.get("origin") or {}
        if "seq" in origin:
            if origin["seq"] <= last.get(origin["outbox"], 0):
                yield f"event {event.id}: event {origin['seq']} of {origin['host']} comes behind a later one"
            last[origin["outbox"]] = origin["seq"]


def nothing_is_lost(record: Record) -> Iterator[str]:
    """A night that finished has a final word on every entry it was to run, and counts the complete ones rightly."""
    for night in record.nights:
        events = record.of(night)
        plan = next(event for event in reversed(events) if event.kind in PLANS)
        end = next((event for event in reversed(events) if event.kind in ENDS), None)
        if end is None or end.id < plan.id or end.kind != "night.finished":
            continue
        stands = last_words(events)
        if end.data["total"] != len(planned(plan)):
            yield f"event {end.id}: {end.data['total']} entries are counted, {len(planned(plan))} planned"
        complete = 0
        for entry, steps in planned(plan).items():
            words = [stands.get((entry, step["name"]), "nothing") for step in steps]
            complete += all(word == "ok" for word in words)
            chosen = plan.data.get("only") is None or entry in plan.data["only"]
            if chosen and not end.data.get("stopped") and not _final(words, entry, plan, events):
                yield f"event {end.id}: the night finished, and e{entry} stands at {', '.join(words)}"
        if end.data["complete"] != complete:
            yield f"event {end.id}: {end.data['complete']} entries are counted as complete, {complete} are"


def last_words(events: Sequence[StoredEvent]) -> dict[tuple[int, str], str]:
    """How each step stands by its last word: running, skipped, gave_up or how its last attempt ended."""
    stands: dict[tuple[int, str], str] = {}
    for event in events:
        if event.kind in WORDS and event.entry is not None and event.step is not None:
            skipped = "gave_up" if event.data.get("gave_up") else "skipped"
            word = {"step.started": "running", "step.skipped": skipped}.get(event.kind) or event.data["status"]
            stands[event.entry, event.step] = word
    return stands


def _final(words: Sequence[str], entry: int, plan: StoredEvent, events: Sequence[StoredEvent]) -> bool:
    halt = next((word for word in words if word != "ok"), "ok")
    if halt in ("ok", "failed", "timeout", "stalled", "skipped", "gave_up"):
        return True
    # The deadline left it, or the entry itself failed before its step could start.
    told = [event for event in events if event.entry == entry and event.id > plan.id]
    return any(
        event.kind == "step.deferred"
        or (event.kind == "entry.finished" and event.data["status"] in ("failed", "skipped", "gave_up"))
        for event in told
    )


LAWS: Mapping[str, Law] = {
    law.__name__.replace("_", " "): law
    for law in (
        the_chain_is_whole,
        every_start_has_one_end,
        a_process_is_recorded_between_start_and_end,
        attempts_count_up_from_one,
        what_is_ok_does_not_run_again,
        a_step_builds_on_an_ok_one,
        one_thing_at_a_time,
        a_baseline_comes_first,
        one_writer_at_a_time,
        samples_lie_within_a_step,
        an_entry_is_one_machines_at_a_time,
        each_machines_words_come_once_and_in_order,
        nothing_is_lost,
    )
}
"""Every law over the events, by its name."""


def broken(record: Record, laws: Mapping[str, Law] = LAWS) -> dict[str, list[str]]:
    """The laws that do not hold, each with where and how."""
    found = {name: list(law(record)) for name, law in laws.items()}
    return {name: breaches for name, breaches in found.items() if breaches}


def main() -> int:
    """Check one journal and what lies beside it."""
    from bench.laws_of_files import LAWS_OF_FILES

    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if "--help" in sys.argv else 2
    laws = {**LAWS, **LAWS_OF_FILES}
    found = broken(read(Path(sys.argv[1])), laws)
    for name in laws:
        print(f"{'BROKEN' if name in found else 'holds '}  {name}")
        for breach in found.get(name, ()):
            print(f"        {breach}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
