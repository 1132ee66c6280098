"""`python -m bench.settle`: the settle rule against its ancestor's, on labelled traces in simulated time.

Each trace knows the truth: what the model still holds at any moment, what other programs use, and when a
perfect observer could have taken the baseline. A rule sees the readings only, ours also what the night knows:
the reference and the backend's word. Two faults count: a *dirty accept* (the model still held more than
epsilon when memory was called back) and a *clean refused* (memory was back and the wait still ended without
`settled`). The excess wait is the time from the perfect observer's moment to the rule's, over clean accepts.

Where the truth can be known, because the reference stands at the level of the other programs or because the
backend speaks the truth, our rule must make neither fault. Where it cannot, nobody can promise that; the
table shows those rows too, where no level may be called proven. One coincidence is left out of them, since nothing
that sees readings only could tell it from a release: others that gave back just what the model still holds.

Waits on a real llama.cpp router, recorded every 20 ms (`bench.record_traces`), join the simulated ones: the rows that
begin with "real". Exits 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import itertools
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import attrs

from bench.recorded import RecordedTrace, recorded_traces
from runq.settle import SettleOutcome, wait_until_settled
from runq_schemas.queue import SettleSpec

SETTLE = SettleSpec()  # touchstone's defaults
NOISE_CELL_S = 0.5  # other programs' allocations change this often
BLUR = 2.0
"""Epsilons within which two levels may be taken for the same: one and a half, and the noise."""

MAX_EXCESS_WITH_REFERENCE_S = 4.0  # two readings at 2 s, after up to one interval
MAX_EXCESS_WITHOUT_S = 8.5  # a window of 6 s, after up to one interval, and half a second of luck

Knowledge = Literal["reference", "word", "both", "neither"]
KNOWLEDGE: tuple[Knowledge, ...] = ("reference", "word", "both", "neither")


@attrs.frozen(kw_only=True)
class Trace:
    """One labelled wait.

    ``held`` is a list of (from second, MB still held), falling linearly between two points of equal or
    different height. ``others`` is the same for the other programs; ``noise`` is what they add on top, never
    negative, so that ``level``, theirs at rest when the reference was taken, is the reference.
    """

    family: str
    knowledge: Knowledge
    level: float
    held: tuple[tuple[float, float], ...]
    others: tuple[tuple[float, float], ...]
    noise: tuple[float, ...]
    word_lag_s: float
    word_gone_mb: float

    def held_mb(self, at: float) -> float:
        return _between(self.held, at)

    def reading_mb(self, at: float) -> float:
        noise = self.noise[min(int(at / NOISE_CELL_S), len(self.noise) - 1)]
        return _between(self.others, at) + self.held_mb(at) + noise

    @property
    def reference_mb(self) -> float | None:
        return self.level if self.knowledge in {"reference", "both"} else None

    def word(self, at: float) -> list[str] | None:
        """The truth, a little late: the model is named until what it holds is at most ``word_gone_mb``."""
        if self.knowledge in {"reference", "neither"}:
            return None
        return ["model"] if self.held_mb(max(0.0, at - self.word_lag_s)) > self.word_gone_mb else []

    @property
    def reference_at_level(self) -> bool:
        return self.reference_mb is not None and {mb for _, mb in self.others} == {self.level}

    @property
    def knowable(self) -> bool:
        return self.reference_at_level or self.knowledge in {"word", "both"}

    @property
    def looks_released(self) -> bool:
        """Whether what is held at any rest makes up for what the others gave back: just what a release looks like."""
        return any(abs(self.others[-1][1] + mb - self.level) <= BLUR * SETTLE.epsilon_mb for _, mb in self.held if mb)

    @property
    def ready_at(self) -> float | None:
        """When at most epsilon is held for good and the other programs have stopped moving; None: never."""
        if self.held[-1][1] > SETTLE.epsilon_mb:
            return None
        moved = [at for at, mb in self.others if mb != self.others[0][1]]
        return max(_falls_below(self.held, SETTLE.epsilon_mb), *moved, 0.0)


def _between(points: Sequence[tuple[float, float]], at: float) -> float:
    before = points[0]
    for point in points:
        if point[0] > at:
            share = (at - before[0]) / (point[0] - before[0])
            return before[1] + share * (point[1] - before[1])
        before = point
    return before[1]


def _falls_below(points: Sequence[tuple[float, float]], level: float) -> float:
    """When a falling line reaches the level."""
    before = points[0]
    for at, mb in points:
        if mb <= level:
            drop = before[1] - mb
            return at if drop <= 0 else before[0] + (before[1] - level) / drop * (at - before[0])
        before = (at, mb)
    raise ValueError("never")


# --- the families -------------------------------------------------------------------------------------------

Points = tuple[tuple[float, float], ...]
QUICK_S = 0.2  # how long a real server takes to give 1.5 GB back


def _drop(mb: float, at: float) -> Points:
    return ((0.0, mb), (at, mb), (at + QUICK_S, 0.0))


def _at_once(rng: random.Random, mb: float) -> Points:
    return _drop(mb, rng.uniform(0.001, 0.3))


def _late(rng: random.Random, mb: float) -> Points:
    return _drop(mb, rng.uniform(2, 80))


def _slowly(rng: random.Random, mb: float) -> Points:
    # 25 MB/s is 50 MB a poll: well below epsilon between two readings. Ended by 85 s, so that time is left.
    rate = max(mb / 80, 25 * 24 ** rng.random())
    start = rng.uniform(0.001, 3)
    return ((0.0, mb), (start, mb), (start + mb / rate, 0.0))


def _in_stages(rng: random.Random, mb: float) -> Points:
    stages = rng.randint(2, 5)
    points, at = [(0.0, mb)], 0.0
    for stage in range(1, stages + 1):
        at += rng.uniform(3, 16)
        points += [(at, points[-1][1]), (at + QUICK_S, mb * (stages - stage) / stages)]
    return tuple(points)


def _never(_rng: random.Random, mb: float) -> Points:
    return ((0.0, mb),)


def _half(rng: random.Random, mb: float) -> Points:
    at = rng.uniform(0.001, 20)
    return ((0.0, mb), (at, mb), (at + QUICK_S, mb / 2))


def _nothing(_rng: random.Random, _mb: float) -> Points:
    return ((0.0, 0.0),)


def _any(rng: random.Random, mb: float) -> Points:
    return rng.choice([_at_once, _late, _slowly, _in_stages, _never, _half, _nothing])(rng, mb)


def _still(_rng: random.Random, level: float) -> Points:
    return ((0.0, level),)


def _once_or_late(rng: random.Random, mb: float) -> Points:
    return rng.choice([_at_once, _late])(rng, mb)


def _grow(rng: random.Random, level: float) -> Points:
    start, took = rng.uniform(0.001, 2), rng.uniform(0.2, 8)
    return ((0.0, level), (start, level), (start + took, level + _taken(rng)))


def _had_grown(rng: random.Random, level: float) -> Points:
    return ((0.0, level + _taken(rng)),)


def _taken(rng: random.Random) -> float:
    return rng.uniform(400, 4000)


def _shrink(rng: random.Random, level: float) -> Points:
    start, took = rng.uniform(0.001, 2), rng.uniform(0.2, 8)
    return ((0.0, level), (start, level), (start + took, level - _given_back(rng)))


def _had_shrunk(rng: random.Random, level: float) -> Points:
    return ((0.0, level - _given_back(rng)),)


def _given_back(rng: random.Random) -> float:
    return rng.uniform(400, 1900)


@attrs.frozen
class Family:
    name: str
    held: Callable[[random.Random, float], Points]
    others: Callable[[random.Random, float], Points] = _still
    noise_mb: tuple[float, float] = (0.0, 60.0)
    knowledge: tuple[Knowledge, ...] = KNOWLEDGE


FAMILIES = (
    Family("back at once", _at_once),
    Family("back late", _late),
    Family("back slowly", _slowly),
    Family("back in stages", _in_stages),
    Family("noisy neighbour", _any, noise_mb=(100.0, 300.0)),  # half an epsilon to one and a half
    Family("never back", _never),
    Family("half back", _half),
    Family("nothing was loaded", _nothing),
    Family("first entry", _any, knowledge=("word", "neither")),
    Family("others grow", _once_or_late, others=_grow, knowledge=("word", "both", "neither")),
    Family("others grow, never back", _never, others=_grow, knowledge=("word", "both", "neither")),
    Family("others had grown", _once_or_late, others=_had_grown),
    Family("others had grown, never back", _never, others=_had_grown),
    Family("others shrink", _once_or_late, others=_shrink, knowledge=("word", "both", "neither")),
    Family("others shrink, never back", _never, others=_shrink, knowledge=("word", "both", "neither")),
    Family("others had shrunk", _once_or_late, others=_had_shrunk),
    Family("others had shrunk, never back", _never, others=_had_shrunk),
)


def traces(per_row: int, seed: int) -> Iterator[Trace]:
    cells = int(SETTLE.timeout_s / NOISE_CELL_S) + 2
    for family in FAMILIES:
        for knowledge in family.knowledge:
            rng = random.Random(f"{seed} {family.name} {knowledge}")
            drawn = 0
            while drawn < per_row:
                amplitude = rng.uniform(*family.noise_mb)
                level = rng.uniform(2000, 12000)
                trace = Trace(
                    family=family.name,
                    knowledge=knowledge,
                    level=level,
                    held=family.held(rng, 600 * 40 ** rng.random()),  # 0.6 to 24 GB
                    others=family.others(rng, level),
                    noise=tuple(rng.uniform(0, amplitude) for _ in range(cells)),
                    word_lag_s=rng.uniform(0, 1),
                    word_gone_mb=rng.uniform(0, SETTLE.epsilon_mb),
                )
                if knowledge == "reference" and family.others is _had_shrunk and trace.looks_released:
                    continue
                drawn += 1
                yield trace


# --- the rules ----------------------------------------------------------------------------------------------


def ancestor(trace: Trace | RecordedTrace) -> float | None:
    """When touchstone's rule accepts: so many neighbouring readings in a row closer than epsilon."""
    at, before, in_a_row = 0.0, trace.reading_mb(0.0), 0
    while at < SETTLE.timeout_s:
        at += SETTLE.poll_interval_s
        now = trace.reading_mb(at)
        in_a_row = in_a_row + 1 if abs(now - before) < SETTLE.epsilon_mb else 0
        if in_a_row >= SETTLE.plateau_polls:
            return at
        before = now
    return None


