"""Waits on a real llama.cpp router, recorded by `bench.record_traces` every 20 ms, in the shape of simulated ones."""

from __future__ import annotations

import bisect
import csv
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import attrs

TRACES = Path(__file__).parent / "traces"
STARTS = 25
"""Waits per recording, each beginning a little later, so that the polls fall differently."""

APART_S = 0.07

Knowledge = Literal["reference", "word", "both", "neither"]


FALL_MB, FALL_MS = 50.0, 1000
"""A process that ends has no resident set any more while the kernel still takes its pages back: up to a second on a
busy machine."""


def at_rest(rows: Sequence[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """The machine's and the held memory of all rows (ms, machine MB, held MB) but those right after a fall."""
    falls = [at for (_, _, was), (at, _, now) in itertools.pairwise(rows) if was - now > FALL_MB]
    return [(machine, held) for at, machine, held in rows if not any(0 <= at - fall <= FALL_MS for fall in falls)]


@attrs.frozen(kw_only=True)
class Recording:
    """Seconds since its start, the machine's memory, what the router's workers hold, and whether one is there."""

    name: str
    level: float
    at: tuple[float, ...]
    machine_mb: tuple[float, ...]
    held: tuple[float, ...]
    there: tuple[bool, ...]

    def index(self, at: float) -> int:
        """The last row at or before a second; the last of all for ever after."""
        return max(0, bisect.bisect_right(self.at, at) - 1)


@attrs.frozen(kw_only=True)
class RecordedTrace:
    """A wait that begins ``start_s`` into a recording."""

    recording: Recording
    knowledge: Knowledge
    start_s: float
    epsilon_mb: float

    @property
    def family(self) -> str:
        return f"real: {self.recording.name}"

    def held_mb(self, at: float) -> float:
        return self.recording.held[self.recording.index(self.start_s + at)]

    def reading_mb(self, at: float) -> float:
        return self.recording.machine_mb[self.recording.index(self.start_s + at)]

    @property
    def reference_mb(self) -> float | None:
        return self.recording.level if self.knowledge in {"reference", "both"} else None

    def word(self, at: float) -> list[str] | None:
        if self.knowledge in {"reference", "neither"}:
            return None
        return ["model"] if self.recording.there[self.recording.index(self.start_s + at)] else []

    @property
    def reference_at_level(self) -> bool:
        """Whether the rest of the machine stayed where the reference says, within epsilon."""
        recording = self.recording
        ms = [at * 1000 for at in recording.at]
        rest = at_rest(list(zip(ms, recording.machine_mb, recording.held, strict=True)))
        return self.reference_mb is not None and all(
            abs(machine - held - self.recording.level) <= self.epsilon_mb for machine, held in rest
        )

    @property
    def knowable(self) -> bool:
        return self.reference_at_level or self.knowledge in {"word", "both"}

    @property
    def ready_at(self) -> float | None:
        first = self.recording.index(self.start_s)
        held = self.recording.held[first:]
        above = [number for number, mb in enumerate(held) if mb > self.epsilon_mb]
        if above and above[-1] == len(held) - 1:
            return None
        return self.recording.at[first + above[-1] + 1] - self.start_s if above else 0.0


def recordings(folder: Path = TRACES) -> list[Recording]:
    """Every recording of the folder, by name."""
    found = []
    for file in sorted(folder.glob("*.csv")):
        with file.open(newline="") as stream:
            (*_, told), *rows = csv.reader(stream)
        found.append(
            Recording(
                name=file.stem,
                level=float(told.removeprefix("reference_mb=")),
                at=tuple(int(row[0]) / 1000 for row in rows),
                machine_mb=tuple(float(row[1]) for row in rows),
                held=tuple(float(row[2]) for row in rows),
                there=tuple(row[3] == "1" for row in rows),
            )
        )
    return found


def recorded_traces(epsilon_mb: float, folder: Path = TRACES) -> Iterator[RecordedTrace]:
    """Waits on every recording, with every knowledge."""
    kinds: tuple[Knowledge, ...] = ("reference", "word", "both", "neither")
    for recording in recordings(folder):
        for knowledge in kinds:
            for number in range(STARTS):
                yield RecordedTrace(
                    recording=recording, knowledge=knowledge, start_s=number * APART_S, epsilon_mb=epsilon_mb
                )
