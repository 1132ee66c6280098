"""What a night notices besides its steps: questions from outside, Ctrl-Z, a closed terminal, a machine that slept.

It looks whenever whoever waits wakes up (`Stopper.attend`), in the night's own thread, so that only the runner writes
events and every answer is true when it is given.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs

from runq.control.desk import Desk
from runq.control.wire import Ask
from runq.suspend import MachineClock, SleepWatch, WorkClock
from runq.text import duration
from runq_schemas.events import NightAsked, NightContinued, NightFrozen, NightPaused, NightSlept, NightUnpaused

if TYPE_CHECKING:
    from runq.processes import Stopper
    from runq.record import Recorder

SLICE_S = 0.5
"""How soon a night that idles takes up its work after `runq unpause`, or ends after `runq stop --after-step`."""

LATE_S = 10.0
"""A look that comes so late after SIGCONT means that the process was stopped: others come within 5 s."""


class Skipped(Exception):
    """Somebody asked for the rest of the entry to be skipped."""

    def __init__(self, by: str) -> None:
        super().__init__(by)
        self.reason = f"it was skipped, asked by {by}"


@attrs.define
class Attention:
    """What was noticed, and what somebody asked for and has not got yet.

    Before `attending` and after it nothing is noticed, and nothing is asked for.
    """

    recorder: Recorder
    interrupts: Stopper
    entry: int | None = attrs.field(default=None, init=False)
    """The entry whose turn it is; set by whoever runs it."""
    step: str | None = attrs.field(default=None, init=False)
    """The step that runs; set by whoever runs it."""
    sleeps: int = attrs.field(default=0, init=False)
    """How often the machine slept."""
    skip_by: str | None = attrs.field(default=None, init=False)
    """Who asked to skip the entry whose turn it is."""
    _pause_by: str | None = attrs.field(default=None, init=False)
    _unpaused_by: str = attrs.field(default="", init=False)
    _paused: bool = attrs.field(default=False, init=False)
    _ending: tuple[Literal["step", "entry"], str] | None = attrs.field(default=None, init=False)
    _hung_up: bool = attrs.field(default=False, init=False)
    _continued: int = attrs.field(default=0, init=False)
    _looked_s: float = attrs.field(default=0.0, init=False)
    _desk: Desk | None = attrs.field(default=None, init=False)
    _work: WorkClock | None = attrs.field(default=None, init=False)
    _sleep: SleepWatch | None = attrs.field(default=None, init=False)

    @contextmanager
    def attending(self, journal: Path, work: WorkClock, machine: MachineClock) -> Iterator[None]:
        """Look, and be there for questions, until the block ends."""
        from runq.control.address import NoSocketError
        from runq.control.serving import ControlServer
        from runq.locks import tell_control

        desk = self._desk = Desk(self.interrupts.wake)
        self._work, self._sleep = work, SleepWatch(machine)
        self._looked_s = machine.awake()
        self._continued = self.interrupts.job_signals.continued
        server: ControlServer | None = None
        try:
            server = ControlServer(journal, desk.put)
            tell_control(journal, str(server.path))
        except (NoSocketError, OSError) as error:
            self.recorder.warn(
                f"`runq pause`, `runq stop` and their like cannot reach this night: {error}",
                f"Ctrl-C and `kill {os.getpid()}` end it all the same",
            )
        self.interrupts.attend(self.look)
        try:
            yield
        finally:
            self.interrupts.attend(None)
            if server is not None:
                server.close()

    def look(self) -> None:
        """Notice whatever there is to notice.

        Raises:
            JournalError: it cannot be written down.
        """
        if self.interrupts.hung_up and not self._hung_up:
            self._hung_up = True
            self.recorder.warn("the terminal was closed; the night goes on", "see `runq status`")
        slept_s = self._sleep.slept() if self._sleep else None
        if slept_s is not None and self._sleep is not None:
            self.sleeps += 1
            self.recorder.event(NightSlept(seconds=round(slept_s, 1), how=self._sleep.clock.how))
        self._look_at_jobs()
        for ticket in self._desk.take() if self._desk else ():
            ticket.answer(self._answer(ticket.ask))

    # --- what the night asks ------------------------------------------------------------------------------------

    @property
    def waits(self) -> bool:
        """Whether `gate` has something to do: nothing may start before it was called again."""
        ends = self._ending is not None and self._ending[0] == "step"
        return self._pause_by is not None or self.skip_by is not None or ends

    @property
    def ends(self) -> bool:
        """Whether somebody asked for the night's end behind what runs now."""
        return self._ending is not None

    def gate(self) -> bool:
        """Call it before anything starts: it waits while the night is paused. Returns whether it was.

        Raises:
            Interrupted: a signal or somebody ends the night here.
            Skipped: the rest of this entry is not wanted.
            JournalError: the pause cannot be written down.
        """
        self.interrupts.sleep(0)
        self._may_end()
        if self._pause_by is None:
            return False
        began = self._now()
        self.recorder.event(NightPaused(by=self._pause_by))
        self._paused = True
        try:
            while self._pause_by is not None:
                self.interrupts.sleep(SLICE_S)
                self._may_end()
        finally:
            self._paused, self._pause_by = False, None
        self.recorder.event(NightUnpaused(by=self._unpaused_by, seconds=round(self._now() - began, 1)))
        return True

    def idle(self, seconds: float) -> None:
        """Sleep between two steps, where somebody who asked for an end after the step need not wait any longer.

        Raises:
            Interrupted: a signal or somebody ends the night here.
            Skipped: the rest of this entry is not wanted.
        """
        end = self._now() + seconds
        while (left_s := end - self._now()) > 0:
            self.interrupts.sleep(min(left_s, SLICE_S))
            self._may_end()

    def left_entry(self) -> None:
        """An entry has had its turn: what was asked of it alone is over."""
        self.entry, self.skip_by = None, None

    def _now(self) -> float:
        return self._work() if self._work else 0.0

    def _may_end(self) -> None:
        from runq.processes import Interrupted

        if self._ending is not None and (self.entry is None or self._ending[0] == "step"):
            what, by = self._ending
            raise Interrupted(f"runq stop --after-{what}, asked by {by}")
        if self.skip_by is not None and self.entry is not None:
            raise Skipped(self.skip_by)

    # --- what others ask ----------------------------------------------------------------------------------------

    def _answer(self, ask: Ask) -> dict[str, Any]:
        match ask.what:
            case "pause":
                return self._told(ask) if self._pause_by is not None else self._take(ask)
            case "unpause":
                return self._take(ask) if self._pause_by is not None else self._told(ask)
            case "skip":
                if self.entry is None:
                    return {"ok": False, "message": "no entry runs now: there is nothing to skip"}
                return self._told(ask) if self.skip_by is not None else self._take(ask)
            case "status":
                return self._told(ask)
            case _:
                return self._take(ask)

    def _take(self, ask: Ask) -> dict[str, Any]:
        if ask.what != "status":  # on disk before anything comes of it
            self.recorder.event(NightAsked(what=ask.what, by=ask.by))
        match ask.what:
            case "pause":
                self._pause_by = ask.by
            case "unpause":
                self._pause_by, self._unpaused_by = None, ask.by
            case "skip":
                self.skip_by = ask.by
            case "stop":
                self.interrupts.request(f"runq stop, asked by {ask.by}")
            case "stop_after_step":
                self._ending = ("step", ask.by)
            case "stop_after_entry":
                self._ending = ("entry", ask.by)
        return {**self._told(ask), "taken": True}

    def _told(self, ask: Ask) -> dict[str, Any]:
        """How things stand, and that nothing had to be done for it."""
        tick = self.recorder.last_tick
        return {
            "ok": True,
            "asked": ask.what,
            "taken": False,
            "night": self.recorder.night,
            "entry": self.entry,
            "step": self.step,
            "paused": self._paused and self._pause_by is not None,
            "pausing": self._pause_by is not None and not self._paused,
            "ending": self._ending[0] if self._ending else None,
            "stopping": self.interrupts.requested is not None,
            "tick": attrs.asdict(tick) if tick is not None else None,
        }

    # --- Ctrl-Z -------------------------------------------------------------------------------------------------

    def _look_at_jobs(self) -> None:
        jobs = self.interrupts.job_signals
        if jobs.stop:
            self._freeze()
        elif jobs.continued != self._continued and self._sleep is not None:
            late_s = self._sleep.clock.awake() - self._looked_s
            if late_s > LATE_S:  # SIGSTOP, which nobody can prepare for
                self.recorder.warn(
                    f"the runner was stopped from outside for about {duration(late_s)}; what it ran went on unwatched",
                    "Ctrl-Z stops both and counts against no step",
                )
        self._continued = jobs.continued
        if self._sleep is not None:
            self._looked_s = self._sleep.clock.awake()

    def _freeze(self) -> None:
        """Stop all that runs and then this process, until SIGCONT.

        A step lives in a session of its own, so that Ctrl-Z reaches the runner alone: left running, the step would
        use the machine that its user wants back, unwatched, while its timeout runs.
        """
        from runq.processes import freeze, helper_mark, thaw
        from runq.processes.interrupts import wait_readable

        journal = self.recorder.journal
        with journal.reader() as reader:
            helper = reader.unfinished_helper()

        jobs = self.interrupts.job_signals
        before = jobs.continued
        jobs.stop = False
        self.recorder.event(NightFrozen())
        began = self._now()
        frozen = freeze(marked="" if helper is None else helper_mark(journal.uuid, helper.night, helper.id))
        try:
            if jobs.continued == before:
                # Not SIGTSTP, which the system ignores where no shell is left to say `fg`.
                os.kill(os.getpid(), signal.SIGSTOP)
                # It takes effect in any thread, and so perhaps a moment later.
                while jobs.continued == before:
                    wait_readable(0.05)
        finally:
            thaw(frozen)
        seconds = self._now() - began
        if self._work is not None:
            self._work.hold(seconds)
        self.recorder.event(NightContinued(seconds=round(seconds, 1)))
