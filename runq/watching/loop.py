"""The live view: the journal followed, drawn once a second, until the night ends or somebody leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from runq.watching.calling import Calls
from runq.watching.choosing import NO_KEYS, Chooser
from runq.watching.frame import Frame
from runq.watching.keys import Keys, input_terminal
from runq.watching.screen import screen

if TYPE_CHECKING:
    from runq.watching.following import Following

EVERY_S = 1.0
"""As often as the runner looks at its step (`runq.sampling.SAMPLE_EVERY_S`): there is nothing new in between."""


def watch_on(console: Console, following: Following, journal: Path) -> bool:
    """Show a night on a terminal.

    Args:
        console: the terminal.
        following: the night.
        journal: its journal.

    Returns:
        Whether the night has ended; otherwise somebody left.

    Raises:
        JournalError: the journal cannot be read.
        KeyboardInterrupt: Ctrl-C; the terminal is as it was.
    """
    fd = input_terminal()
    live = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def suspend(stop: Callable[[], None]) -> None:
        live.stop()
        stop()
        live.start()

    with Keys(fd, suspend) as keys:
        view = _View(console, live, following, Calls(journal, keys.wake), keyless=fd is None)
        live.start()
        try:
            while not view.draw():
                if "leave" in [view.pressed(key) for key in keys.wait(EVERY_S)]:
                    return False
            return True
        except OSError:  # the terminal was closed
            return False
        finally:
            with contextlib.suppress(OSError):  # as above
                live.stop()


class _View:
    def __init__(self, console: Console, live: Live, following: Following, calls: Calls, *, keyless: bool) -> None:
        self._console = console
        self._live = live
        self._following = following
        self._calls = calls
        self._chooser = Chooser()
        self._keyless = keyless
        self._log_only = False

    def draw(self) -> bool:
        """Read what is new and draw it. Returns whether the night has ended."""
        self._following.look()
        if self._following.over:
            return True
        self._calls.look()
        width, height = self._console.size
        lines = screen(self._frame(self._following.data), width, height, ascii_only=self._console.options.ascii_only)
        self._live.update(Text("\n", no_wrap=True, end="").join(lines), refresh=True)
        return False

    def pressed(self, key: str) -> str:
        """Do what a key asks for. Returns ``leave`` when it is that."""
        choice = self._chooser.press(key, self._following.data)
        if choice == "log":
            self._log_only = not self._log_only
        elif choice is not None and choice != "leave":
            self._calls.call(choice)
        return choice or ""

    def _frame(self, data: Mapping[str, Any]) -> Frame:
        following = self._following
        now = following.now(self._calls.tick)
        return Frame(
            data=data,
            now=now,
            doing=following.doing(),
            level=following.level(),
            log=following.log(),
            happened=following.happened,
            at=following.utc().astimezone(),
            keys=NO_KEYS if self._keyless else self._chooser.words(data),
            asks=bool(self._chooser.asking),
            message=self._calls.message,
            log_only=self._log_only,
        )
