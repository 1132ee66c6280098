"""The whole plugin surface on one page.

A plugin is an attrs class registered under one of the entry-point groups `runq.reset`, `runq.probe` and
`runq.harness`. Its fields are its options in the queue file; its methods are one of the protocols below.
Memory is in MB (2**20 bytes), durations in seconds. Everything a plugin raises becomes the entry's recorded
failure or a warning; raise `PluginError` to say what the user can do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import attrs

from runq_schemas.errors import PluginError
from runq_schemas.queue import DEFAULT_STEP_TIMEOUT_S, DEFAULT_STEP_TIMEOUTS_S, ModelSpec

if TYPE_CHECKING:
    from runq.http import Garbage, HttpFailure, HttpReply, TimedOut, Unreachable, request_json
    from runq.looking import FindsServers, FoundServer, Look, Need, OfferedModel, Sought, TellsNeeds
    from runq_schemas.event_parts import Metric, Verdict

__all__ = [
    "Entry",
    "Evidence",
    "FindsServers",
    "FoundServer",
    "Garbage",
    "Harness",
    "HttpFailure",
    "HttpReply",
    "Look",
    "Metric",
    "ModelSpec",
    "NamesPacks",
    "NamesSteps",
    "Need",
    "OfferedModel",
    "PluginError",
    "Probe",
    "ResetBackend",
    "ResetContext",
    "ResetOutcome",
    "Server",
    "Sought",
    "StartsServer",
    "Step",
    "Supervisor",
    "Target",
    "TellsAnswers",
    "TellsContext",
    "TellsFree",
    "TellsNeeds",
    "TellsPressure",
    "TimedOut",
    "Unreachable",
    "Verdict",
    "default_timeout_s",
    "request_json",
]

_ELSEWHERE = {
    "runq.http": ("Garbage", "HttpFailure", "HttpReply", "TimedOut", "Unreachable", "request_json"),
    "runq.looking": ("FindsServers", "FoundServer", "Look", "Need", "OfferedModel", "Sought", "TellsNeeds"),
    "runq_schemas.event_parts": ("Metric", "Verdict"),
}


def __getattr__(name: str) -> Any:
    """What most commands do without is imported when a plugin first asks for it."""
    for module, names in _ELSEWHERE.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@attrs.frozen(kw_only=True)
class Entry:
    """An entry as plugins see it. Paths are absolute; ``base_dir`` is the steps' working directory."""

    id: int
    model: ModelSpec
    config: Path | None
    pack: Path | None
    judge_config: Path | None
    judge_model: str | None
    base_dir: Path


# --- reset backends ---------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class ResetOutcome:
    """What a reset achieved.

    Args:
        verdict: ``verified`` only when a second, independent reading proved that nothing is loaded *and* the
            process that held the model is gone or has shrunk (or nothing was loaded to begin with);
            ``unverified`` when that cannot be told; ``failed`` when something is still loaded or the endpoint
            could not be asked.
        loaded_before: model ids found loaded before; ``None`` when that cannot be told.
        loaded_after: model ids found loaded afterwards; ``None`` when that cannot be told.
        reason: why the verdict is not ``verified``; one sentence.
        remedy: what the user can do about it.
        details: figures for the journal (JSON data).
    """

    verdict: Verdict
    loaded_before: tuple[str, ...] | None = None
    loaded_after: tuple[str, ...] | None = None
    reason: str = ""
    remedy: str = ""
    details: Mapping[str, Any] = attrs.field(factory=dict)


class Server(Protocol):
    """A server process that runq supervises."""

    @property
    def pid(self) -> int:
        """The process id."""
        ...

    @property
    def model(self) -> str:
        """The id of the model it was started for."""
        ...

    def running(self) -> bool:
        """Whether the process has not ended; a zombie has."""
        ...

    def log_tail(self) -> Sequence[str]:
        """The last lines of its log."""
        ...


