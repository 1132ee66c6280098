"""What a night says while it runs, and at its end."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
from rich.console import Console
from rich.live import Live

from runq.progress import closing, observer
from runq.progress.lines import Lines
from runq.progress.live import LiveView
from runq.progress.living import fitted
from runq.progress.words import words
from runq.record import Recorder, Silent
from runq_schemas import EVENT_CLASSES
from runq_schemas import events as ev


def plan(cls: Any = ev.NightStarted, *models: str) -> Any:
    return cls(
        queue_path="/home/nora/queue.yaml",
        queue_sha256="",
        base_dir="/home/nora",
        runs_dir="/home/nora/runs",
        queue_dir="/home/nora/runs/n_queue",
        started_local="",
        entries=tuple(
            ev.PlannedEntry(
                id=number,
                index=number,
                model={"id": model},
                config="c.yaml",
                pack="office.yaml",
                judge_config=None,
                judge_model=None,
                steps=(
                    ev.PlannedStep(name="eval", identity="", run=number != 1, why=""),
                    ev.PlannedStep(name="judge", identity="", run=True, why=""),
                ),
                settings={},
            )
            for number, model in enumerate(models or ("gemma", "qwen"))
        ),
        host=ev.Host(name="box", system="Linux", machine="x86_64", cpus=8, memory_mb=65536.0),
        boot_id="",
        pid=1,
        versions={},
        plugins=(),
    )


def started(timeout_s: float = 14400.0, log: str = "/home/nora/runs/n_queue/logs/e0-eval-1.log") -> ev.StepStarted:
    return ev.StepStarted(
        argv=("x",),
        log=log,
        bundle="/b",
        timeout_s=timeout_s,
        stall_timeout_s=None,
        identity="",
        identity_parts={},
    )


def check_started(*models: str) -> ev.CheckStarted:
    return ev.CheckStarted(
        queue_path="/home/nora/queue.yaml",
        queue_sha256="",
        started_local="",
        models=models,
        host=ev.Host(name="box", system="Linux", machine="x86_64", cpus=8, memory_mb=65536.0),
        boot_id="",
        versions={},
        plugins=(),
    )


def checked(**changes: Any) -> ev.CheckedModel:
    fields: dict[str, Any] = {
        "model": "gemma",
        "loaded": True,
        "status": "ok",
        "content_chars": 5,
        "ram_before_mb": 4000.0,
        "ram_after_mb": 12500.4,
        "ram_delta_mb": 8500.4,
        "ram_back_mb": 4010.0,
        "baseline_proven": True,
        "role": "eval",
        "endpoint": "http://127.0.0.1:1234/v1",
        "answered_by": "gemma",
        "loaded_models": ("gemma",),
        "context_length": 8192,
        "seconds": 12.5,
        "reset_verdict": "verified",
        "evict_verdict": "verified",
        "memory_back": True,
        "verdict": "ok",
    }
    return ev.CheckedModel(**{**fields, **changes})


WORDS: dict[str, list[tuple[ev.Event, str | None]]] = {
    "night.started": [(plan(ev.NightStarted), "night started: 2 entries, 3 steps to run")],
    "night.resumed": [(plan(ev.NightResumed), "night resumed: 2 entries, 3 steps to run")],
    "night.waiting": [
        (ev.NightWaiting(until="2026-12-24T23:00:00+01:00"), "waiting until 2026-12-24 23:00"),
    ],
    "night.asked": [
        (ev.NightAsked(what="pause", by="nora"), "asked by nora: pause as soon as nothing runs"),
        (ev.NightAsked(what="stop_after_entry", by="nora"), "asked by nora: stop after this entry"),
    ],
    "night.paused": [(ev.NightPaused(by="nora"), "paused; `runq unpause` goes on")],
    "night.unpaused": [(ev.NightUnpaused(by="nora", seconds=90.0), "goes on after a pause of 1:30 min")],
    "night.frozen": [(ev.NightFrozen(), "stopped by Ctrl-Z, with all that runs; `fg` goes on")],
    "night.continued": [(ev.NightContinued(seconds=5.0), "goes on after 5 s")],
    "night.kept_awake": [
        (ev.NightKeptAwake(how="systemd-inhibit"), "the machine is kept awake by systemd-inhibit"),
    ],
    "night.slept": [
        (ev.NightSlept(seconds=3600.0, how="CLOCK_BOOTTIME"), "the machine slept for 1:00 h"),
    ],
    "entry.started": [(ev.EntryStarted(), "e0 gemma")],
    "reset.started": [(ev.ResetStarted(backend="lms", before_step="eval"), None)],
    "reset.finished": [
        (
            ev.ResetFinished(
                backend="lms", verdict="verified", loaded_before=("a", "b"), loaded_after=(), seconds=61.0
            ),
            "e0 reset lms: verified, was loaded: a, b, 1:01 min",
        ),
        (
            ev.ResetFinished(
                backend="ollama",
                verdict="failed",
                loaded_before=None,
                loaded_after=None,
                seconds=0.4,
                reason="it does not answer",
            ),
            "e0 reset ollama: failed (it does not answer), 0 s",
        ),
    ],
    "settle.started": [(ev.SettleStarted(reference_mb={}), None)],
    "settle.finished": [
        (
            ev.SettleFinished(
                status="settled",
                proven=True,
                waited_s=8.0,
                baseline_mb={"system": 4000.4, "psutil_used": 5000.0},
                probes=(),
            ),
            "e0 memory settled after 8 s: system 4000 MB, psutil_used 5000 MB (proven)",
        ),
        (
            ev.SettleFinished(status="timeout", proven=False, waited_s=120.0, baseline_mb={}, probes=()),
            "e0 memory timeout after 2:00 min: no figure (not proven)",
        ),
    ],
    "cooldown.started": [(ev.CooldownStarted(seconds=30.0), "e0 cooldown 30 s")],
    "step.started": [
        (started(), "e0 eval started (timeout 4:00 h), log /home/nora/runs/n_queue/logs/e0-eval-1.log"),
    ],
    "step.spawned": [(ev.StepSpawned(pid=1, created_at=1.0, boot_id=""), None)],
    "step.finished": [
        (
            ev.StepFinished(status="ok", seconds=185.0, model_delta_mb={"system": 8500.4}, baseline_proven=True),
            "e0 eval ok in 3:05 min [system +8500 MB]",
        ),
        (
            ev.StepFinished(
                status="failed",
                seconds=2.0,
                reason="it exited with 3",
                model_delta_mb={"system": -3.6},
                survivors=(77,),
            ),
            "e0 eval failed in 2 s - it exited with 3 [system -4 MB (baseline not proven)] (could not end [77])",
        ),
        (ev.StepFinished(status="interrupted"), "e0 eval interrupted"),
    ],
    "step.skipped": [
        (ev.StepSkipped(reason="eval is not ok"), "e0 eval skipped: eval is not ok"),
        (ev.StepSkipped(reason="set aside: it died", gave_up=True), "e0 eval set aside: it died"),
    ],
    "step.deferred": [
        (
            ev.StepDeferred(reason="the deadline has passed", until="2026-12-25T07:00:00+01:00", left_s=-1.0),
            "e0 eval left for another time: the deadline has passed",
        ),
    ],
    "retry.waiting": [
        (ev.RetryWaiting(number=1, of=3, seconds=90.0), "e0 eval is tried again in 1:30 min (retry 1 of 3)"),
    ],
    "endpoint.dead": [
        (
            ev.EndpointDead(endpoint="loopback:8080", model="m", reason="loopback:8080 cannot be reached", failures=3),
            "e0 eval: loopback:8080 does not answer (3 times): loopback:8080 cannot be reached",
        ),
    ],
    "restart.started": [(ev.RestartStarted(argv=("x",), log="/l"), "e0 restarting the endpoint")],
    "restart.finished": [
        (ev.RestartFinished(exit_code=0, seconds=61.0), "e0 restart command ended: exit code 0, 1:01 min"),
        (
            ev.RestartFinished(signal="SIGTERM", seconds=300.0, reason="it ran past its limit of 300 s"),
            "e0 restart command ended: SIGTERM, 5:00 min - it ran past its limit of 300 s",
        ),
        (
            ev.RestartFinished(seconds=0.0, reason="there is no such program"),
            "e0 restart command ended: not started, 0 s - there is no such program",
        ),
    ],
    "entry.finished": [(ev.EntryFinished(status="complete"), None)],
    "server.started": [(ev.ServerStarted(argv=("x",), log="/l", model="gemma"), None)],
    "server.spawned": [(ev.ServerSpawned(pid=77, created_at=1.0, boot_id=""), "e0 server started (pid 77)")],
    "server.finished": [
        (ev.ServerFinished(stopped=True), "e0 server stopped"),
        (
            ev.ServerFinished(stopped=False, reason="it exited with 1", survivors=(78,)),
            "e0 server ended: it exited with 1; could not end [78]",
        ),
    ],
    "warning": [
        (ev.Warned(message="the disk is full", remedy="make room"), "e0 warning: the disk is full - make room"),
        (ev.Warned(message="no remedy"), "e0 warning: no remedy"),
    ],
    "night.interrupted": [(ev.NightInterrupted(reason="SIGINT"), "night interrupted: SIGINT")],
    "night.finished": [(ev.NightFinished(total=2, complete=1), "night finished: 1 of 2 entries complete")],
    "host.joined": [
        (
            ev.HostJoined(
                host="anna",
                machine=ev.Host(name="anna", system="Linux 6", machine="x86_64", cpus=8, memory_mb=16384.0),
                address="tls://192.0.2.7:40001",
                slots=1,
            ),
            "anna takes part (1 at a time)",
        ),
    ],
    "host.lost": [
        (
            ev.HostLost(host="anna", reason="its Dask worker left"),
            "anna cannot be reached: its Dask worker left",
        ),
    ],
    "lease.granted": [(ev.LeaseGranted(host="anna", until="", lease_s=300.0), "e0 goes to anna")],
    "lease.renewed": [(ev.LeaseRenewed(lease=7, host="anna", until=""), None)],
    "lease.ended": [
        (ev.LeaseEnded(lease=7, host="anna", how="done"), None),
        (
            ev.LeaseEnded(lease=7, host="anna", how="expired", reason="it was silent"),
            "e0 taken back from anna: it was silent",
        ),
    ],
    "delivery.late": [
        (
            ev.DeliveredLate(lease=7, host="anna", name="step.finished", event={}),
            "e0 step.finished of anna came after its lease had ended",
        ),
    ],
    "check.started": [(check_started("gemma", "qwen"), "check started: 2 models")],
    "check.model": [
        (checked(), "e0 gemma: ok (answer ok) [+8500 MB]"),
        (
            checked(
                status="reasoning_only",
                ram_delta_mb=None,
                verdict="warn",
                problem="loaded beside it: qwen",
                remedy="close it",
            ),
            "e0 gemma: warn (answer reasoning_only) - loaded beside it: qwen",
        ),
        (
            checked(status="error", ram_delta_mb=-0.4, verdict="fail", problem="no answer within 300 s"),
            "e0 gemma: fail (answer error) [+0 MB] - no answer within 300 s",
        ),
    ],
    "check.finished": [
        (ev.CheckFinished(failed=2), "check finished: 2 failed"),
        (ev.CheckFinished(failed=0, interrupted="SIGINT"), "check interrupted: SIGINT"),
    ],
    "import.finished": [
        (
            ev.Imported(
                source="touchstone", path="/s.json", sha256="ab", measured_at="2026-09-01T20:00:00Z", entries=()
            ),
            None,
        ),
    ],
    "journal.salvaged": [(ev.JournalSalvaged(source="/j.db", sha256="ab", events=41, lost=2), None)],
}
"""Every kind of event and what it says; ``None``: nothing that is worth a line."""


def test_every_kind_of_event_has_its_words() -> None:
    assert list(WORDS) == list(EVENT_CLASSES)
    assert all(type(event).kind == kind for kind, cases in WORDS.items() for event, _ in cases)


@pytest.mark.parametrize(("event", "expected"), [case for cases in WORDS.values() for case in cases])
def test_the_words_of_an_event(event: ev.Event, expected: str | None) -> None:
    of_none = event.kind.startswith(("night.", "host.")) or event.kind in ("check.started", "check.finished")
    entry = None if of_none else 0
    assert words(event, entry=entry, step="eval", names={0: "gemma"}) == expected


def test_on_a_terminal_a_step_that_starts_does_not_say_where_its_log_is() -> None:
    assert words(started(), entry=0, step="eval", names={}, with_log=False) == "e0 eval started (timeout 4:00 h)"


def test_an_event_of_a_newer_version_says_nothing() -> None:
    assert words(ev.UnknownEvent(name="moon.rose", data={}), entry=0, step=None, names={}) is None


@pytest.mark.parametrize("text", ["one\ntwo", "one\r\n two", "\x1b[31mone\x1b[0m two", "one\ttwo"])
def test_an_event_is_one_line_whatever_it_quotes(text: str) -> None:
    assert words(ev.Warned(message=text), entry=None, step=None, names={}) == "warning: one two"
    assert words(ev.EntryStarted(), entry=4, step=None, names={4: text}) == "e4 one two"


# --- where there is no terminal ---------------------------------------------------------------------------------


def test_lines_are_dated() -> None:
    written: list[str] = []
    lines = Lines(written.append, now=lambda: datetime(2026, 9, 1, 22, 0, 5, 999))
    lines.event(plan(), entry=None, step=None, attempt=None)
    lines.event(ev.EntryStarted(), entry=1, step=None, attempt=None)
    lines.event(ev.ResetStarted(backend="lms", before_step="eval"), entry=1, step=None, attempt=None)
    lines.tick(entry=1, step="eval", seconds=1.0, memory_mb=1.0)
    assert written == ["2026-09-01 22:00:05 night started: 2 entries, 3 steps to run", "2026-09-01 22:00:05 e1 qwen"]


@pytest.mark.parametrize("terminal", [None, "dumb"])
def test_the_observer_writes_lines_where_nothing_can_be_redrawn(
    terminal: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if terminal:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setenv("TERM", terminal)
    with observer() as watching:
        assert isinstance(watching, Lines)
        watching.event(ev.NightFinished(total=1, complete=1), entry=None, step=None, attempt=None)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d night finished: 1 of 1 entries complete\n", printed.err)


# --- on a terminal ----------------------------------------------------------------------------------------------


class Screen:
    """A live view on a terminal of a given width; what it shows, without the colours."""

    def __init__(self, width: int, usual: Callable[..., float | None] = lambda *_: None, **options: Any) -> None:
        self.out = io.StringIO()
        self.console = Console(file=self.out, width=width, height=24, force_terminal=True, **options)
        self.live = Live(console=self.console, auto_refresh=False, transient=True)
        self.view = LiveView(self.console, self.live, usual)
        self.live.start()

    def tick(self, **values: Any) -> str:
        """The living line after a tick."""
        self.out.truncate(0)
        self.out.seek(0)
        self.view.tick(**{"entry": 0, "step": "eval", "seconds": 61.0, "memory_mb": None, **values})
        return self.shown()

    def shown(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.out.getvalue()).replace("\r", "")


def test_the_living_line_tells_where_the_night_is() -> None:
    screen = Screen(
        120, usual=lambda step, model, pack: 3600.0 if (step, model, pack) == ("eval", "qwen", "office.yaml") else None
    )
    screen.view.event(plan(ev.NightStarted, "gemma", "qwen", "phi"), entry=None, step=None, attempt=None)
    screen.view.event(started(), entry=1, step="eval", attempt=1)
    line = screen.tick(entry=1, memory_mb=12345.6)
    assert line == "[2/3] e1 qwen · eval · 1:01 min of 4:00 h · usually 1:00 h · memory 12,346 MB"
    assert screen.tick(entry=2) == "[3/3] e2 phi · eval · 1:01 min of 4:00 h"


def test_entries_without_work_do_not_count() -> None:
    screen = Screen(120)
    night = plan(ev.NightResumed, "gemma", "qwen")
    idle = ev.PlannedStep(name="judge", identity="", run=False, why="done")
    first, second = night.entries
    entries = (attrs.evolve(second, steps=(idle,)), first)
    screen.view.event(attrs.evolve(night, entries=entries), entry=None, step=None, attempt=None)
    assert screen.tick(entry=0).startswith("[1/1] e0 gemma")


def test_settling_has_no_timeout_of_a_step() -> None:
    screen = Screen(120, usual=lambda *_: 5.0)
    screen.view.event(plan(), entry=None, step=None, attempt=None)
    screen.view.event(started(), entry=0, step="eval", attempt=1)
    assert (
        screen.tick(step="settle", seconds=4.0, memory_mb=4000.0) == "[1/2] e0 gemma · settle · 4 s · memory 4,000 MB"
    )


@pytest.mark.parametrize("width", [20, 50, 80])
def test_the_living_line_never_wraps(width: int) -> None:
    screen = Screen(width)
    screen.view.event(
        plan(ev.NightStarted, "an-organisation/a-very-long-model-name-70b-instruct-q4_k_m" * 2),
        entry=None,
        step=None,
        attempt=None,
    )
    screen.view.event(started(), entry=0, step="eval", attempt=1)
    line = screen.tick(memory_mb=12345.6)
    assert "\n" not in line
    assert len(line) <= width - 2, "there is room for ^C"
    assert "1:01 min" in line or width == 20, "the time is what one looks for"
    assert "an-orga" in line or width == 20


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (60, "[1/2] e0 gemma-4-12b · eval · 5 s of 4:00 h · memory 12 MB"),
        (57, "[1/2] e0 gemma-4-12b · eval · 5 s of 4:00 h"),
        (43, "[1/2] e0 gemma-4-12b · eval · 5 s of 4:00 h"),
        (42, "[1/2] e0 gemma-4-1… · eval · 5 s of 4:00 h"),
        (36, "[1/2] e0 gem… · eval · 5 s of 4:00 h"),
    ],
)
def test_what_gives_way_on_a_narrow_terminal(width: int, line: str) -> None:
    assert fitted("[1/2] e0 ", "gemma-4-12b", ["eval", "5 s of 4:00 h", "memory 12 MB"], width) == line


@pytest.mark.parametrize("model", ["a\nb", "\x1b[2Ja", "a\tb", "[red]a[/red]", ":boom:"])
def test_a_hostile_model_id_stays_text_on_one_line(model: str) -> None:
    screen = Screen(80)
    screen.view.event(plan(ev.NightStarted, model), entry=None, step=None, attempt=None)
    line = screen.tick()
    assert "\n" not in line and "\x1b[2J" not in screen.out.getvalue()
    if model[0] in "[:":
        assert model in line, "no mark-up, no emoji codes"


def test_transitions_scroll_above_it() -> None:
    screen = Screen(80)
    screen.view.event(plan(), entry=None, step=None, attempt=None)
    screen.view.event(
        ev.StepFinished(status="failed", seconds=2.0, reason="it exited with 3"), entry=0, step="eval", attempt=1
    )
    screen.view.event(ev.SettleStarted(reference_mb={}), entry=0, step=None, attempt=None)
    assert "night started: 2 entries, 3 steps to run\n" in screen.shown()
    assert "e0 eval failed in 2 s - it exited with 3\n" in screen.shown()


def test_colour_on_a_terminal_and_none_under_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    failed = ev.StepFinished(status="failed", seconds=2.0)

    def output() -> str:
        screen = Screen(80)
        screen.view.event(failed, entry=0, step="eval", attempt=1)
        return screen.out.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[31m" in output()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", output())


# --- an observer that fails -------------------------------------------------------------------------------------


class Failing:
    """An observer whose terminal was closed."""

    def __init__(self) -> None:
        self.asked = 0

    def event(self, event: ev.Event, **_: Any) -> None:
        self.asked += 1
        raise OSError(5, "Input/output error")

    def tick(self, **_: Any) -> None:
        self.asked += 1
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize("how", ["event", "tick"])
def test_an_observer_that_raises_is_switched_off_with_a_warning(told: Any, how: str) -> None:
    watching = Failing()
    recorder = Recorder(journal=told.journal, night=told.night, observer=watching)
    for _ in range(3):
        if how == "event":
            recorder.event(ev.EntryStarted(), entry=0)
        else:
            recorder.tick(entry=0, step="eval", seconds=1.0, memory_mb=None)
    assert watching.asked == 1
    assert isinstance(recorder.observer, Silent)
    with told.journal.reader() as reader:
        kinds = [event.kind for event in reader.events()]
        (warning,) = reader.events(kinds=["warning"])
    assert kinds.count("entry.started") == (3 if how == "event" else 0), "every event is in the journal all the same"
    assert warning.data["message"] == "the display failed and is off: OSError: [Errno 5] Input/output error"
    assert warning.data["remedy"] == "the night goes on without it"


def test_a_closed_terminal_does_not_end_the_display_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        closed_now = False

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            if self.closed_now:
                raise OSError(5, "Input/output error")
            return super().write(text)

    terminal = Closed()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with observer() as watching:
        watching.tick(entry=0, step="eval", seconds=1.0, memory_mb=None)
        terminal.closed_now = True
        with pytest.raises(OSError):
            watching.event(ev.NightFinished(total=1, complete=1), entry=None, step=None, attempt=None)


# --- the end ----------------------------------------------------------------------------------------------------


def ended(**changes: Any) -> dict[str, Any]:
    entry = {
        "id": 0,
        "model_id": "gemma",
        "pack": "packs/office.yaml",
        "eval_status": "ok",
        "eval_seconds": 3600.0,
        "judge_status": "failed",
        "judge_seconds": 2.0,
        "model_delta_mb": 8500.4,
        "baseline_proven": True,
        "reason": "judge: it exited with 3",
    }
    return {"night": "2026-09-01_220000", "complete": 0, "total": 1, "left": [], "entries": [{**entry, **changes}]}


def closed(summary: dict[str, Any], capsys: pytest.CaptureFixture[str], **changes: Any) -> str:
    given: dict[str, Any] = {"resume": None, "earlier": None, "ran": True, **changes}
    closing(summary, folder=Path("/home/nora/runs/2026-09-01_220000_queue"), **given)
    printed = capsys.readouterr()
    assert printed.out == "", "standard output is for results"
    return printed.err


def test_the_end_shows_the_table_the_files_and_the_way_on(capsys: pytest.CaptureFixture[str]) -> None:
    text = closed(
        ended(), capsys, resume="runq night queue.yaml --resume", earlier="runq night queue.yaml --resume --night x"
    )
    assert "night 2026-09-01_220000" in text
    for words_ in ("e0", "gemma", "packs/office.yaml", "ok 1:00 h", "failed 2 s", "8500"):
        assert words_ in text
    lines = text.splitlines()
    assert "e0: judge: it exited with 3" in lines
    assert "0 of 1 entries complete" in lines
    assert "summary  /home/nora/runs/2026-09-01_220000_queue/summary.md" in lines
    assert "journal  /home/nora/runs/journal.db" in lines
    assert "go on    runq night queue.yaml --resume" in lines
    assert lines[-1].endswith("go on with it by: runq night queue.yaml --resume --night x")
    assert "baseline is not proven" not in text


def test_an_unproven_baseline_is_marked_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    text = closed(ended(baseline_proven=False), capsys)
    assert "8500*" in text and "* the baseline is not proven" in text


def test_nothing_left_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing is left to run in night 2026-09-01_220000" in closed(ended(), capsys, ran=False)


@pytest.mark.parametrize("width", [50, 80, 120])
@pytest.mark.parametrize("model", ["google/gemma-4-12b", "x" * 150, "a\nb\x1b[31mc", "[red]x[/red]"])
def test_the_table_keeps_its_shape(
    width: int, model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = closed(ended(model_id=model), capsys)
    table = [line for line in text.splitlines() if line and line[0] in "┏┃┡│└"]
    assert len({len(line) for line in table}) == 1
    assert len(table[0]) <= width
    assert "\x1b" not in text
    if model[0] == "[":
        assert "[red]x[/red]" in text.replace("│", "").replace("\n", "").replace(" ", "") or width == 50


def test_paths_and_commands_are_not_broken_into_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    command = "runq night /home/nora/a-long-folder-name/queue.yaml --resume --night 2026-09-01_220000"
    assert f"go on    {command}" in closed(ended(), capsys, resume=command).splitlines()
