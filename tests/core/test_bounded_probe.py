"""A probe that hangs costs its figure, not the night."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from runq.bounded_probe import BoundedProbe
from runq.plugin import PluginError
from runq.sampling import BATCH_ROWS, MOST_ROWS, SampleBatch
from runq_journal import Sample
from runq_schemas.errors import JournalError

if TYPE_CHECKING:
    from runq_journal.journal import Journal


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


STOPPED = """
import signal, sys, time
from runq.bounded_probe import BoundedProbe
from runq.plugin import PluginError

class Hangs:
    formula = "none"
    def read_mb(self):
        print("asked", flush=True)
        time.sleep(600)

signal.signal(signal.SIGCONT, lambda *_: None)
try:
    BoundedProbe(Hangs(), limit_s=0.3).read_mb()
except PluginError as error:
    print(error, flush=True)
"""


def test_a_limit_that_runs_out_while_the_process_is_stopped_holds_all_the_same() -> None:
    """Found by the fault campaign (seed 53, 60 s): Ctrl-Z, or any signal of that kind, while a driver hangs."""
    with subprocess.Popen([sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)  # its time is up before it can look
        process.send_signal(signal.SIGCONT)
        try:
            out, _ = process.communicate(timeout=20)
        finally:
            process.kill()
    assert out == "it gave no reading within 0.3 s\n"


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


def test_one_thread_answers_every_reading() -> None:
    threads: set[int] = set()

    def read() -> float:
        threads.add(threading.get_ident())
        return 1.0

    probe = BoundedProbe(Probe(read))
    assert [probe.read_mb() for _ in range(50)] == [1.0] * 50
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_a_thread_that_nobody_asks_ends_and_the_next_reading_starts_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runq.bounded_probe.IDLE_S", 0.01)
    probe = BoundedProbe(Probe(lambda: 3.0))
    probe.read_mb()
    first = probe._thread
    assert first is not None
    first.join(10)
    assert not first.is_alive()
    assert probe.read_mb() == 3.0


class Writer:
    """The journal, as far as a batch of samples sees it."""

    def __init__(self) -> None:
        self.refuse = False
        self.tries = 0
        self.written: list[Sample] = []

    def add_samples(self, samples: list[Sample]) -> None:
        self.tries += 1
        if self.refuse:
            raise JournalError("another program holds it")
        self.written += samples


AT = datetime(2026, 9, 1, tzinfo=UTC)


def batch(writer: Writer) -> SampleBatch:
    return SampleBatch(journal=cast("Journal", writer), night="n")


def test_readings_of_short_steps_share_a_commit() -> None:
    writer = Writer()
    samples = batch(writer)
    for number in range(BATCH_ROWS):
        samples.of(0, f"s{number}")(AT, "system", 5.0)
    assert writer.tries == 1
    assert [row.step for row in writer.written] == [f"s{number}" for number in range(BATCH_ROWS)]


def test_readings_that_the_journal_does_not_take_now_are_kept_for_later() -> None:
    writer = Writer()
    samples = batch(writer)
    keep = samples.of(0, "eval")
    writer.refuse = True
    for _ in range(2 * BATCH_ROWS + 5):
        keep(AT, "system", 5.0)
    assert writer.written == []
    assert writer.tries == 2  # not at every reading: each try waits for the lock
    writer.refuse = False
    samples.flush()
    assert len(writer.written) == 2 * BATCH_ROWS + 5
    samples.flush()
    assert len(writer.written) == 2 * BATCH_ROWS + 5


def test_readings_that_wait_too_long_go_oldest_first() -> None:
    writer = Writer()
    samples = batch(writer)
    keep = samples.of(0, "eval")
    writer.refuse = True
    for number in range(MOST_ROWS + 7):
        keep(AT, "system", float(number))
    samples.flush()
    writer.refuse = False
    samples.flush()
    assert len(writer.written) == MOST_ROWS
    assert writer.written[0].mb == 7.0
