"""One run of the campaign: the night under its faults, resumed until it is done, and what it then has to answer for."""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import psutil

from bench import laws, laws_of_files
from bench.faults import runner
from bench.faults.scenario import Fault, Scenario, described, scenario
from runq_journal import JournalReader
from runq_schemas.errors import JournalError

SECRET = "sk-campaign-4711-never-to-be-seen"

LONGEST_S = 60.0
"""A runner that takes longer than this hangs: the longest undisturbed night of a scenario takes a few seconds."""

LEFT_S = 3.0
"""How long a process may take to be gone that was sent SIGKILL: process 1 reaps when it likes."""

LAWS = {**laws.LAWS, **laws_of_files.LAWS_OF_FILES}

OWN_LAWS = {
    "exit codes": "a runner ends with a code that fits what befell it, and no error is unforeseen",
    "no runner hangs": f"every runner ends within {LONGEST_S:g} s",
    "events stay": "no event is lost or changed by what befalls a later runner",
    "no process is left": "nothing of a step or server is alive once its runner has ended, or a later one has begun",
    "nothing runs unrecorded": "every process of a step belongs to an attempt that the journal knew before",
    "one step at a time": "nothing of an earlier step, child or grandchild, is there when a step begins",
    "what is ok has run": "every ok attempt did its work, once",
    "the end is that of an undisturbed night": "every step stands as it would have without any fault",
    "nothing is left to do": "a further resume of a complete night runs nothing and writes nothing",
    "no secret is told": "no secret stands in a journal, a summary, a bundle's name or what a runner prints",
}
"""The laws that need more than the journal and the files beside it, each in a sentence."""


@attrs.define
class Outcome:
    """What came of one run: which faults really happened, and which laws broke, each with where and how."""

    seed: int
    seconds: float = 0.0
    runners: int = 0
    events: int = 0
    injected: list[str] = attrs.field(factory=list)
    broken: dict[str, list[str]] = attrs.field(factory=dict)
    told: list[str] = attrs.field(factory=list)

    def breaks(self, law: str, how: str) -> None:
        """Note that a law does not hold."""
        self.broken.setdefault(law, []).append(how)


def run(seed: int, folder: Path, *, keep: bool = False) -> Outcome:
    """Play the run of a seed in a new folder below ``folder``; it is removed unless a law broke or ``keep``."""
    began = time.monotonic()
    outcome = Outcome(seed=seed)
    one = scenario(seed)
    base = folder / f"seed-{seed}"
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True, mode=0o700)
    play = _Play(one, base, outcome)
    try:
        play.night()
        play.judge()
    finally:
        play.clear()
    outcome.seconds = time.monotonic() - began
    outcome.told = [*described(one), *play.story]
    if not outcome.broken and not keep:
        shutil.rmtree(base)
    return outcome


