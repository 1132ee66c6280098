"""A run of the campaign, made from its seed alone: a queue of small steps, and the faults that befall its runners."""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

HERE = Path(__file__).parent

LIMIT_S = 0.4
"""Timeout and stall limit of the steps that hang: short, for their time is the campaign's."""

STEPS = ("eval", "judge", "plot")

MODELS = ("gemma", "qwen/7b", "../../x<script>", "a b|c`d", "mod\u202eel", "-rf", "modèle")
"""Ids as people write them, and as nobody should."""

GOOD = ("good:0", "good:0.02", "good:0.06", "forks", "deaf_child", "noisy")

BAD: Mapping[str, str] = {
    "fails": "failed",
    f"dies:{int(signal.SIGSEGV)}": "failed",
    f"dies:{int(signal.SIGKILL)}": "failed",
    "lies": "failed",
    "no_space": "failed",
    "hangs": "timeout",
    "deaf": "timeout",
    "stalls": "stalled",
}
"""What a step that never succeeds does, and how its last attempt reads."""

RESETS: Mapping[str, str] = {
    "none": "reset: none",
    "command": "reset: {backend: command, command: 'true', verify: 'true'}",
    "command fails": "reset: {backend: command, command: 'false'}",
    "command hangs": "reset: {backend: command, command: 'sleep 600', timeout_s: 0.2}",
    "plugin": "reset: faulty",
    "plugin raises": "reset: {backend: faulty, how: raise}",
    "plugin exits": "reset: {backend: faulty, how: exit}",
    "plugin hangs": "reset: {backend: faulty, how: hang}",
    "server": "reset: {{backend: server, argv: [{python}, -I, -S, {server}, '{{port}}'], port: {port},"
    " health_interval_s: 0.02, start_timeout_s: 20}}",
    "server fails": "reset: {{backend: server, argv: [{python}, -c, 'exit(3)'], port: {port},"
    " health_interval_s: 0.02}}",
}


@attrs.frozen(kw_only=True)
class PlannedWork:
    """One step: what it does, and how it stands once the night is done and nothing disturbs it."""

    name: str
    does: str
    ends: str


@attrs.frozen(kw_only=True)
class PlannedEntry:
    """One entry. ``blind`` tells that no probe gives a figure, so that its memory never counts as settled.

    ``pause_s`` is its cooldown and its wait before a retry.
    """

    model: str
    reset: str
    on_dirty: str
    retries: int
    retry_when: str
    steps: tuple[PlannedWork, ...]
    pause_s: float = 0.0
    blind: bool = False

    @property
    def dirty(self) -> bool:
        """Whether it never gets as far as its steps."""
        fails = self.blind or self.reset in (
            "command fails",
            "command hangs",
            "plugin raises",
            "plugin exits",
            "plugin hangs",
        )
        return self.on_dirty == "skip" and fails

    def expected(self) -> dict[str, str]:
        """How each of its steps stands after a night that nothing disturbs."""
        if self.dirty:
            return dict.fromkeys((step.name for step in self.steps), "skipped")
        if self.reset == "server fails":  # the entry itself fails, and not its first step, which never began
            return dict.fromkeys((step.name for step in self.steps), "skipped") | {self.steps[0].name: "nothing"}
        stands: dict[str, str] = {}
        for step in self.steps:
            ok = all(word == "ok" for word in stands.values())
            stands[step.name] = step.ends if ok else "skipped"
        return stands


@attrs.frozen(kw_only=True)
class Fault:
    """What befalls one runner.

    Args:
        kind: a name of `KINDS`.
        at: the number of the runner's own event (``event``), of its call to the system (``call``), of a process of a
            ``step`` or a ``server`` that it starts, or seconds after its start (``moment``).
        where: which of these ``at`` counts.
        phase: of an event: ``before``, ``inside`` (its transaction is open) or ``after``.
        how: what the kind leaves open, such as the signal.
    """

    kind: str
    at: float = 0
    where: str = "event"
    phase: str = "after"
    how: str = ""

    def __str__(self) -> str:
        places = {"event": f"{self.phase} event", "call": "at call", "step": "in step", "server": "in server"}
        place = f"{places[self.where]} {self.at:g}" if self.where in places else f"after {self.at:.3f} s"
        return f"{self.kind}{f' ({self.how})' if self.how else ''} {place}" if self.kind != "none" else "none"


