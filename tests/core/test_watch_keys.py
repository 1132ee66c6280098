"""Keys of `runq watch`: what a terminal sends, what they ask for, and what comes of it."""

from __future__ import annotations

import os
import pty
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runq.control.asking import NoRunnerError
from runq.watching.calling import Calls
from runq.watching.choosing import Chooser
from runq.watching.keys import Keys, input_terminal, parsed
from runq_schemas.errors import RunqError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such terminals")

RUNNING: dict[str, Any] = {"state": "running", "asked": [], "now": {"entry": 2}}


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"p", ["p"]),
        (b"pk", ["p", "k"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[A", ["other"]),  # arrow up
        (b"\x1b[1;5Cq", ["other", "q"]),  # Ctrl and arrow right, then q
        (b"\x1bOP", ["other"]),  # F1
        (b"\x1b[15~s", ["other", "s"]),  # F5
        (b"\x1bx", ["other"]),  # Alt-x
        (b"\x1b\x1b", ["escape", "escape"]),
        (b"\x04", ["end"]),
        ("ü".encode(), ["ü"]),
        (b"\xff", []),
    ],
)
def test_what_a_terminal_sends(sent: bytes, keys: list[str]) -> None:
    assert list(parsed(sent)) == keys


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
        ("p", ["pause"]),
        ("sn", [None, "stop"]),
        ("ss", [None, "stop_after_step"]),
        ("se", [None, "stop_after_entry"]),
        ("sx", [None, None]),
        ("sxn", [None, None, None]),
        ("ky", [None, "skip"]),
        ("kn", [None, None]),
        ("kk", [None, None]),
        ("l", ["log"]),
        ("q", ["leave"]),
        ("sq", [None, None]),  # no to the question, not away from the screen
        ("x", [None]),
    ],
)
def test_what_keys_ask_for(keys: str, asked: list[str | None]) -> None:
    chooser = Chooser()
    assert [chooser.press(key, RUNNING) for key in keys] == asked


@pytest.mark.parametrize("key", ["escape", "end"])
def test_other_ways_to_leave(key: str) -> None:
    assert Chooser().press(key, RUNNING) == "leave"


@pytest.mark.parametrize("data", [{**RUNNING, "state": "paused"}, {**RUNNING, "asked": ["pause"]}])
def test_a_night_that_pauses_or_is_asked_to_goes_on_by_the_same_key(data: dict[str, Any]) -> None:
    assert Chooser().words(data) == "q leave  p go on  s stop  k skip  l log"
    assert Chooser().press("p", data) == "unpause"


def test_the_questions_say_what_the_answers_do() -> None:
    chooser = Chooser()
    assert chooser.words(RUNNING) == "q leave  p pause  s stop  k skip  l log"
    chooser.press("s", RUNNING)
    assert chooser.words(RUNNING) == "stop the night: n now, s after this step, e after this entry; any other key: no"
    chooser.press("x", RUNNING)
    chooser.press("k", RUNNING)
    assert chooser.words(RUNNING) == "skip the rest of e2: y yes; any other key: no"
    assert chooser.words({**RUNNING, "now": None}) == "skip the rest of the entry: y yes; any other key: no"


# --- a terminal -------------------------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: ours and the program's."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    for fd in (ours, theirs):
        os.close(fd)


def at_once(stop: Any) -> None:
    stop()


def test_keys_come_without_enter_and_the_terminal_is_as_it_was(terminal: tuple[int, int]) -> None:
    import termios

    ours, theirs = terminal
    before = termios.tcgetattr(theirs)
    with Keys(theirs, at_once) as keys:
        assert termios.tcgetattr(theirs)[3] & termios.ICANON == 0
        os.write(ours, b"p")
        assert keys.wait(30) == ["p"]
        os.write(ours, b"\x1b[")  # an arrow whose rest comes a moment later
        os.write(ours, b"A")
        assert keys.wait(30) == ["other"]
        assert keys.wait(0) == []
    assert termios.tcgetattr(theirs) == before


def test_a_resize_and_an_answer_end_the_wait() -> None:
    with Keys(None, at_once) as keys:
        signal.raise_signal(signal.SIGWINCH)
        assert keys.wait(30) == []
        threading.Timer(0.05, keys.wake).start()
        assert keys.wait(30) == []
    assert signal.getsignal(signal.SIGWINCH) is signal.SIG_DFL


def test_a_terminal_that_closes_is_the_end() -> None:
    ours, theirs = pty.openpty()
    try:
        with Keys(theirs, at_once) as keys:
            os.close(ours)
            assert keys.wait(30) == ["end"]
            assert keys.wait(0) == [], "it is not asked again"
    finally:
        os.close(theirs)


def test_sigterm_gives_the_terminal_back(terminal: tuple[int, int]) -> None:
    import termios

    _, theirs = terminal
    before = termios.tcgetattr(theirs)
    with pytest.raises(SystemExit) as ended, Keys(theirs, at_once):
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM
    assert termios.tcgetattr(theirs) == before


def test_no_keys_where_standard_input_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # as with `runq watch <&-`
    assert input_terminal() is None
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert input_terminal() is None
    assert nothing.closed and input_terminal() is None


# --- the runner's answers ---------------------------------------------------------------------------------------


class Runner:
    """Answers as it was told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: dict[str, Any] | RunqError = {}
        self.answered = threading.Event()

    def __call__(self, _journal: Path, what: str) -> dict[str, Any]:
        self.asked.append(what)
        if isinstance(self.answer, RunqError):
            raise self.answer
        return self.answer

    def calls(self) -> Calls:
        return Calls(Path("journal.db"), self.answered.set, self)


TICK = {"entry": 0, "step": "eval", "seconds": 3.0, "memory_mb": 12.0}


def test_the_sentence_that_the_command_prints_is_the_message() -> None:
    runner = Runner()
    calls = runner.calls()
    runner.answer = {
        "ok": True, "asked": "pause", "taken": True, "night": "n", "entry": 1, "step": "judge", "paused": False
    }  # fmt: skip
    calls.call("pause")
    assert runner.answered.wait(30)
    assert calls.message == "night n pauses as soon as e1 judge has finished; `runq unpause` goes on"
    assert runner.asked == ["pause"]


def test_a_refusal_is_a_message_with_its_remedy() -> None:
    runner = Runner()
    calls = runner.calls()
    runner.answer = NoRunnerError("the runner has just ended", remedy="`runq status` shows how")
    calls.call("skip")
    assert runner.answered.wait(30)
    assert calls.message == "the runner has just ended; `runq status` shows how"


def test_what_the_runner_does_is_asked_once_at_a_time() -> None:
    runner = Runner()
    asked, answers = threading.Event(), threading.Event()

    def slow(_journal: Path, what: str) -> dict[str, Any]:
        runner.asked.append(what)
        asked.set()
        answers.wait(30)
        return {"tick": TICK}

    calls = Calls(Path("journal.db"), runner.answered.set, slow)
    for _ in range(5):
        calls.look()
    assert asked.wait(30)
    assert runner.asked == ["status"] and calls.tick is None
    answers.set()
    for _ in range(3000):
        if calls.tick is not None:
            break
        threading.Event().wait(0.01)
    assert calls.tick == TICK