class Supervisor(Protocol):
    """Starts and ends servers for a reset backend: whole process trees, journalled, ended whatever happens."""

    def start(self, argv: Sequence[str], *, model: str, env: Mapping[str, str] | None = None) -> Server:
        """Spawn a server in the queue's folder, both streams to a log file; ``env`` is added to the steps' own.

        Raises:
            PluginError: the program cannot be started.
        """
        ...

    def servers(self) -> Sequence[Server]:
        """The servers started and not yet stopped."""
        ...

    def stop_all(self) -> Sequence[int]:
        """End every server's whole tree: SIGTERM, 10 s, SIGKILL. Returns the pids that could not be ended."""
        ...


@attrs.frozen(kw_only=True)
class ResetContext:
    """What the night hands to a reset backend.

    Args:
        entry: the entry about to run.
        supervisor: starts and stops servers.
        sleep: waits so many seconds; ends early, by an exception, when the night is interrupted.
        clock: monotonic seconds.
        env: environment of the entry's steps, ``env`` of the queue file included.
    """

    entry: Entry
    supervisor: Supervisor
    sleep: Callable[[float], None]
    clock: Callable[[], float]
    env: Mapping[str, str]


@runtime_checkable
class ResetBackend(Protocol):
    """Evicts whatever an endpoint has loaded, and can say what is loaded.

    ``can_verify`` is whether the backend is able to prove an eviction at all; a backend that is and could not is
    treated as ``on_dirty`` says.
    """

    @property
    def can_verify(self) -> bool:
        """Whether this backend, with its options, can prove an eviction; a class variable will do."""
        ...

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """The endpoint's URL, for the lock that keeps two nights off it; ``None`` when there is none.

        Args:
            env: the environment of the entry's steps, which may say where the endpoint is.
        """
        ...

    def reset(self, context: ResetContext) -> ResetOutcome:
        """Evict everything that is resident, then read the state again. Every call in it is bounded.

        An absent tool or server is an outcome with a reason and a remedy, never an exception.
        """
        ...

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        """The models loaded now; ``None`` when that cannot be told. Must not start a server."""
        ...


@runtime_checkable
class StartsServer(Protocol):
    """A reset backend that also starts the server of the next step's model."""

    def start(self, context: ResetContext, model: ModelSpec) -> None:
        """Start the server through ``context.supervisor`` and return when it answers.

        Raises:
            PluginError: it ended, or did not answer within its start timeout.
        """
        ...


@runtime_checkable
class TellsContext(Protocol):
    """A reset backend that also knows with which context length each model is loaded."""

    def context_lengths(self, context: ResetContext) -> Mapping[str, int]:
        """Tokens of context by model id, of the models loaded now; models it cannot tell are left out."""
        ...


# --- probes -----------------------------------------------------------------------------------------------------


@runtime_checkable
class Probe(Protocol):
    """Reads one memory figure. ``formula`` says which counters make it, for the reader of a figure."""

    formula: ClassVar[str]

    def read_mb(self) -> float:
        """The figure now, in MB.

        Raises:
            PluginError: it cannot be read on this machine; the message says why. Never a zero instead.
        """
        ...


@runtime_checkable
class TellsFree(Protocol):
    """A probe that also knows how much memory is left, for ``min_free_mb``."""

    def free_mb(self) -> float:
        """What another model could still take, in MB.

        Raises:
            PluginError: it cannot be told on this machine; the message says why.
        """
        ...


@runtime_checkable
class TellsPressure(Protocol):
    """A probe of how short of memory the machine is; it stands beside those that read MB and is not settled on."""

    formula: ClassVar[str]

    def pressure_percent(self) -> float:
        """0: none; 100: as bad as the system can say. ``formula`` says what it is made of.

        Raises:
            PluginError: it cannot be told on this machine; the message says why.
        """
        ...


# --- harnesses --------------------------------------------------------------------------------------------------


def default_timeout_s(step: str) -> float:
    """touchstone's default timeout of a step, in seconds: 21600 for ``judge``, 14400 for any other."""
    return DEFAULT_STEP_TIMEOUTS_S.get(step, DEFAULT_STEP_TIMEOUT_S)


@attrs.frozen(kw_only=True)
class Step:
    """One subprocess of an entry.

    Args:
        name: a slug: letters, digits, ``_`` and ``-``.
        artifacts: files relative to the bundle that must exist, changed by this very attempt, when the step is ok.
        reads: files whose *content* decides the step's result (absolute); part of its identity.
        settings: whatever else decides its result (JSON data, no paths); part of its identity.
        model: the model that answers during this step; ``None`` when the harness cannot tell.
    """

    name: str
    artifacts: tuple[str, ...]
    reads: tuple[Path, ...] = ()
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    model: ModelSpec | None = None


