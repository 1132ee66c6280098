"""Memory readings while a step runs: the peak per probe, and rows for the journal's samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

import attrs

from runq_schemas.errors import JournalError

if TYPE_CHECKING:
    from runq_journal import Sample
    from runq_journal.journal import Journal

SAMPLE_EVERY_S = 1.0
"""Often enough to see a model load, seldom enough to cost nothing: a reading takes well below a millisecond."""

BATCH_ROWS = 60
"""Rows kept back before they go to the journal in one commit: a minute of one probe."""

MOST_ROWS = 10_000
"""Rows kept while the journal does not take them: hours of one probe, and below a megabyte."""

Keep = Callable[[datetime, str, float], None]
"""Takes a reading: UTC time, probe, MB."""


class ReadsMemory(Protocol):
    """A probe, or what stands between a probe and the night."""

    def read_mb(self) -> float:
        """The figure now, in MB."""
        ...


@attrs.define
class SampleBatch:
    """The readings of a night that are not in the journal yet, whatever step they belong to.

    A step that is over in no time must not cost a commit for its two readings.
    """

    journal: Journal
    night: str
    _rows: list[Sample] = attrs.field(factory=list, init=False)
    _wait_for: int = attrs.field(default=BATCH_ROWS, init=False)

    def of(self, entry: int, step: str) -> Keep:
        """Where the readings of a step go."""
        from runq_journal import Sample

        def keep(at: datetime, probe: str, mb: float) -> None:
            self._rows.append(Sample(night=self.night, at=at, entry=entry, step=step, probe=probe, mb=mb))
            if len(self._rows) >= self._wait_for:
                self.flush()

        return keep

    def flush(self) -> None:
        """Write the rows kept back.

        Where the journal does not take them now, because another program holds it or the disk is full, they are kept
        for the next time: readings are no reason to end a step. Of those that wait too long the oldest go.
        """
        if not self._rows:
            return
        try:
            self.journal.add_samples(self._rows)
        except JournalError:
            del self._rows[:-MOST_ROWS]
            self._wait_for = len(self._rows) + BATCH_ROWS  # not at every reading: each try waits for the lock
            return
        self._rows, self._wait_for = [], BATCH_ROWS


@attrs.define
class Sampler:
    """Reads the probes of an entry; a probe that fails is left out and its error kept."""

    probes: Mapping[str, ReadsMemory]
    now: Callable[[], datetime]
    keep: Keep
    peak_mb: dict[str, float] = attrs.field(factory=dict, init=False)
    latest_mb: dict[str, float] = attrs.field(factory=dict, init=False)
    errors: dict[str, str] = attrs.field(factory=dict, init=False)

    def read(self) -> float | None:
        """Take one reading of every probe. Returns the first probe's, in MB."""
        at = self.now()
        for label, probe in self.probes.items():
            if label in self.errors:
                continue
            try:
                mb = float(probe.read_mb())
            except (Exception, SystemExit) as error:  # a probe is a plugin; its failure costs a figure, never a step
                self.errors[label] = f"{type(error).__name__}: {error}"
                continue
            if not math.isfinite(mb):  # the journal, and JSON, have no such number
                self.errors[label] = f"it read {mb}"
                continue
            self.latest_mb[label] = mb
            self.peak_mb[label] = max(mb, self.peak_mb.get(label, mb))
            self.keep(at, label, mb)
        return next(iter(self.latest_mb.values()), None)

    def delta_mb(self, baseline_mb: Mapping[str, float]) -> dict[str, float]:
        """Per probe: peak minus baseline, where both are known."""
        return {
            label: round(peak - baseline_mb[label], 1) for label, peak in self.peak_mb.items() if label in baseline_mb
        }
