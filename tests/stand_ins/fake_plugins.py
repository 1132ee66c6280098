"""Plugins that are told what to do: an endpoint that is a file with a number of MB, and ones that raise."""

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import attrs

from runq.plugin import Entry, Evidence, Metric, ResetContext, ResetOutcome, Step, Target


def fail(how: str) -> None:
    """Raise what an option names."""
    if how == "exit":
        raise SystemExit(7)
    if how == "hang":
        time.sleep(600)
    if how == "raise":
        raise ZeroDivisionError("scripted")
    if how == "runq":
        from runq.plugin import PluginError

        raise PluginError("scripted", remedy="none")


@attrs.frozen(kw_only=True)
class FakeReset:
    """Sets the file to ``mb`` and says ``verdict``."""

    can_verify: ClassVar[bool] = True
    file: str = "memory"
    mb: float = 1000.0
    verdict: str = "verified"
    still: tuple[str, ...] = ()
    bad: str = ""
    bad_details: bool = False

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        return None

    def reset(self, context: ResetContext) -> ResetOutcome:
        fail(self.bad)
        (context.entry.base_dir / self.file).write_text(str(self.mb))
        details = {"object": object()} if self.bad_details else {}
        return ResetOutcome(verdict=self.verdict, loaded_after=self.still, reason="as told", details=details)

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        return list(self.still) if self.still or self.verdict == "verified" else None


@attrs.frozen(kw_only=True)
class FakeProbe:
    """Reads the file, or says ``bad``: a number, or how to fail."""

    formula: ClassVar[str] = "what a file says"
    file: str = "memory"
    bad: str = ""

    def read_mb(self) -> float:
        fail(self.bad)
        return float(self.bad or Path(self.file).read_text())


@attrs.frozen(kw_only=True)
class FreeProbe(FakeProbe):
    """As `FakeProbe`, and tells that ``free`` MB are left: a number, or how to fail."""

    free: str = "4000"

    def free_mb(self) -> float:
        fail(self.free)
        return float(self.free)


@attrs.frozen(kw_only=True)
class PressedProbe:
    """Tells a pressure."""

    formula: ClassVar[str] = "what it is told"
    percent: str = "12.5"

    def pressure_percent(self) -> float:
        fail(self.percent)
        return float(self.percent)


@attrs.frozen(kw_only=True)
class HeldProbe:
    """What a stand-in and its children really hold: the resident set of the process in ``pid_file`` and below it.

    Whatever else the machine does while the tests run is not in it.
    """

    formula: ClassVar[str] = "RSS of one process tree, in MB (2**20 bytes)"
    pid_file: str = "host.pid"

    def read_mb(self) -> float:
        import psutil

        try:
            top = psutil.Process(int(Path(self.pid_file).read_text()))
            tree = [top, *top.children(recursive=True)]
        except psutil.NoSuchProcess:
            return 0.0
        held = 0
        for process in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                held += process.memory_info().rss
        return held / 2**20


@attrs.frozen(kw_only=True)
class ScoredHarness:
    """One step that writes answers.json: per score, each question's figure; their mean is the metric."""

    stderr: float | None = None
    keeps: bool = True

    def requires(self) -> Sequence[str]:
        return ()

    def steps(self, entry: Entry) -> Sequence[Step]:
        return [Step(name="eval", artifacts=("answers.json",))]

    def targets(self, entry: Entry) -> Sequence[Target]:
        return ()

    def argv(self, entry: Entry, step: Step, bundle: Path) -> Sequence[str]:
        return ["python", "score.py", entry.model.id, str(bundle)]

    def check(self, entry: Entry, step: Step, bundle: Path) -> Evidence:
        answers = json.loads((bundle / "answers.json").read_text())
        metrics = [
            Metric(name=name, value=sum(one.values()) / len(one), stderr=self.stderr, n=len(one))
            for name, one in answers.items()
        ]
        if not self.keeps:
            (bundle / "answers.json").write_text("{}")
        return Evidence(ok=True, metrics=tuple(metrics))

    @classmethod
    def answers(cls, bundle: Path) -> Mapping[str, Mapping[str, float]]:
        return json.loads((bundle / "answers.json").read_text())


@attrs.frozen(kw_only=True)
class FakeHarness:
    """One step, ``work.py``; raises where it is told to. ``told.json`` in the bundle holds facts and metrics."""

    bad_argv: str = ""
    bad_check: str = ""
    facts: str = ""

    def requires(self) -> Sequence[str]:
        return ()

    def steps(self, entry: Entry) -> Sequence[Step]:
        return [Step(name="work", artifacts=("work.txt",), reads=(entry.base_dir / "work.py",))]

    def targets(self, entry: Entry) -> Sequence[Target]:
        return ()

    def argv(self, entry: Entry, step: Step, bundle: Path) -> Sequence[str]:
        fail(self.bad_argv)
        nul = "\0" if self.bad_argv == "nul" else ""
        return ["python", "work.py", entry.model.id + nul, str(bundle)]

    def check(self, entry: Entry, step: Step, bundle: Path) -> Evidence:
        fail(self.bad_check)
        facts = {"nan": {"n": float("nan")}, "object": {"o": object()}}.get(self.facts, {})
        told = bundle / "told.json"
        if told.exists():
            data = json.loads(told.read_text())
            metrics = tuple(Metric(**metric) for metric in data.get("metrics", ()))
            return Evidence(ok=True, facts=data.get("facts", {}), metrics=metrics)
        return Evidence(ok=True, facts=facts)