@attrs.frozen(kw_only=True)
class Target:
    """A model on an OpenAI-compatible endpoint that a step talks to.

    Args:
        step: the step's name.
        base_url: the URL that ``/chat/completions`` is appended to, such as ``http://127.0.0.1:1234/v1``.
        model: the model asked for; ``None`` when the harness cannot tell.
        api_key: sent as a bearer token; never shown.
    """

    step: str
    base_url: str
    model: ModelSpec | None = None
    api_key: str | None = attrs.field(default=None, repr=False)


def _as_metrics(value: Iterable[Metric]) -> tuple[Metric, ...]:
    return tuple(value)


def _metrics(_: object, attribute: attrs.Attribute[Any], value: tuple[Metric, ...]) -> None:
    """The journal and every view go by a score's name."""
    from runq_schemas.event_parts import Metric

    for metric in value:
        if not isinstance(metric, Metric):
            raise TypeError(f"metrics must hold Metric objects, not {metric!r}")
    names = [metric.name for metric in value]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"metrics: two are named {twice[0]!r}")


@attrs.frozen(kw_only=True)
class Evidence:
    """What the artifacts of a step that exited 0 say.

    Args:
        ok: whether they prove the step.
        reason: why not; one sentence.
        facts: figures for the journal (JSON data), for example ``answers`` and ``answers_failed``;
            summaries and the report show these and ``tokens_per_second``.
        metrics: the scores, the one to look at first; no two of a name. What is not a finite number is left out.
    """

    ok: bool
    reason: str = ""
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    metrics: tuple[Metric, ...] = attrs.field(default=(), converter=_as_metrics, validator=_metrics)


@runtime_checkable
class Harness(Protocol):
    """Turns an entry into steps. Must be cheap and free of side effects: `runq plan` calls it too."""

    def requires(self) -> Sequence[str]:
        """Which of ``config``, ``pack`` and ``judge_config`` an entry must have."""
        ...

    def steps(self, entry: Entry) -> Sequence[Step]:
        """The entry's steps in order; at least one.

        Raises:
            PluginError: the entry lacks something.
        """
        ...

    def targets(self, entry: Entry) -> Sequence[Target]:
        """The models and endpoints the steps talk to, for the locks and `runq check`; empty when it cannot tell."""
        ...

    def argv(self, entry: Entry, step: Step, bundle: Path) -> Sequence[str]:
        """The command line of a step that writes into ``bundle``, an existing directory. No shell runs it."""
        ...

    def check(self, entry: Entry, step: Step, bundle: Path) -> Evidence:
        """Read the artifacts of a step that exited 0 and whose artifacts all exist and are new."""
        ...


@runtime_checkable
class TellsAnswers(Protocol):
    """A harness that keeps each answer's own figure, so that `runq compare` can pair the questions of two runs."""

    @classmethod
    def answers(cls, bundle: Path) -> Mapping[str, Mapping[str, float]]:
        """Per score, named as its metric is, the figure of every question by its id.

        A question that was asked several times has the mean of its answers: they are no independent throws, and would
        be counted as such.

        A class method: the options of an old night are not known. Empty where the bundle has none.

        Raises:
            OSError, ValueError, KeyError, TypeError: the bundle cannot be read; then it counts as having none.
        """
        ...


@runtime_checkable
class NamesPacks(Protocol):
    """A harness for which an entry's `pack` need not be a file, such as the name of a task."""

    def pack_file(self, pack: str) -> str | None:
        """The file that a written `pack` names, which has to exist; ``None`` when it names none.

        ``Entry.pack`` is the written text joined to ``base_dir`` all the same.
        """
        ...


@runtime_checkable
class NamesSteps(Protocol):
    """A harness whose entries do not all have the same steps, such as one with a judge for some."""

    def step_names(self) -> Sequence[str]:
        """Every step it can give any entry: what `step_timeout_s` and its like may name."""
        ...
