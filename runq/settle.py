"""When is memory back? One rule, pure apart from the effects it is given.

A plateau alone proves nothing: a model that was never released is the flattest plateau there is. So the
rule uses what the night knows beside the readings: the last proven baseline (the *reference*) and the reset
backend's word on what is still loaded.

============  ==================  ====================================================  ==========
reference     word                settled when                                          proven
============  ==================  ====================================================  ==========
given         not "loaded"        two consecutive readings near the reference           yes
any           absence proven      a whole flat window since absence was proven          yes
none          cannot be told      a whole flat window                                   no
given         cannot be told      a whole flat window below all that is near            no
given         cannot be told      never by a plateau above the reference
any           still loaded        never
============  ==================  ====================================================  ==========

A level far below the reference tells of other programs that let go of memory, and then the reference says no more
about the model: as much of it may be held as they gave back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    from runq_schemas.queue import SettleSpec

__all__ = ["SettleOutcome", "SettleStatus", "settle_together", "wait_until_settled"]

SettleStatus = Literal["settled", "dirty", "timeout"]

NEAR_EARLIER = 1.5
"""How many epsilons above or below the reference the earlier of two near readings may be.

It only has to show that the fall is over or nearly so; the later reading is the one that is trusted. At 1,
every neighbour's spike just above epsilon would cost two more intervals."""

NEAR_LATER = 1.0
"""How many epsilons off the reference the later one may be: epsilon is what the user calls the same."""

TREND_LIMIT = 0.5
"""The fall along a window, in epsilons, from which it counts as a trend and the window is not flat.

The fall is that of the least-squares line. At d MB a poll the default window (3 intervals) falls by 3 d, so
half an epsilon (100 MB) refuses falls from 34 MB a poll on, which the range alone lets through up to 66 MB.
Slower ones free less than 2 GB within the default timeout of 120 s, and a smaller limit would refuse noise:
readings scattered evenly over a whole epsilon have a fitted fall of 0 +- 0.39 epsilon, so nine windows in ten
pass and the next one is new luck; scattered over half an epsilon 999 in 1,000 pass. Only falls count: memory
being released lowers the reading, and other programs that grow slowly are no reason to wait."""


@attrs.frozen(kw_only=True)
class SettleOutcome:
    """How the wait ended.

    Args:
        status: ``settled``; ``dirty``: still loaded, or flat above what the reference allows; ``timeout``:
            never flat.
        waited_s: seconds from the call to the verdict.
        start_mb: the first reading.
        final_mb: the last reading; the baseline when settled.
        polls: how many readings were taken.
        still_loaded: what the backend named at the last reading.
        proven: whether the reference or the backend's word proves that the model is gone. A baseline that is
            not proven must be marked so wherever it is used.
    """

    status: SettleStatus
    waited_s: float
    start_mb: float
    final_mb: float
    polls: int
    still_loaded: tuple[str, ...]
    proven: bool


