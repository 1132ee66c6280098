"""A probe that hangs costs its figure, not the night."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from runq.bounded_probe import BoundedProbe
from runq.plugin import PluginError
from runq.sampling import BATCH_ROWS, MOST_ROWS, Sampler, SampleRow
from runq_schemas.errors import JournalError


class Probe:
    formula = "told in advance"

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read_mb = read
        self.asked = 0


def test_a_reading_comes_through() -> None:
    assert BoundedProbe(Probe(lambda: 12)).read_mb() == 12.0


@pytest.mark.parametrize("error", [OSError("no such device"), SystemExit(3)])
def test_what_a_probe_raises_comes_through(error: BaseException) -> None:
    def fail() -> float:
        raise error

    with pytest.raises(type(error)) as caught:
        BoundedProbe(Probe(fail)).read_mb()
    assert caught.value is error


def test_a_probe_that_hangs_is_given_up_and_not_asked_again() -> None:
    release, asked = threading.Event(), []

    def hang() -> float:
        asked.append(1)
        release.wait(30)
        return 1.0

    probe = BoundedProbe(Probe(hang), limit_s=0.05)
    with pytest.raises(PluginError, match=r"no reading within 0\.05 s"):
        probe.read_mb()
    with pytest.raises(PluginError, match="hung before"):
        probe.read_mb()
    release.set()
    assert asked == [1]


class Writer:
    def __init__(self) -> None:
        self.refuse = False
        self.written: list[SampleRow] = []

    def __call__(self, rows: list[SampleRow]) -> None:
        if self.refuse:
            raise JournalError("another program holds it")
        self.written += rows


def sampler(writer: Writer) -> Sampler:
    return Sampler(
        probes={"system": BoundedProbe(Probe(lambda: 5.0))}, now=lambda: datetime(2026, 9, 1, tzinfo=UTC), write=writer
    )


def test_readings_that_the_journal_does_not_take_now_are_kept_for_later() -> None:
    writer = Writer()
    sampling = sampler(writer)
    writer.refuse = True
    for _ in range(BATCH_ROWS + 5):
        sampling.read()
    assert writer.written == []
    writer.refuse = False
    sampling.flush()
    assert len(writer.written) == BATCH_ROWS + 5
    sampling.flush()
    assert len(writer.written) == BATCH_ROWS + 5


def test_readings_that_wait_too_long_go_oldest_first() -> None:
    writer = Writer()
    sampling = sampler(writer)
    sampling._rows = [(datetime(2026, 9, 1, tzinfo=UTC), "system", float(n)) for n in range(MOST_ROWS + 7)]
    writer.refuse = True
    sampling.flush()
    writer.refuse = False
    sampling.flush()
    assert len(writer.written) == MOST_ROWS
    assert writer.written[0][2] == 7.0
