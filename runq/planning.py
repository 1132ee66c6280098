"""What a night will run: the queue as it is now, joined with what the journal and the bundles say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runq import artifacts
from runq.identity import identity_of, step_parts
from runq.prepared import PreparedEntry, PreparedQueue
from runq.resume import EntryMark, PastStep, StepDecision, decide, number_entries, second_round, unchanged
from runq.retries import set_aside
from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from runq_journal.reader import JournalReader
    from runq_schemas.event_parts import PlannedEntry


@attrs.frozen(kw_only=True)
class Work:
    """One entry of the file, with its number in the night and what is to be done.

    ``gave_up`` says why it is set aside, and is empty when it is not; ``told`` whether the journal says so already, and
    ``lifted`` whether deaths of the runner no longer count against it.
    """

    prepared: PreparedEntry
    identities: Mapping[str, str | None]
    past: Mapping[str, PastStep]
    decisions: tuple[StepDecision, ...]
    selected: bool
    gave_up: str = ""
    told: bool = False
    lifted: bool = False

    @property
    def runs(self) -> bool:
        """Whether any step of it runs this time."""
        return self.selected and not self.gave_up and any(decision.run for decision in self.decisions)

    @property
    def to_tell(self) -> bool:
        """Whether it is set aside and the journal does not say so yet."""
        return self.selected and bool(self.gave_up) and not self.told

    def planned(self) -> PlannedEntry:
        """The entry as `night.started` records it."""
        from runq_schemas.event_parts import PlannedEntry, PlannedStep

        spec = self.prepared.spec
        return PlannedEntry(
            id=self.prepared.entry.id,
            index=spec.index,
            model=spec.model.canonical(),
            config=spec.config,
            pack=spec.pack,
            judge_config=spec.judge_config,
            judge_model=spec.judge_model,
            steps=tuple(
                PlannedStep(
                    name=d.step,
                    identity=self.identities[d.step] or "",
                    run=d.run and self.runs,
                    why=self.why(d),
                )
                for d in self.decisions
            ),
            settings=self.prepared.settings(),
        )

    def why(self, decision: StepDecision) -> str:
        """Why a step of it runs or does not."""
        if not self.selected:
            return "not selected by --only"
        return self.gave_up if self.gave_up and decision.run else decision.why


def fresh(queue: PreparedQueue, *, only: frozenset[int] | None = None) -> tuple[Work, ...]:
    """The work of a new night: everything, numbered by position."""
    return _works(queue, list(range(len(queue.entries))), {}, only, {})


def resumed(
    queue: PreparedQueue,
    reader: JournalReader,
    night: str,
    *,
    only: frozenset[int] | None = None,
    forced: Mapping[int, frozenset[str]] | None = None,
    lift: bool = False,
    dead: bool = False,
) -> tuple[Work, ...]:
    """The work that is left of a night, entries recognised by content.

    Args:
        only: entry ids to run.
        forced: per entry id, steps to run again although they are done.
        lift: run entries too that were set aside because the runner died while they ran.
        dead: no runner lives; one that has no end in the journal has died, although no later start has said so yet.
    """
    marks: dict[int, EntryMark] = {}
    for plan in reader.plans(night):
        for entry in plan["entries"]:
            key = (entry["config"] or "", entry["pack"] or "", entry["model"]["id"])
            first = entry["steps"][0]["identity"] or None
            marks[entry["id"]] = EntryMark(key=key, identity=first)
    past = _past(reader, night)
    for number, steps in past.items():
        # What really ran says more than what was planned: a pack may have been edited in between.
        ran = next((step.identity for step in steps.values() if step.identity), None)
        if number in marks and ran is not None:
            marks[number] = attrs.evolve(marks[number], identity=ran)
    now = [EntryMark(key=p.spec.key, identity=_identities(p)[1][p.steps[0].name]) for p in queue.entries]
    works = _works(queue, number_entries(now, marks), past, only, forced or {})
    deaths = reader.deaths(night)
    if dead and (last := reader.open_entry(night)) is not None:
        deaths[last] = deaths.get(last, 0) + 1
    told = {row["entry"] for row in reader.entry_results(night) if row["status"] == "gave_up"} if deaths else set()
    return tuple(_weighed(work, deaths.get(work.prepared.entry.id, 0), told, forced or {}, lift) for work in works)


def _weighed(work: Work, deaths: int, told: Collection[int], forced: Mapping[int, frozenset[str]], lift: bool) -> Work:
    """The work, set aside where the runner died too often while it ran.

    An entry that is not what it was when it killed the runner gets its turn.
    """
    number = work.prepared.entry.id
    if not deaths or not work.runs:
        return work
    if lift or number in forced:
        return attrs.evolve(work, lifted=True)
    if not unchanged(work.identities, work.past):
        return work
    return attrs.evolve(work, gave_up=set_aside(deaths), told=number in told)


def once_more(work: Work, reader: JournalReader, night: str) -> Work:
    """The work of an entry whose turn comes again in the same night."""
    past = _past(reader, night).get(work.prepared.entry.id, {})
    steps = [step.name for step in work.prepared.steps]
    return attrs.evolve(work, past=past, decisions=tuple(second_round(steps, past)))


def after_turn(work: Work, reader: JournalReader, night: str, steps: Collection[str]) -> Work | None:
    """The work of an entry whose earlier steps ran in a turn before: of ``steps`` what it runs, of the others nothing.

    Returns:
        ``None`` when a step before them is not ok: then they are skipped already, or left for another time.
    """
    past = _past(reader, night).get(work.prepared.entry.id, {})
    for decision in work.decisions:
        if decision.step in steps:
            break
        if decision.step not in past or past[decision.step].status != "ok":
            return None
    decisions = tuple(d if d.step in steps else attrs.evolve(d, run=False) for d in work.decisions)
    return attrs.evolve(work, past=past, decisions=decisions)


def _works(
    queue: PreparedQueue,
    numbers: list[int],
    past: Mapping[int, Mapping[str, PastStep]],
    only: frozenset[int] | None,
    forced: Mapping[int, frozenset[str]],
) -> tuple[Work, ...]:
    unknown = sorted((only or frozenset()) - set(numbers))
    if unknown:
        raise UsageError(
            f"there is no entry e{unknown[0]}",
            remedy=f"entries are {', '.join(f'e{n}' for n in sorted(numbers))}",
        )
    works: list[Work] = []
    for prepared, number in zip(queue.entries, numbers, strict=True):
        parts, identities = _identities(prepared)
        steps = past.get(number, {})
        works.append(
            Work(
                prepared=attrs.evolve(prepared, entry=attrs.evolve(prepared.entry, id=number)),
                identities=identities,
                past=steps,
                decisions=tuple(
                    decide(
                        [step.name for step in prepared.steps],
                        parts,
                        identities,
                        steps,
                        damage=lambda last: artifacts.damage(last.bundle, last.artifacts),
                        forced=forced.get(number, frozenset()),
                    )
                ),
                selected=only is None or number in only,
            )
        )
    return tuple(works)


def _identities(prepared: PreparedEntry) -> tuple[dict[str, dict[str, Any]], dict[str, str | None]]:
    parts: dict[str, dict[str, Any]] = {}
    identities: dict[str, str | None] = {}
    predecessor: str | None = None
    for step in prepared.steps:
        try:
            parts[step.name] = step_parts(
                harness=prepared.spec.harness.name,
                step=step,
                model=prepared.entry.model,
                predecessor=predecessor,
            )
        except OSError:  # the entry will fail when it runs, with the file's name
            identities.update(dict.fromkeys([s.name for s in prepared.steps if s.name not in identities]))
            break
        identities[step.name] = predecessor = identity_of(parts[step.name])
    return parts, identities


def _past(reader: JournalReader, night: str) -> dict[int, dict[str, PastStep]]:
    """The last word on every step of a night, by entry id."""
    past: dict[int, dict[str, PastStep]] = {}
    for row in reader.step_evidence(night):
        past.setdefault(row["entry"], {})[row["step"]] = PastStep(
            status=row["status"],
            reason=row["reason"] or "",
            attempts=row["attempt"],
            identity=row["identity"],
            identity_parts=row["identity_parts"] or {},
            bundle=row["bundle"],
            artifacts=tuple(row["artifacts"] or ()),
            outputs=tuple(row["outputs"] or ()),
            started_event=row["started_event"],
            finished_event=row["finished_event"],
        )
    return past


def nights_of(reader: JournalReader, queue: PreparedQueue) -> list[str]:
    """The nights of this queue file, newest first.

    The same file under any spelling of its path; or the same content, where the file of the night is gone: it was
    renamed or moved.
    """
    return [row["night"] for row in reader.nights() if _same_queue(row, queue, moved=True)]


def _same_queue(row: Mapping[str, Any], queue: PreparedQueue, *, moved: bool) -> bool:
    recorded = Path(row["queue_path"])
    if recorded.resolve() == queue.spec.path.resolve():
        return True
    return not recorded.exists() and (not moved or row["queue_sha256"] == queue.spec.sha256)


def night_to_resume(reader: JournalReader, queue: PreparedQueue, asked: str | None, runs: Path) -> str:
    """The night a resume continues: the one asked for (by id or folder), else the latest that has work left.

    Files and bundles as they are now count for the latest night only; an older one has work left when its journal says
    so. Edited packs and archived bundles must not wake every complete night there ever was. Where none has work left,
    the latest: the caller finds that nothing is left.

    Raises:
        UsageError: there is no such night, or it is another queue's.
    """
    if asked is not None:
        return _asked_night(reader, queue, asked, runs)
    mine = nights_of(reader, queue)
    if not mine:
        raise UsageError(
            f"the journal in {runs} has no night of {queue.spec.path}", remedy="start one without --resume"
        )
    latest, *older = mine
    if left(resumed(queue, reader, latest)):
        return latest
    return next((night for night in older if reader.todo(night)), latest)


def _asked_night(reader: JournalReader, queue: PreparedQueue, asked: str, runs: Path) -> str:
    wanted = Path(asked).name.removesuffix("_queue")
    rows = {row["night"]: row for row in reader.nights()}
    if wanted not in rows:
        known = ", ".join(list(rows)[:5])
        raise UsageError(
            f"the journal in {runs} has no night {asked!r}",
            remedy=f"nights are {known}; `runq nights` lists all" if rows else "start one without --resume",
        )
    if not _same_queue(rows[wanted], queue, moved=False):
        raise UsageError(
            f"the night {wanted} is of another queue file, {rows[wanted]['queue_path']}",
            remedy="give that file, or leave out --night",
        )
    return wanted


def left(works: Iterable[Work]) -> bool:
    """Whether anything is left to run, or to be set aside."""
    return any(work.runs or work.to_tell for work in works)