@attrs.frozen(kw_only=True)
class Scenario:
    """One run: the queue, the runners that are disturbed one after the other, and what comes after them.

    Args:
        torn: half a commit lies at the end of the write-ahead log before the last runner.
        turned: the entries stand the other way round in the file before the last runner.
        again: a complete night is resumed once more, and then an entry of it asked for again.
    """

    seed: int
    entries: tuple[PlannedEntry, ...]
    probe: str
    order: str
    faults: tuple[Fault, ...]
    torn: bool
    turned: bool
    again: bool

    def expected(self) -> list[dict[str, str]]:
        """How each entry's steps stand at the end."""
        return [entry.expected() for entry in self.entries]

    @property
    def all_complete(self) -> bool:
        """Whether the night ends with exit code 0."""
        return all(word == "ok" for entry in self.expected() for word in entry.values())

    def queue(self, port: int, *, turned: bool = False) -> str:
        """The queue file; ``turned``: its entries the other way round."""
        lines = [
            "defaults:",
            "  settle: {timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.01, epsilon_mb: 100000}",
            "  env: {FAULTS_API_KEY: '${FAULTS_API_KEY}'}",
            *([f"  probes: [{{probe: faulty, how: {self.probe}}}]"] if self.probe else []),
            f"order: {self.order}",
            "entries:",
        ]
        numbered = list(enumerate(self.entries))
        for number, entry in reversed(numbered) if turned else numbered:
            reset = RESETS[entry.reset]
            if entry.reset.startswith("server"):
                reset = reset.format(python=sys.executable, server=HERE / "server.py", port=port)
            limited = [step.name for step in entry.steps if step.does in ("hangs", "deaf")]
            stalled = [step.name for step in entry.steps if step.does == "stalls"]
            lines += [
                f"  - model: {json.dumps(entry.model)}",
                f"    pack: pack{number}.yaml",
                f"    {reset}",
                f"    on_dirty: {entry.on_dirty}",
                f"    retries: {entry.retries}",
                f"    retry_when: {entry.retry_when}",
                f"    retry_wait_s: {entry.pause_s}",
                f"    cooldown_s: {entry.pause_s}",
                *(
                    [f"    step_timeout_s: {{{', '.join(f'{name}: {LIMIT_S}' for name in limited)}}}"]
                    if limited
                    else []
                ),
                *(
                    [f"    stall_timeout_s: {{{', '.join(f'{name}: {LIMIT_S}' for name in stalled)}}}"]
                    if stalled
                    else []
                ),
                "    harness:",
                "      harness: command",
                "      steps:",
            ]
            for step in entry.steps:
                does = "hangs" if step.does == "stalls" else step.does
                argv = [sys.executable, "-I", "-S", str(HERE / "step.py"), does, step.name, "{bundle}"]
                words = ", ".join(json.dumps(word) for word in argv)
                lines.append(f"        {step.name}: {{argv: [{words}], artifacts: [{step.name}.txt]}}")
        return "\n".join(lines) + "\n"


KINDS = (
    *["kill"] * 8,
    *["signal"] * 4,
    "hang up",
    "Ctrl-Z",
    "stopped",
    "child killed",
    "child killed",
    "server killed",
    "disk full",
    "disk full",
    "disk error",
    "file error",
    "file error",
    "clock set",
    "slept",
    "second runner",
    "asked",
    "asked",
    "looked at",
)
"""The kinds of faults, each as often as it is to come."""


def scenario(seed: int) -> Scenario:
    """The run of a seed; the same in every version of Python, for `random.Random` promises that of these methods."""
    rng = random.Random(seed)
    entries = tuple(_entry(rng) for _ in range(rng.choice((1, 2, 2, 3, 3, 4))))
    models = rng.sample(MODELS, len(entries))
    probe = rng.choice(("", "", "''", "raise", "nan", "hang"))
    blind = probe in ("raise", "nan", "hang")
    entries = tuple(attrs.evolve(entry, model=model, blind=blind) for entry, model in zip(entries, models, strict=True))
    return Scenario(
        seed=seed,
        entries=entries,
        probe=probe,
        order=rng.choice(("entries", "entries", "entries", "phases")),
        faults=tuple(_fault(rng) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))),
        torn=rng.random() < 0.2,
        turned=rng.random() < 0.15,
        again=rng.random() < 0.3,
    )


