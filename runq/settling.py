"""Waiting until memory is back, on all probes of an entry at once, and what comes of it for the journal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from runq.bounded_probe import BoundedProbe
from runq.prepared import PreparedEntry
from runq.settle import settle_together
from runq_schemas.errors import JournalError, RunqError
from runq_schemas.events import SettledProbe, SettleFinished, SettleStarted, SettleStatus

if TYPE_CHECKING:
    from runq.night_context import NightContext


@attrs.define
class Settling:
    """One wait of one entry."""

    context: NightContext
    prepared: PreparedEntry
    started: float = attrs.field(init=False)
    latest: dict[str, float] = attrs.field(factory=dict, init=False)

    def finish(self, loaded: Callable[[], Sequence[str] | None]) -> tuple[SettleFinished, int]:
        """Wait and record. Returns the recorded event and its number.

        Args:
            loaded: the models still there; ``[]`` once their absence is proven, ``None`` when that cannot be told.
        """
        recorder, entry = self.context.recorder, self.prepared.entry.id
        references = self._references()
        recorder.event(SettleStarted(reference_mb=references), entry=entry)
        self.started = self.context.clock()
        outcomes = settle_together(
            {label: self._poll(label, probe) for label, probe in self.prepared.probes.items()},
            settle=self.prepared.spec.settle,
            references=references,
            loaded=loaded,
            failed=self._failed,
            sleep=self.context.interrupts.sleep,
            clock=self.context.clock,
        )
        settled = tuple(
            SettledProbe(
                probe=label,
                status=one.status,
                proven=one.proven,
                waited_s=round(one.waited_s, 3),
                start_mb=round(one.start_mb, 1),
                final_mb=round(one.final_mb, 1),
                polls=one.polls,
                reference_mb=references[label],
                still_loaded=one.still_loaded,
            )
            for label, one in outcomes.items()
        )
        finished = SettleFinished(
            status=_worst([one.status for one in settled]),
            proven=bool(settled) and all(one.proven for one in settled),
            waited_s=round(self.context.clock() - self.started, 3),
            baseline_mb={one.probe: one.final_mb for one in settled},
            probes=settled,
            free_mb=self._asked(
                self.prepared.probes,
                lambda probe: probe.read_free_mb(),
                needed=self.prepared.spec.min_free_mb is not None,
            ),
            pressure_percent=self._asked(
                {**self.prepared.probes, **self.prepared.pressure}, lambda probe: probe.read_pressure(), needed=True
            ),
        )
        return finished, recorder.event(finished, entry=entry)

    def _poll(self, label: str, probe: BoundedProbe) -> Callable[[], float]:
        first = next(iter(self.prepared.probes))

        def poll() -> float:
            reading = float(probe.read_mb())
            if not math.isfinite(reading):
                raise ValueError(f"it read {reading}")
            self.latest[label] = reading
            if label == first:
                self.context.recorder.tick(
                    entry=self.prepared.entry.id,
                    step="settle",
                    seconds=self.context.clock() - self.started,
                    memory_mb=reading,
                )
            return reading

        return poll

    def _failed(self, label: str, error: Exception | SystemExit) -> None:
        """A probe is a plugin; its failure costs its figure, never the entry."""
        if isinstance(error, JournalError):
            raise error
        self.context.recorder.warn(
            f"the probe {label!r} could not be read: {error}",
            "its figures are missing; choose another with `probes:`",
            entry=self.prepared.entry.id,
        )

    def _asked(
        self,
        probes: Mapping[str, BoundedProbe],
        question: Callable[[BoundedProbe], float | None],
        *,
        needed: bool,
    ) -> dict[str, float]:
        """What else the probes tell, rounded to a tenth; one that cannot is left out, with a word if it is needed."""
        told: dict[str, float] = {}
        for label, probe in probes.items():
            try:
                figure = question(probe)
            except (Exception, SystemExit) as error:  # a probe is a plugin; its failure costs a figure
                if needed:
                    message = error.message if isinstance(error, RunqError) else f"{type(error).__name__}: {error}"
                    self.context.recorder.warn(
                        f"the probe {label!r} could not tell more: {message}",
                        getattr(error, "remedy", ""),
                        entry=self.prepared.entry.id,
                    )
                continue
            if figure is not None and math.isfinite(figure):
                told[label] = round(float(figure), 1)
        return told

    def _references(self) -> dict[str, float | None]:
        """The last baseline of this night after a verified reset, in this boot, per probe."""
        with self.context.recorder.journal.reader() as reader:
            known = reader.references(self.context.recorder.night, self.context.boot_id)
        return {label: known.get(label) for label in self.prepared.probes}


def too_little_free(free_mb: Mapping[str, float], min_free_mb: float | None) -> str:
    """Why an entry may not start: the first probe that tells free memory tells too little. Empty when it may.

    The first probe is the one whose figures stand in summaries; another device's memory is no substitute for it.
    """
    if min_free_mb is None:
        return ""
    if not free_mb:
        return f"no probe could tell the free memory, of which min_free_mb asks for {min_free_mb:g} MB"
    label, mb = next(iter(free_mb.items()))
    if mb >= min_free_mb:
        return ""
    return f"only {mb:.0f} MB are free by the probe {label!r}, fewer than min_free_mb: {min_free_mb:g}"


def _worst(statuses: Sequence[SettleStatus]) -> SettleStatus:
    """The worst of several probes; ``timeout`` when none could be read."""
    if "dirty" in statuses:
        return "dirty"
    return "timeout" if "timeout" in statuses or not statuses else "settled"
