"""Signals: the first asks to stop, the second kills, a closed terminal is noted."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from runq.processes import FakeInterrupts, Interrupted, Interrupts

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def unchanged():
    """Every test gives the handlers and the wakeup descriptor back."""
    before = [signal.getsignal(number) for number in NUMBERS]
    yield
    assert [signal.getsignal(number) for number in NUMBERS] == before
    assert signal.set_wakeup_fd(-1) == -1


def hit(number: int) -> None:
    os.kill(os.getpid(), number)


def test_the_first_signal_asks_and_the_second_kills():
    with Interrupts() as interrupts:
        assert (interrupts.requested, interrupts.count, interrupts.kill_now) == (None, 0, False)
        interrupts.check()
        hit(signal.SIGTERM)
        assert (interrupts.requested, interrupts.count, interrupts.kill_now) == ("SIGTERM", 1, False)
        hit(signal.SIGINT)
        assert (interrupts.requested, interrupts.count, interrupts.kill_now) == ("SIGTERM", 2, True)
        with pytest.raises(Interrupted, match="SIGTERM"):
            interrupts.check()


def test_a_closed_terminal_is_noted_and_ends_nothing():
    with Interrupts() as interrupts:
        assert not interrupts.hung_up
        hit(signal.SIGHUP)
        interrupts.sleep(0.001)
        assert interrupts.hung_up
        assert interrupts.requested is None


def test_handlers_come_back_after_an_exception():
    with pytest.raises(RuntimeError), Interrupts():
        raise RuntimeError


def test_handlers_come_back_when_installing_fails(monkeypatch):
    real = signal.signal

    def failing(number, handler):
        if number == signal.SIGHUP and getattr(handler, "__name__", "") == "_hang_up":
            raise OSError("no")
        return real(number, handler)

    monkeypatch.setattr(signal, "signal", failing)
    with pytest.raises(OSError, match="no"), Interrupts():
        pass


def test_a_handler_that_python_did_not_install_becomes_the_default(monkeypatch):
    calls = []
    monkeypatch.setattr(signal, "signal", lambda number, handler: calls.append((number, handler)))
    with Interrupts():
        pass
    assert calls[-3:] == [(number, signal.SIG_DFL) for number in reversed(NUMBERS)]


def test_a_sleep_ends_by_a_signal_in_its_middle():
    with Interrupts() as interrupts:
        timer = threading.Timer(0.05, hit, [signal.SIGINT])
        timer.start()
        with pytest.raises(Interrupted):
            interrupts.sleep(600)
        timer.join()


def test_a_sleep_after_a_request_does_not_begin():
    with Interrupts() as interrupts:
        interrupts.request("SIGINT")
        with pytest.raises(Interrupted):
            interrupts.sleep(600)


def test_many_signals_do_not_block():
    with Interrupts() as interrupts:
        for _ in range(5_000):
            interrupts.request("SIGINT")
        interrupts.drain()
        assert interrupts.count == 5_000


def test_in_another_thread_nothing_is_installed_and_the_rest_works():
    seen = []

    def work():
        with Interrupts() as interrupts:
            seen.append(signal.getsignal(signal.SIGINT))
            interrupts.sleep(0.001)
            interrupts.request("SIGINT")
            seen.append(interrupts.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT), "SIGINT"]


def test_a_request_from_another_thread_wakes_a_sleep():
    with Interrupts() as interrupts:
        timer = threading.Timer(0.05, interrupts.request, ["SIGTERM"])
        timer.start()
        with pytest.raises(Interrupted):
            interrupts.sleep(600)
        timer.join()


def test_outside_the_block_it_still_sleeps_and_counts():
    interrupts = Interrupts()
    assert interrupts.wakeup_fd is None
    interrupts.drain()
    interrupts.sleep(0.001)
    interrupts.request("SIGINT")
    assert interrupts.requested == "SIGINT"


def test_an_interruption_passes_whoever_catches_every_exception():
    assert not issubclass(Interrupted, Exception)


def test_the_fake_asks_when_it_was_told_to():
    now = []
    fake = FakeInterrupts(stop_after_s=3.0, advance=now.append)
    fake.sleep(2.0)
    fake.drain()
    with pytest.raises(Interrupted):
        fake.sleep(2.0)
    assert fake.slept_s == now == [2.0, 1.0]
    patient = FakeInterrupts()
    patient.sleep(1e9)
    assert patient.requested is None