def _entry(rng: random.Random) -> PlannedEntry:
    retries = rng.choice((0, 0, 1, 2))
    steps = tuple(_step(rng, name, retries) for name in STEPS[: rng.choice((1, 2, 2, 2, 3))])
    return PlannedEntry(
        model="",
        reset=rng.choice(("none", "none", *RESETS)),
        on_dirty=rng.choice(("warn", "warn", "retry", "skip")),
        retries=retries,
        retry_when=rng.choice(("now", "now", "end")),
        steps=steps,
        pause_s=rng.choice((0.0, 0.0, 0.05)),
    )


def _step(rng: random.Random, name: str, retries: int) -> PlannedWork:
    draw = rng.random()
    if draw < 0.15:
        does = rng.choice(tuple(BAD))
        return PlannedWork(name=name, does=does, ends=BAD[does])
    if draw < 0.25 and retries:
        return PlannedWork(name=name, does=f"flaky:{rng.randint(1, retries)}", ends="ok")
    return PlannedWork(name=name, does=rng.choice(GOOD), ends="ok")


def _fault(rng: random.Random) -> Fault:
    kind = rng.choice(KINDS)
    event = 1 + min(int(rng.expovariate(1 / 15)), 60)
    phase = rng.choice(("before", "inside", "after"))
    moment = rng.uniform(0.0, 0.8)
    if kind == "kill":
        where = rng.choice(("event", "event", "step", "step", "call", "moment"))
        at = {"event": event, "step": rng.randint(1, 5), "call": rng.randint(1, 250), "moment": moment}[where]
        return Fault(kind=kind, at=at, where=where, phase=phase)
    if kind == "signal":
        how = rng.choice(("SIGINT", "SIGTERM", "SIGINT twice"))
        where = rng.choice(("event", "call", "moment"))
        at = {"event": event, "call": rng.randint(1, 250), "moment": moment}[where]
        return Fault(kind=kind, at=at, where=where, phase=phase, how=how)
    if kind in ("hang up", "Ctrl-Z"):
        return Fault(kind=kind, at=event, phase=phase)
    if kind in ("child killed", "server killed"):
        return Fault(kind=kind, at=rng.randint(1, 4), where=kind.partition(" ")[0].replace("child", "step"))
    if kind == "disk full":
        return Fault(kind=kind, at=event, how=rng.choice(("journal", "files", "both")), phase="before")
    if kind == "disk error":
        return Fault(kind=kind, at=event, how="journal", phase="before")
    if kind == "file error":
        return Fault(kind=kind, at=rng.randint(1, 60), where="call", how=rng.choice(("EIO", "ENOSPC", "EMFILE")))
    if kind in ("clock set", "slept"):
        return Fault(kind=kind, at=event, how=rng.choice(("-86400", "-3600", "3600", "86400")), phase="before")
    if kind == "asked":
        return Fault(
            kind=kind, at=moment, where="moment", how=rng.choice(("stop", "stop --after-step", "skip", "pause"))
        )
    return Fault(kind=kind, at=moment, where="moment")


def described(one: Scenario) -> Sequence[str]:
    """The run in words, for whoever has to look at its failure."""
    lines = [f"seed {one.seed}: order {one.order}, probe {one.probe or 'system'}"]
    for number, entry in enumerate(one.entries):
        does = ", ".join(f"{step.name} {step.does}" for step in entry.steps)
        lines.append(
            f"  e{number} reset {entry.reset} (on_dirty {entry.on_dirty}),"
            f" {entry.retries} retries {entry.retry_when}, pauses {entry.pause_s:g} s: {does}"
        )
    lines += [f"  runner {number}: {fault}" for number, fault in enumerate(one.faults)]
    after = {"half a commit in the log": one.torn, "the file turned round": one.turned, "asked again": one.again}
    lines += [f"  then: {', '.join(word for word, true in after.items() if true) or 'nothing more'}"]
    return lines