def ours(trace: Trace | RecordedTrace) -> SettleOutcome:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    return wait_until_settled(
        lambda: trace.reading_mb(now),
        settle=SETTLE,
        reference_mb=trace.reference_mb,
        loaded=lambda: trace.word(now),
        sleep=sleep,
        clock=lambda: now,
    )


@attrs.define
class Score:
    """What one rule did with the traces of one row."""

    dirty_accepts: int = 0
    clean_refused: int = 0
    excess_s: list[float] = attrs.field(factory=list)

    def add(self, trace: Trace | RecordedTrace, accepted_at: float | None) -> None:
        ready_at = trace.ready_at
        if accepted_at is None:
            self.clean_refused += ready_at is not None
        elif trace.held_mb(accepted_at) > SETTLE.epsilon_mb:
            self.dirty_accepts += 1
        elif ready_at is not None:
            self.excess_s.append(max(0.0, accepted_at - ready_at))

    @property
    def median_excess_s(self) -> float | None:
        return statistics.median(self.excess_s) if self.excess_s else None


@attrs.define
class Row:
    family: str
    knowledge: Knowledge
    knowable: bool
    reference_at_level: bool
    traces: int = 0
    proven: int = 0
    proven_dirty: int = 0
    ancestor: Score = attrs.field(factory=Score)
    ours: Score = attrs.field(factory=Score)


