"""Waiting for the end, the timeout, the stall, or a signal."""

from __future__ import annotations

import os
import select
import signal
import threading
from types import SimpleNamespace

import pytest

from runq.processes import FakeInterrupts, Interrupts, end_tree, growth, wait_for_end, watch
from runq.processes.spawn import ExitStatus

LONG_S = 60.0


def no_tick(_seconds: float) -> None:
    pass


def look(child, **options):
    settings = {
        "timeout_s": LONG_S,
        "stall_timeout_s": None,
        "activity": lambda: 0,
        "every_s": LONG_S,
        "on_tick": no_tick,
        "interrupts": FakeInterrupts(),
        **options,
    }
    return watch(child, **settings)


class Played:
    """A child, a clock and a wait, played: the child ends at a moment of the clock."""

    pid = 0

    def __init__(self, ends_at: float = 1e9) -> None:
        self.now = 100.0
        self.ends_at = self.now + ends_at

    def poll(self):
        return ExitStatus(0, None) if self.now >= self.ends_at else None

    def wait(self, child, timeout_s, wakeup_fd=None):
        self.now = min(self.now + max(timeout_s, 0.0), max(self.ends_at, self.now))
        return self.now >= self.ends_at

    def look(self, **options):
        return look(self, clock=lambda: self.now, wait=self.wait, **options)


# --- by the clock ---


def test_ticks_keep_to_their_times_though_they_are_slow():
    played = Played(ends_at=10.5)
    ticks = []

    def tick(seconds):
        ticks.append(seconds)
        played.now += 0.4 if len(ticks) != 4 else 2.6  # the fourth oversleeps two others

    assert played.look(every_s=1.0, on_tick=tick) == "exited"
    assert ticks == pytest.approx([1.0, 2.0, 3.0, 4.0, 6.6, 7.0, 8.0, 9.0, 10.0])


def test_the_timeout_comes_at_its_time_whatever_the_ticks():
    played = Played()
    assert played.look(timeout_s=7.3, every_s=2.0) == "timeout"
    assert played.now == pytest.approx(107.3)


def test_an_end_at_the_very_timeout_is_an_end():
    assert Played(ends_at=7.0).look(timeout_s=7.0) == "exited"


def test_a_stall_is_a_time_without_change():
    played = Played()

    def activity():
        return min(played.now, 130.0)  # grows for 30 s

    assert played.look(timeout_s=1000.0, stall_timeout_s=50.0, activity=activity, every_s=7.0) == "stalled"
    assert 180.0 <= played.now <= 186.0


def test_no_stall_while_something_grows_or_without_a_limit():
    played = Played(ends_at=500.0)
    assert played.look(timeout_s=1000.0, stall_timeout_s=50.0, activity=lambda: played.now // 40) == "exited"
    assert Played(ends_at=500.0).look(timeout_s=1000.0) == "exited"


def test_an_interruption_asked_for_before():
    assert Played().look(interrupts=FakeInterrupts(stop_after_s=0)) == "interrupted"


# --- with real processes ---


def test_the_end_of_a_process_ends_the_wait(stage):
    child = stage.start("step", "sys.exit(4)")
    assert look(child) == "exited"
    assert child.status() == (4, None)
    assert wait_for_end(child, LONG_S) is True


def test_a_wait_ends_with_its_time(stage):
    child = stage.start("step", "linger()")
    assert wait_for_end(child, 0.01) is False
    assert wait_for_end(child, -1.0) is False
    assert look(child, timeout_s=0.05) == "timeout"


def test_a_silent_step_stalls_and_a_writing_one_does_not(stage):
    silent = stage.start("silent", "linger()")
    log = stage.folder / "silent.log"
    assert look(silent, stall_timeout_s=0.2, activity=lambda: growth(log, stage.folder / "none")) == "stalled"
    assert silent.poll() is None


def test_a_flood_of_output_harms_nobody(stage):
    flood = "block = b'x' * 1_000_000\nfor _ in range(100):\n    os.write(1, block)\n"
    child = stage.start("flood", flood)
    log = stage.folder / "flood.log"
    activity = lambda: growth(log, stage.folder / "none")  # noqa: E731
    assert look(child, stall_timeout_s=LONG_S, activity=activity, every_s=0.01) == "exited"
    assert log.stat().st_size == 100_000_000
    log.unlink()


def test_a_tick_that_raises_passes_and_the_child_is_left_to_the_caller(stage):
    tree = stage.tree("step", "linger()")

    def tick(_seconds):
        raise RuntimeError("the journal is full")

    with pytest.raises(RuntimeError, match="the journal is full"):
        look(tree.child, every_s=0.01, on_tick=tick)
    assert tree.child.poll() is None
    assert end_tree(tree).ended_pids == (tree.child.pid,)


@pytest.fixture(params=["pidfd", "asking"])
def way(request, monkeypatch):
    """Each way of waiting that works here."""
    if request.param == "asking":
        monkeypatch.delattr(os, "pidfd_open")
    return request.param


def test_every_way_notices_the_end_and_the_time(stage, way):
    child = stage.start("step", "wait_for('go')")
    assert wait_for_end(child, 0.02) is False
    stage.say("go")
    assert wait_for_end(child, LONG_S) is True


def test_a_signal_ends_the_wait_in_every_way(stage, way):
    child = stage.start("step", "say('ready')\nlinger()")
    ticked = threading.Event()

    def interrupt():
        ticked.wait(LONG_S)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with Interrupts() as interrupts:
        thread.start()
        end = watch(
            child,
            timeout_s=LONG_S * 5,
            stall_timeout_s=None,
            activity=lambda: 0,
            every_s=0.02,
            on_tick=lambda _seconds: ticked.set(),
            interrupts=interrupts,
        )
        thread.join()
        assert end == "interrupted"
        assert interrupts.requested == "SIGINT"
    assert child.poll() is None


def test_a_second_interrupt_kills_at_once(stage):
    tree = stage.tree("step", "signal.signal(signal.SIGTERM, lambda *_: say('asked'))\nsay('ready')\nlinger()")

    def interrupt_twice():
        stage.heard("ready")
        os.kill(os.getpid(), signal.SIGINT)
        stage.heard("asked")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt_twice)
    with Interrupts() as interrupts:
        thread.start()
        assert look(tree.child, interrupts=interrupts) == "interrupted"
        ended = end_tree(tree, grace_s=LONG_S * 5, kill_now=lambda: interrupts.kill_now)
        thread.join()
    assert ended.ended_pids == (tree.child.pid,)
    assert tree.child.status() == (None, "SIGKILL")


