"""What gets through to code that blocks: a second Ctrl-C and a limit, and neither where our own code runs."""

import os
import signal
import threading
import time

import pytest

from runq.processes import Interrupted, Interrupts, foreign, ours
from runq.processes.foreign import inside


class Hung(Exception):
    pass


@pytest.fixture(autouse=True)
def alarms():
    """pytest-timeout's own alarm is there before and after."""
    handler, (left_s, every_s) = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    yield
    assert signal.getsignal(signal.SIGALRM) is handler
    now_s, now_every_s = signal.getitimer(signal.ITIMER_REAL)
    assert (now_s > 0, now_every_s) == (left_s > 0, every_s)
    assert now_s <= left_s


def test_a_limit_gets_through_to_a_call_that_blocks():
    with pytest.raises(Hung), foreign(0.05, Hung):
        time.sleep(60)
    assert not inside()


def test_what_comes_back_in_time_is_left_alone():
    with foreign(60, Hung):
        assert inside()
    assert not inside()


def test_code_of_ours_is_never_torn_and_what_called_it_is_told_afterwards():
    done = []
    with pytest.raises(Hung), foreign(0.05, Hung):
        with ours():
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                time.sleep(0.01)
            done.append(1)
        time.sleep(60)
    assert done == [1]


def test_code_that_catches_what_it_is_told_is_told_again():
    caught = []
    with pytest.raises(Hung), foreign(0.05, Hung):
        try:
            time.sleep(60)
        except Hung:
            caught.append(1)
        time.sleep(60)
    assert caught == [1]


def test_the_alarm_of_somebody_else_goes_on():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    left_s, every_s = signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Hung), foreign(0.05, Hung):
            time.sleep(60)
        time.sleep(0.5)
        assert rung == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, left_s, every_s)
        signal.signal(signal.SIGALRM, before)


def test_the_second_interrupt_gets_through_and_the_first_does_not():
    seen = []
    with Interrupts() as interrupts, pytest.raises(Interrupted, match="SIGINT"), foreign():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        seen.append(interrupts.requested)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    assert seen == ["SIGINT"]


def test_no_interrupt_gets_through_to_code_of_ours():
    with Interrupts() as interrupts, foreign(), ours():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        assert interrupts.count == 3


def test_in_another_thread_it_does_nothing():
    found = []

    def work():
        with foreign(0.01, Hung), ours():
            time.sleep(0.05)
            found.append(inside())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