def run(per_row: int = 100, seed: int = 1) -> list[Row]:
    rows: dict[tuple[str, str], Row] = {}
    for trace in itertools.chain(traces(per_row, seed), recorded_traces(SETTLE.epsilon_mb)):
        row = rows.setdefault(
            (trace.family, trace.knowledge),
            Row(trace.family, trace.knowledge, trace.knowable, trace.reference_at_level),
        )
        outcome = ours(trace)
        row.traces += 1
        row.proven += outcome.proven
        row.proven_dirty += outcome.proven and trace.held_mb(outcome.waited_s) > SETTLE.epsilon_mb
        row.ancestor.add(trace, ancestor(trace))
        row.ours.add(trace, outcome.waited_s if outcome.status == "settled" else None)
    return list(rows.values())


def broken_promises(rows: Sequence[Row]) -> list[str]:
    """Each promise of the rule that the rows contradict, in words."""
    broken = []
    for row in rows:
        name = f"{row.family} ({row.knowledge})"
        if not row.knowable:
            if row.proven:
                broken.append(f"{name}: {row.proven} proven where the truth cannot be known")
            continue
        if row.ours.dirty_accepts:
            broken.append(f"{name}: {row.ours.dirty_accepts} dirty accepts")
        if row.ours.clean_refused:
            broken.append(f"{name}: {row.ours.clean_refused} clean refused")
        limit = MAX_EXCESS_WITH_REFERENCE_S if row.reference_at_level else MAX_EXCESS_WITHOUT_S
        excess = row.ours.median_excess_s
        if excess is not None and excess > limit:
            broken.append(f"{name}: median excess wait {excess:.1f} s, more than {limit} s")
    return broken