@attrs.define
class _Play:
    one: Scenario
    base: Path
    outcome: Outcome
    story: list[str] = attrs.field(factory=list, init=False)
    env: dict[str, str] = attrs.field(factory=dict, init=False)
    seen: list[tuple[int, str]] = attrs.field(factory=list, init=False)
    started: list[runner.Runner] = attrs.field(factory=list, init=False)

    @property
    def runs(self) -> Path:
        """The runs folder."""
        return self.base / "runs"

    @property
    def journal(self) -> Path:
        """The journal."""
        return self.runs / "journal.db"

    def night(self) -> None:
        """Every disturbed runner, and then one that nothing disturbs."""
        self.env = {
            name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "LC_ALL", "TMPDIR", "HOME")
        } | {
            "XDG_STATE_HOME": str(self.base / "state"),
            "XDG_RUNTIME_DIR": str(self.base / "run"),
            "FAULTS_API_KEY": SECRET,
            "NO_COLOR": "1",
        }
        port = _free_port()
        (self.base / "queue.yaml").write_text(self.one.queue(port), encoding="utf-8")
        for number in range(len(self.one.entries)):
            (self.base / f"pack{number}.yaml").write_text(f"id: pack-{number}\n", encoding="utf-8")
        for fault in self.one.faults:
            self._disturbed(fault)
        if self.one.torn and self.journal.exists():
            _tear(self.journal, self.one.seed)
        if self.one.turned and self._events():
            (self.base / "queue.yaml").write_text(self.one.queue(port, turned=True), encoding="utf-8")
        last = self._start(self._resume(lift=True), Fault(kind="none"))
        self._wait(last)
        self._ended(last, Fault(kind="none"), {0} if self.one.all_complete else {1})
        if self.one.again and self.one.all_complete:
            self._nothing_left()

    # --- runners --------------------------------------------------------------------------------------------------

    def _resume(self, *, lift: bool = False) -> list[str]:
        """The words that start the night, or go on with it once its journal has one."""
        if not self._events():
            return ["night", "queue.yaml"]
        return ["night", "queue.yaml", "--resume", *(["--with-set-aside"] if lift else [])]

    def _start(self, words: Sequence[str], fault: Fault) -> runner.Runner:
        number = len(self.started)
        one = runner.start(words, base=self.base, env=self.env, out=self.base / f"runner-{number}.out", fault=fault)
        self.started.append(one)
        self.outcome.runners += 1
        self.story.append(f"  $ runq {' '.join(words)}    (runner {number}: {fault})")
        return one

    def _disturbed(self, fault: Fault) -> None:
        one = self._start(self._resume(), fault)
        helpers = self._from_outside(one, fault) if fault.where == "moment" else []
        self._wait(one)
        for helper in helpers:
            self._wait(helper)
        if one.hit:
            self.outcome.injected.append(f"{fault.kind} {fault.how}".strip() if fault.kind == "asked" else fault.kind)
        self._ended(one, fault, _codes(fault, one.hit))

    def _from_outside(self, one: runner.Runner, fault: Fault) -> list[runner.Runner]:
        """What is done to a runner from outside, so many seconds after its start."""
        while one.poll() is None and one.age_s() < fault.at:
            time.sleep(0.002)
        if one.poll() is not None:
            return []
        one.fired.touch()
        if fault.kind == "kill":
            one.send(signal.SIGKILL)
        elif fault.kind == "signal":
            name, _, twice = fault.how.partition(" ")
            for _ in range(2 if twice else 1):
                one.send(getattr(signal, name))
        elif fault.kind == "stopped":
            one.send(signal.SIGSTOP)
            time.sleep(0.1)
            one.send(signal.SIGCONT)
        elif fault.kind == "second runner":
            second = self._start(self._resume(), fault)
            self._wait(second)
            self._fits(second, {0, 1, 2, 3})
        elif fault.kind == "looked at":
            look = self._start(["status", "--json", "--runs", str(self.runs)], fault)
            self._wait(look)
            self._fits(look, {0, 2})
        elif fault.kind == "asked":
            word, *more = fault.how.split()
            asked = self._start([word, *more, "--runs", str(self.runs)], fault)
            self._wait(asked)
            self._fits(asked, {0, 1, 2})
            if word == "pause":
                time.sleep(0.05)
                return [self._start(["unpause", "--runs", str(self.runs)], fault)]
        return []

    def _wait(self, one: runner.Runner) -> None:
        """Wait for a runner's end; one that stopped itself is told to go on."""
        pause_s = 0.001
        while one.poll() is None:
            if one.stopped:
                one.stopped = False
                time.sleep(0.05)
                one.send(signal.SIGCONT)
            if one.age_s() > LONGEST_S:
                self.outcome.breaks("no runner hangs", f"runner {self.started.index(one)} ran for {LONGEST_S:g} s")
                one.send(signal.SIGKILL)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.01)
        self.story.append(f"    runner {self.started.index(one)} ended with {one.code} after {one.age_s():.2f} s")

    def _fits(self, one: runner.Runner, codes: set[int]) -> None:
        number = self.started.index(one)
        if one.code not in codes:
            last = one.said.strip().splitlines()[-3:]
            self.outcome.breaks("exit codes", f"runner {number} ended with {one.code}: {' | '.join(last)}")
        for word in ("Traceback", "unforeseen", "Error in sys"):
            if word in one.said:
                line = next(line for line in one.said.splitlines() if word in line)
                self.outcome.breaks("exit codes", f"runner {number} said: {line}")
        if SECRET in one.said:
            self.outcome.breaks("no secret is told", f"runner {number} printed it")

    def _ended(self, one: runner.Runner, fault: Fault, codes: set[int]) -> None:
        """What has to hold right after a runner's end."""
        self._fits(one, codes)
        events = self._events()
        if events[: len(self.seen)] != self.seen:
            self.outcome.breaks("events stay", f"after runner {self.started.index(one)} ({fault})")
        # Whoever was killed, or ended before it could even look at the journal, leaves what the next one ends.
        swept = one.code != -signal.SIGKILL and len(events) > len(self.seen)
        self.seen = events
        if swept:
            self._nobody_left(f"after runner {self.started.index(one)} ({fault})")

    def _events(self) -> list[tuple[int, str]]:
        if not self.journal.exists():
            return []
        try:
            with JournalReader.open(self.journal) as reader:
                return [(event.id, event.hash) for event in reader.events()]
        except JournalError as error:
            if self.seen or "still empty" not in error.message:
                self.outcome.breaks("events stay", f"the journal cannot be read: {error.message}")
            return []

    def _nothing_left(self) -> None:
        before = self._events()
        again = self._start(self._resume(), Fault(kind="none"))
        self._wait(again)
        self._fits(again, {0})
        if self._events() != before:
            self.outcome.breaks("nothing is left to do", f"it wrote {len(self._events()) - len(before)} events")
        entry = self.one.seed % len(self.one.entries)
        once_more = self._start(["rerun", f"e{entry}", "--runs", str(self.runs)], Fault(kind="none"))
        self._wait(once_more)
        self._ended(once_more, Fault(kind="none"), {0})

    # --- judgement ------------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Check every law."""
        if not self._events():
            self.outcome.breaks("nothing is lost", "there is no journal")
            return
        record = laws.read(self.journal)
        self.outcome.events = len(record.events)
        for name, breaches in laws.broken(record, LAWS).items():
            for breach in breaches:
                self.outcome.breaks(name, breach)
        for law, breach in self._witnessed(record):
            self.outcome.breaks(law, breach)
        for breach in self._undisturbed(record):
            self.outcome.breaks("the end is that of an undisturbed night", breach)
        for breach in laws_of_files.secrets_in(self.runs, [SECRET]):
            self.outcome.breaks("no secret is told", breach)

    def _witnessed(self, record: laws.Record) -> Iterator[tuple[str, str]]:
        """The ledger that the steps kept, beside the journal."""
        ledger = self.base / "ledger.jsonl"
        lines = [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []
        marks = {
            f"{record.uuid}/{e.night}/{e.entry}/{e.step}/{e.attempt}" for e in record.events if e.kind == "step.started"
        }
        for line in lines:
            if line["what"] == "start":
                if line["mark"] not in marks:
                    yield "nothing runs unrecorded", f"{line['mark']} is in no event"
                if not line["alone"]:
                    yield "one step at a time", f"something of an earlier step was there when {line['mark']} began"
        for what in ("start", "end"):
            told = [line["mark"] for line in lines if line["what"] == what]
            for mark in {mark for mark in told if told.count(mark) > 1}:
                yield "what is ok has run", f"{mark} has {told.count(mark)} times its {what}"
        ended = {line["mark"] for line in lines if line["what"] == "end"}
        for event in record.events:
            if event.kind == "step.finished" and event.data["status"] == "ok":
                mark = f"{record.uuid}/{event.night}/{event.entry}/{event.step}/{event.attempt}"
                if mark not in ended:
                    yield "what is ok has run", f"event {event.id}: {mark} is ok and has not done its work"

    def _undisturbed(self, record: laws.Record) -> Iterator[str]:
        """The last word on each step, against what the scenario says of an undisturbed night."""
        if len(record.nights) != 1:
            yield f"there are {len(record.nights)} nights"
            return
        stands = laws.last_words(record.events)
        for number, expected in enumerate(self.one.expected()):
            for step, word in expected.items():
                found = stands.get((number, step), "nothing")
                if found != word:
                    yield f"e{number} {step} stands at {found}, not {word}"
        if record.events[-1].kind not in ("night.finished", "warning"):
            yield f"the last event is {record.events[-1].kind}"

    def _nobody_left(self, when: str) -> None:
        end = time.monotonic() + LEFT_S
        while found := list(self._marked()):
            if time.monotonic() > end:
                self.outcome.breaks("no process is left", f"{when}: {', '.join(found)}")
                return
            time.sleep(0.02)

    def _marked(self) -> Iterator[str]:
        """Processes that bear the mark of this journal, or hold the lock of its steps."""
        for process in psutil.process_iter():
            try:
                if process.pid not in (one.pid for one in self.started if one.code is None) and self._is_ours(process):
                    yield f"pid {process.pid} ({' '.join(process.cmdline()[-4:])})"
            except psutil.Error:
                continue
        if not _free(self.base / "machine.lock"):
            yield "the holder of machine.lock"

    def _is_ours(self, process: psutil.Process) -> bool:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get("XDG_STATE_HOME") == self.env.get(
            "XDG_STATE_HOME"
        )

    def clear(self) -> None:
        """End whatever is left of this run."""
        for one in self.started:
            if one.poll() is None:
                one.send(signal.SIGKILL)
                while one.poll() is None:
                    time.sleep(0.01)
        for process in psutil.process_iter():
            try:
                if self._is_ours(process):
                    process.kill()
            except psutil.Error:
                continue


def _codes(fault: Fault, hit: bool) -> set[int]:
    """The exit codes that fit a fault (docs/commands.md): where it came too late, those of a night that ended."""
    done = {0, 1}
    if not hit:
        return done
    return done | {
        "kill": {-signal.SIGKILL},
        # Before runq's handlers stand and after they are taken down again, SIGTERM does what it does to any program.
        "signal": {130, -signal.SIGTERM} if fault.how == "SIGTERM" else {130},
        "disk full": {4},
        "disk error": {4},
        "file error": {2, 4},
        "asked": {130},
        "second runner": {3},  # it was the first to take the lock
    }.get(fault.kind, set())


def _free(lock: Path) -> bool:
    """Whether nobody holds the lock."""
    if not lock.exists():
        return True
    with lock.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _tear(journal: Path, seed: int) -> None:
    """Append to the write-ahead log what a power cut leaves of a commit: half a frame of anything."""
    wal = journal.with_name(journal.name + "-wal")
    if wal.exists():
        with wal.open("ab") as stream:
            stream.write(random.Random(seed).randbytes(2000))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


def as_lines(counts: Mapping[str, int]) -> list[str]:
    """A table of counts."""
    width = max((len(name) for name in counts), default=0)
    return [f"  {name:<{width}}  {count:>5}" for name, count in counts.items()]