def wait_until_settled(
    poll: Callable[[], float],
    *,
    settle: SettleSpec,
    reference_mb: float | None = None,
    loaded: Callable[[], Sequence[str] | None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> SettleOutcome:
    """Poll until memory is back or ``settle.timeout_s`` has passed.

    The first reading is taken at once. Time spent in ``poll`` and ``loaded`` counts. Whatever they or
    ``sleep`` raise is passed on.

    Args:
        poll: reads the memory in use, in MB.
        settle: timeout, interval, window and tolerance.
        reference_mb: the last baseline of this night that followed a verified reset; ``None``: there is none.
        loaded: asks for the models still there: ``[]`` only once their absence is proven, ``None`` when that
            cannot be told. ``None`` in its place: nobody can be asked.
        sleep: waits so many seconds.
        clock: monotonic seconds.

    Returns:
        The verdict with its figures.
    """
    return settle_together(
        {"": poll}, settle=settle, references={"": reference_mb}, loaded=loaded, sleep=sleep, clock=clock
    )[""]


def settle_together(
    polls: Mapping[str, Callable[[], float]],
    *,
    settle: SettleSpec,
    references: Mapping[str, float | None],
    loaded: Callable[[], Sequence[str] | None] | None = None,
    failed: Callable[[str, Exception | SystemExit], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, SettleOutcome]:
    """The same for several figures: one wait that ends when all of them are settled at one and the same moment.

    The word is asked once for all of them.

    Args:
        polls: per probe, what reads its memory in use, in MB.
        settle: timeout, interval, window and tolerance, the same for all.
        references: per probe, the last baseline of this night that followed a verified reset.
        loaded: see `wait_until_settled`.
        failed: told of a poll that raised; its probe is left out from then on. Without it the error is passed on.
        sleep: waits so many seconds.
        clock: monotonic seconds.

    Returns:
        The verdict on each probe that could be read to the end; none where there is no such probe.
    """
    readings = {name: _Readings(settle=settle, reference_mb=references.get(name)) for name in polls}
    start = clock()
    deadline = start + settle.timeout_s
    while True:
        # The word first: a reading taken before the word could still show what the word says is gone.
        word = None if loaded is None else loaded()
        for name in tuple(readings):
            try:
                mb = polls[name]()
            except (Exception, SystemExit) as error:  # a poll may be a plugin, which may raise anything
                if failed is None:
                    raise
                failed(name, error)
                del readings[name]
                continue
            readings[name].add(mb, at=clock() - start, word=word)
        now = clock()
        if now >= deadline or all(one.settled() for one in readings.values()):
            return {name: one.outcome(now - start) for name, one in readings.items()}
        sleep(min(settle.poll_interval_s, deadline - now))  # cut, so that the verdict falls at the timeout


@attrs.define(kw_only=True)
class _Readings:
    """The readings so far, and what they say together with the reference and the word."""

    settle: SettleSpec
    reference_mb: float | None
    values: list[float] = attrs.field(factory=list)
    times: list[float] = attrs.field(factory=list)
    word: Sequence[str] | None = None
    not_named_from: int = 0  # the first reading since a model was last named
    absent_from: int | None = None  # the first of these with absence proven
    was_flat: bool = False  # some window was flat, wherever

    def add(self, mb: float, *, at: float, word: Sequence[str] | None) -> None:
        here = len(self.values)
        self.values.append(mb)
        self.times.append(at)
        self.word = word
        if word:
            self.not_named_from, self.absent_from = here + 1, None
        elif word is not None and self.absent_from is None:
            self.absent_from = here
        self.was_flat = self.was_flat or self.flat_since(0)

    def settled(self) -> bool:
        return self.proven() or self.unproven_plateau()

    def outcome(self, waited_s: float) -> SettleOutcome:
        return SettleOutcome(
            status="settled" if self.settled() else self.failure(),
            waited_s=waited_s,
            start_mb=self.values[0],
            final_mb=self.values[-1],
            polls=len(self.values),
            still_loaded=tuple(self.word or ()),
            proven=self.proven(),
        )

    def proven(self) -> bool:
        if self.word:
            return False
        if self.near_reference():
            return True
        # Readings from before the proof are left out: a driver may give memory back after the process is
        # gone, and a plateau that began with the model still there would hide that.
        return self.word is not None and self.absent_from is not None and self.flat_since(self.absent_from)

    def unproven_plateau(self) -> bool:
        return self.word is None and not self.above() and self.flat_since(self.not_named_from)

    def above(self) -> bool:
        """Whether the last reading is higher than what is near the reference."""
        return self.reference_mb is not None and self.values[-1] > self.reference_mb + self.settle.epsilon_mb

    def failure(self) -> SettleStatus:
        above = self.above()
        held = self.word is None and above and self.was_flat
        return "dirty" if self.word or held else "timeout"

    def near_reference(self) -> bool:
        return (
            len(self.values) >= 2
            and self.within_reference(self.values[-2], NEAR_EARLIER)
            and self.within_reference(self.values[-1], NEAR_LATER)
        )

    def within_reference(self, mb: float, epsilons: float) -> bool:
        return self.reference_mb is not None and abs(mb - self.reference_mb) <= epsilons * self.settle.epsilon_mb

    def flat_since(self, first: int) -> bool:
        """Whether the last window begins at the reading ``first`` or later and is flat by range and trend."""
        intervals = max(1, self.settle.plateau_polls)
        if len(self.values) - first < intervals + 1:
            return False
        values, times = self.values[-intervals - 1 :], self.times[-intervals - 1 :]
        # A window whose last interval was cut counts in full length; one with slow polls as long as it is.
        span_s = max(times[-1] - times[0], intervals * self.settle.poll_interval_s)
        return (
            max(values) - min(values) <= self.settle.epsilon_mb
            and _fall_mb_per_s(times, values) * span_s <= TREND_LIMIT * self.settle.epsilon_mb
        )


def _fall_mb_per_s(times: Sequence[float], values: Sequence[float]) -> float:
    """How fast the least-squares line through the readings falls; negative when it rises."""
    middle = sum(times) / len(times)
    level = sum(values) / len(values)
    spread = sum((at - middle) ** 2 for at in times)
    if spread == 0:  # all at one moment, by a clock too coarse: no trend to see
        return 0.0
    return -sum((at - middle) * (mb - level) for at, mb in zip(times, values, strict=True)) / spread