class FakeQueue:
    """kqueue(2) as macOS has it, played."""

    def __init__(self, error: type[OSError] | None, log: list) -> None:
        self.error = error
        self.log = log

    def control(self, events, count, timeout_s):
        self.log.append((events, count, timeout_s))
        if self.error is not None:
            raise self.error

    def close(self):
        self.log.append("closed")


@pytest.mark.parametrize("error", [None, ProcessLookupError])
@pytest.mark.parametrize("wakeup_fd", [None, 9])
def test_kqueue_where_there_is_one(stage, monkeypatch, error, wakeup_fd):
    log = []
    monkeypatch.delattr(os, "pidfd_open")
    played = {"kqueue": lambda: FakeQueue(error, log), "kevent": lambda *args: args}
    played |= {n: n for n in ("KQ_FILTER_PROC", "KQ_FILTER_READ", "KQ_EV_ADD", "KQ_NOTE_EXIT")}
    for name, value in played.items():
        monkeypatch.setattr(select, name, value, raising=False)
    child = SimpleNamespace(pid=5, poll=lambda: None)
    assert wait_for_end(child, 3.0, wakeup_fd) is False
    expected = [(5, "KQ_FILTER_PROC", "KQ_EV_ADD", "KQ_NOTE_EXIT")]
    if wakeup_fd:
        expected.append((9, "KQ_FILTER_READ", "KQ_EV_ADD"))
    assert log == [(expected, 1, 3.0), "closed"]


# --- growth ---


def test_growth_sees_bytes_files_and_changes(tmp_path):
    bundle, log = tmp_path / "bundle", tmp_path / "log"
    seen = [growth(log, bundle)]

    def step(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        seen.append(growth(log, bundle))

    step(log, "a")
    step(log, "ab")
    step(bundle / "deep" / "file", "x")
    os.utime(bundle / "deep" / "file", ns=(1, 2**62))
    seen.append(growth(log, bundle))
    assert len(set(seen)) == len(seen)
    assert seen[0] == (0, 0, 0)
    assert seen[-1] == (3, 2, 2**62)
    assert growth(log, bundle) == seen[-1]


def test_growth_stands_files_that_vanish_and_links_in_circles(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    (tmp_path / "circle").symlink_to(tmp_path)
    assert growth(tmp_path / "none", tmp_path)[1] == 2

    class Vanishing:
        path = "gone"

        def is_dir(self, *, follow_symlinks):
            raise FileNotFoundError

    class Listing(list):
        def __enter__(self):
            return self

        def __exit__(self, *_args):
            return None

    monkeypatch.setattr(os, "scandir", lambda _path: Listing([Vanishing()]))
    assert growth(tmp_path / "none", tmp_path) == (0, 0, 0)