def table(rows: Sequence[Row]) -> str:
    def score(score: Score) -> str:
        median = score.median_excess_s
        return f"{score.dirty_accepts:5} {score.clean_refused:7} {'-' if median is None else f'{median:.1f}':>6}"

    width = 31
    lines = [
        f"{'':{width}}{'':11}{'':8} | {'ancestor':^20} | {'runq':^20} |",
        f"{'family':{width}}{'knows':11}{'traces':>8} | {'dirty refused excess':20} | "
        f"{'dirty refused excess':20} | proven, of it dirty",
    ]
    for knowable in (True, False):
        some = [row for row in rows if row.knowable is knowable]
        title = "the truth can be known" if knowable else "the truth cannot be known: none may be proven"
        lines += [f"-- {title}"]
        lines += [
            f"{row.family:{width}}{row.knowledge:11}{row.traces:8} | {score(row.ancestor)} | "
            f"{score(row.ours)} | {row.proven:6} {row.proven_dirty:6}"
            for row in some
        ]
        total = Row("all", "both", knowable, False)
        for row in some:
            total.traces += row.traces
            total.proven += row.proven
            total.proven_dirty += row.proven_dirty
            for whole, part in ((total.ancestor, row.ancestor), (total.ours, row.ours)):
                whole.dirty_accepts += part.dirty_accepts
                whole.clean_refused += part.clean_refused
                whole.excess_s += part.excess_s
        lines += [
            f"{'all':{width + 11}}{total.traces:8} | {score(total.ancestor)} | {score(total.ours)} | "
            f"{total.proven:6} {total.proven_dirty:6}"
        ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the settle rule with its ancestor's on labelled traces.")
    parser.add_argument("--per-row", type=int, default=100, help="traces per family and knowledge (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the traces (default 1)")
    arguments = parser.parse_args()
    rows = run(arguments.per_row, arguments.seed)
    print(table(rows))
    broken = broken_promises(rows)
    for line in broken:
        print(f"BROKEN: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
