"""The course that every registry's eviction takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from runq.testing import FakeClock, make_context
from runq_plugins.reset.eviction import Deadline, Resident, Unasked, evict_all


class Slow:
    """Lists one model for ever; a question takes ``needs_s``, and fails when less time than that is left."""

    def __init__(self, clock: FakeClock, needs_s: float, fails_after: int = 1_000) -> None:
        self.clock, self.needs_s, self.left = clock, needs_s, fails_after

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        self.left -= 1
        if deadline.left_s < self.needs_s or self.left < 0:
            self.clock.sleep(deadline.call_s())
            raise Unasked("it did not end in time", "restart it")
        self.clock.sleep(self.needs_s)
        return [Resident(id="m", model="m", size_mb=1.0)]

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        pass

    def owners(self) -> None:
        return None


def outcome(tmp_path: Path, registry: Slow, clock: FakeClock) -> tuple[str, str]:
    made = evict_all(
        registry,
        make_context(tmp_path, clock=clock),
        who="it",
        timeout_s=4.0,
        idle_limit_mb=0.0,
        release_wait_s=1.0,
    )
    return made.verdict, made.reason


@pytest.mark.parametrize("needs_s", [0.3, 0.45, 0.6])
def test_a_question_cut_short_by_the_whole_limit_does_not_hide_what_is_loaded(tmp_path: Path, needs_s: float) -> None:
    clock = FakeClock()
    assert outcome(tmp_path, Slow(clock, needs_s), clock) == ("failed", "still loaded: m")


def test_a_question_that_had_its_time_and_failed_is_the_reason(tmp_path: Path) -> None:
    clock = FakeClock()
    assert outcome(tmp_path, Slow(clock, 0.1, fails_after=1), clock) == ("failed", "it did not end in time")
