"""The events of the journal: one frozen class per kind.

An event's class holds what the *kind* says; `night`, `at`, `entry`, `step` and `attempt` are columns of the
journal and stand in no class. Memory is in MB (2**20 bytes), durations in seconds. Unknown kinds and fields of a
newer version are kept in the journal, shown, and ignored here.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, cast

import attr
import attrs

# Every part of an event is found here too.
from runq_schemas.event_parts import (  # noqa: F401
    Host,
    ImportedEntry,
    ImportedStep,
    Metric,
    PlannedEntry,
    PlannedStep,
    UsedPlugin,
    Verdict,
    Window,
)

SettleStatus = Literal["settled", "dirty", "timeout"]
StepStatus = Literal["ok", "failed", "timeout", "stalled", "interrupted"]
CheckVerdict = Literal["ok", "warn", "fail"]
Asked = Literal["pause", "unpause", "stop", "stop_after_step", "stop_after_entry", "skip"]
LeaseEnd = Literal["done", "refused", "died", "expired"]
EntryStatus = Literal["complete", "incomplete", "failed", "skipped", "interrupted", "gave_up", "waiting"]


@attrs.frozen(kw_only=True)
class Event:
    """Any event; ``kind`` is the name it has in the journal."""

    kind: ClassVar[str]
    about: ClassVar[str]


@attrs.frozen(kw_only=True)
class _NightPlan(Event):
    queue_path: str
    queue_sha256: str
    base_dir: str
    runs_dir: str
    queue_dir: str
    started_local: str
    entries: tuple[PlannedEntry, ...]
    host: Host
    boot_id: str
    pid: int
    versions: Mapping[str, str]
    plugins: tuple[UsedPlugin, ...]
    only: tuple[int, ...] | None = None
    window: Window | None = None
    max_failures: int | None = None
    lifted: tuple[int, ...] = ()
    order: str = "entries"
    lang: str = "en"


@attrs.frozen(kw_only=True)
class NightStarted(_NightPlan):
    """A night begins: the whole parsed queue, the machine, the versions."""

    kind: ClassVar[str] = "night.started"
    about: ClassVar[str] = "A night begins: the whole parsed queue, its SHA-256, the machine, the versions."


@attrs.frozen(kw_only=True)
class NightResumed(_NightPlan):
    """The same night goes on, with the queue file as it is now.

    ``lifted`` are the entries whose earlier deaths of the runner no longer count against them.
    """

    kind: ClassVar[str] = "night.resumed"
    about: ClassVar[str] = "The same night goes on, with the queue file as it is now."


@attrs.frozen(kw_only=True)
class NightWaiting(Event):
    """The night has its locks and its plan, and waits for its time; ``until`` is local, ISO 8601."""

    kind: ClassVar[str] = "night.waiting"
    about: ClassVar[str] = "The night has its locks and its plan, and waits for its time."
    until: str


@attrs.frozen(kw_only=True)
class NightAsked(Event):
    """Somebody asked the runner for something, from outside; ``by`` is who, as the asking program says.

    ``stop`` ends the running step, ``stop_after_step`` and ``stop_after_entry`` let it finish first, ``skip`` ends the
    running step and leaves out the rest of its entry.
    """

    kind: ClassVar[str] = "night.asked"
    about: ClassVar[str] = "Somebody asked the runner to pause, to go on, to stop or to skip an entry."
    what: Asked
    by: str


@attrs.frozen(kw_only=True)
class NightPaused(Event):
    """Nothing runs and nothing starts until somebody asks for it."""

    kind: ClassVar[str] = "night.paused"
    about: ClassVar[str] = "The night pauses: nothing runs, and nothing starts."
    by: str


@attrs.frozen(kw_only=True)
class NightUnpaused(Event):
    """The pause is over; it lasted so many seconds. The endpoint is reset before the next step."""

    kind: ClassVar[str] = "night.unpaused"
    about: ClassVar[str] = "The night goes on after a pause."
    by: str
    seconds: float


@attrs.frozen(kw_only=True)
class NightFrozen(Event):
    """Ctrl-Z (SIGTSTP): the runner and all that it started are about to be stopped."""

    kind: ClassVar[str] = "night.frozen"
    about: ClassVar[str] = "Ctrl-Z: the runner and all that it started are about to be stopped."


@attrs.frozen(kw_only=True)
class NightContinued(Event):
    """They go on (SIGCONT), after so many seconds, which count against no step."""

    kind: ClassVar[str] = "night.continued"
    about: ClassVar[str] = "The runner and all that it started go on after Ctrl-Z."
    seconds: float


@attrs.frozen(kw_only=True)
class NightKeptAwake(Event):
    """The machine does not fall asleep by itself until the night ends; ``how`` says what sees to it."""

    kind: ClassVar[str] = "night.kept_awake"
    about: ClassVar[str] = "The machine is kept awake until the night ends, and by what."
    how: str


@attrs.frozen(kw_only=True)
class NightSlept(Event):
    """The machine slept for so many seconds, which count against no step; ``how`` says which clock told it."""

    kind: ClassVar[str] = "night.slept"
    about: ClassVar[str] = "The machine slept although a night ran; noticed when it woke."
    seconds: float
    how: str


@attrs.frozen(kw_only=True)
class EntryStarted(Event):
    """An entry begins; with what the machine runs on, where it has a battery: its charge in percent."""

    kind: ClassVar[str] = "entry.started"
    about: ClassVar[str] = "An entry begins; on battery or not, where there is one."
    on_battery: bool | None = None
    battery_percent: float | None = None


@attrs.frozen(kw_only=True)
class ResetStarted(Event):
    """The reset backend is about to evict what the endpoint has loaded."""

    kind: ClassVar[str] = "reset.started"
    about: ClassVar[str] = "The reset backend is about to evict what the endpoint has loaded."
    backend: str
    before_step: str


@attrs.frozen(kw_only=True)
class ResetFinished(Event):
    """What the reset did, and whether it is proven. A list is ``None`` where the backend cannot tell."""

    kind: ClassVar[str] = "reset.finished"
    about: ClassVar[str] = "What the reset did, and whether it is proven."
    backend: str
    verdict: Verdict
    loaded_before: tuple[str, ...] | None
    loaded_after: tuple[str, ...] | None
    seconds: float
    reason: str = ""
    remedy: str = ""
    details: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class SettleStarted(Event):
    """Waiting for memory to be back; a reference is the last baseline that followed a verified reset."""

    kind: ClassVar[str] = "settle.started"
    about: ClassVar[str] = "Waiting for memory to be back."
    reference_mb: Mapping[str, float | None]


@attrs.frozen(kw_only=True)
class SettledProbe:
    """How one probe settled."""

    probe: str
    status: SettleStatus
    proven: bool
    waited_s: float
    start_mb: float
    final_mb: float
    polls: int
    reference_mb: float | None
    still_loaded: tuple[str, ...] | None


@attrs.frozen(kw_only=True)
class SettleFinished(Event):
    """The baseline of the entry, per probe, and whether it is proven; what is free in MB and the memory pressure in
    percent, by the probes that tell.
    """

    kind: ClassVar[str] = "settle.finished"
    about: ClassVar[str] = "The baseline in MB, per probe, and whether it is proven."
    status: SettleStatus
    proven: bool
    waited_s: float
    baseline_mb: Mapping[str, float]
    probes: tuple[SettledProbe, ...]
    free_mb: Mapping[str, float] = attrs.field(factory=dict)
    pressure_percent: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class CooldownStarted(Event):
    """A pause the queue file asks for."""

    kind: ClassVar[str] = "cooldown.started"
    about: ClassVar[str] = "A pause the queue file asks for."
    seconds: float


@attrs.frozen(kw_only=True)
class StepStarted(Event):
    """A step is about to be spawned; on disk before the spawn. ``bundle`` and ``log`` are absolute paths;
    ``baseline_event`` is the number of the ``settle.finished`` that its memory figures stand on, where that is another
    entry's: in ``order: phases`` steps of one group share a baseline.
    """

    kind: ClassVar[str] = "step.started"
    about: ClassVar[str] = "A step is about to be spawned; on disk before the spawn."
    argv: tuple[str, ...]
    log: str
    bundle: str
    timeout_s: float
    stall_timeout_s: float | None
    identity: str
    identity_parts: Mapping[str, Any]
    baseline_event: int | None = None


@attrs.frozen(kw_only=True)
class StepSpawned(Event):
    """The process of a step; pid and creation time together name it within one boot."""

    kind: ClassVar[str] = "step.spawned"
    about: ClassVar[str] = "The process of a step: pid, creation time, boot."
    pid: int
    created_at: float
    boot_id: str


@attrs.frozen(kw_only=True)
class Artifact:
    """A file that proves a step, relative to the bundle. ``sha256`` is 64 hexadecimal digits."""

    path: str
    bytes: int
    sha256: str


@attrs.frozen(kw_only=True)
class StepFinished(Event):
    """The end of an attempt. ``facts`` is what the harness read off the artifacts, ``metrics`` the scores among it,
    the one to look at first; ``outputs`` are the bundle's files, ``written_mb`` what they and the log take on the disk.
    ``endpoint_dead`` tells that it was ended because its endpoint gave no answer any more.
    """

    kind: ClassVar[str] = "step.finished"
    about: ClassVar[str] = "The end of an attempt: status, exit code or signal, seconds, artifacts, memory, log tail."
    status: StepStatus
    exit_code: int | None = None
    signal: str | None = None
    seconds: float | None = None
    reason: str = ""
    artifacts: tuple[Artifact, ...] = ()
    outputs: tuple[str, ...] = ()
    written_mb: float | None = None
    peak_mb: Mapping[str, float] = attrs.field(factory=dict)
    model_delta_mb: Mapping[str, float] = attrs.field(factory=dict)
    baseline_proven: bool = False
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    metrics: tuple[Metric, ...] = ()
    log_tail: tuple[str, ...] = ()
    ended_pids: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    endpoint_dead: bool = False


@attrs.frozen(kw_only=True)
class StepSkipped(Event):
    """A step that did not run because of what came before it; with ``gave_up`` because its entry was set aside."""

    kind: ClassVar[str] = "step.skipped"
    about: ClassVar[str] = "A step that did not run because of what came before it."
    reason: str
    gave_up: bool = False


@attrs.frozen(kw_only=True)
class StepDeferred(Event):
    """A step that is left for another time: by its history it would not end before the deadline.

    ``until`` is the deadline (local, ISO 8601), ``left_s`` what was left until then, ``usual_s`` the median of its
    ``usual_n`` ok attempts in earlier nights; ``None`` without history.
    """

    kind: ClassVar[str] = "step.deferred"
    about: ClassVar[str] = "A step that is left for another time, because of the deadline."
    reason: str
    until: str
    left_s: float
    usual_s: float | None = None
    usual_n: int = 0


@attrs.frozen(kw_only=True)
class RetryWaiting(Event):
    """The pause before a retry of a step: retry ``number`` of at most ``of``."""

    kind: ClassVar[str] = "retry.waiting"
    about: ClassVar[str] = "The pause before a step is tried again."
    number: int
    of: int
    seconds: float


@attrs.frozen(kw_only=True)
class EndpointDead(Event):
    """An endpoint gave no token to so many heartbeats in a row; ``reason`` is what came of the last one."""

    kind: ClassVar[str] = "endpoint.dead"
    about: ClassVar[str] = "An endpoint does not answer its heartbeat."
    endpoint: str
    model: str
    reason: str
    failures: int


@attrs.frozen(kw_only=True)
class RestartStarted(Event):
    """The restart command of an endpoint is about to run; on disk before it does."""

    kind: ClassVar[str] = "restart.started"
    about: ClassVar[str] = "The restart command of an endpoint is about to run."
    argv: tuple[str, ...]
    log: str


@attrs.frozen(kw_only=True)
class RestartFinished(Event):
    """The restart command has ended; whether the endpoint answers now is for the next heartbeat to say."""

    kind: ClassVar[str] = "restart.finished"
    about: ClassVar[str] = "The restart command of an endpoint has ended."
    exit_code: int | None = None
    signal: str | None = None
    seconds: float | None = None
    reason: str = ""


@attrs.frozen(kw_only=True)
class EntryFinished(Event):
    """The entry's result is complete in the journal; with what the machine runs on, as when it began."""

    kind: ClassVar[str] = "entry.finished"
    about: ClassVar[str] = "The entry's result is complete in the journal."
    status: EntryStatus
    reason: str = ""
    on_battery: bool | None = None
    battery_percent: float | None = None


@attrs.frozen(kw_only=True)
class ServerStarted(Event):
    """A server of a reset backend is about to be spawned; on disk before the spawn."""

    kind: ClassVar[str] = "server.started"
    about: ClassVar[str] = "A server of a reset backend is about to be spawned."
    argv: tuple[str, ...]
    log: str
    model: str


@attrs.frozen(kw_only=True)
class ServerSpawned(Event):
    """The process of a server."""

    kind: ClassVar[str] = "server.spawned"
    about: ClassVar[str] = "The process of a server: pid, creation time, boot."
    pid: int
    created_at: float
    boot_id: str


@attrs.frozen(kw_only=True)
class ServerFinished(Event):
    """A server has ended; ``stopped`` tells whether runq ended it."""

    kind: ClassVar[str] = "server.finished"
    about: ClassVar[str] = "A server has ended: by itself, or stopped by runq."
    stopped: bool
    exit_code: int | None = None
    signal: str | None = None
    seconds: float | None = None
    reason: str = ""
    log_tail: tuple[str, ...] = ()
    survivors: tuple[int, ...] = ()


@attrs.frozen(kw_only=True)
class Warned(Event):
    """Something the user should know; the night goes on."""

    kind: ClassVar[str] = "warning"
    about: ClassVar[str] = "Something the user should know; the night goes on."
    message: str
    remedy: str = ""


@attrs.frozen(kw_only=True)
class NightInterrupted(Event):
    """A signal ended the night, or a later start found that the runner had died."""

    kind: ClassVar[str] = "night.interrupted"
    about: ClassVar[str] = "A signal ended the night, or a later start found that the runner had died."
    reason: str


@attrs.frozen(kw_only=True)
class NightFinished(Event):
    """The night came to its end; ``complete`` entries out of ``total`` have every step ok.

    ``stopped`` says why it ended before every entry had its turn; empty when it did not.
    """

    kind: ClassVar[str] = "night.finished"
    about: ClassVar[str] = "The night came to its end."
    total: int
    complete: int
    stopped: str = ""


@attrs.frozen(kw_only=True)
class HostJoined(Event):
    """A machine takes part in the night; ``slots`` is how many entries it may run at a time."""

    kind: ClassVar[str] = "host.joined"
    about: ClassVar[str] = "A machine takes part in the night."
    host: str
    machine: Host
    address: str
    slots: int


@attrs.frozen(kw_only=True)
class HostLost(Event):
    """A machine cannot be reached; what it runs it may go on with until its lease runs out."""

    kind: ClassVar[str] = "host.lost"
    about: ClassVar[str] = "A machine of the night cannot be reached."
    host: str
    reason: str


@attrs.frozen(kw_only=True)
class LeaseGranted(Event):
    """An entry is handed to a machine; on disk before the machine is told. The event's number names the lease.

    Until it ends, the entry runs nowhere else. ``until`` is UTC, ISO 8601; ``lease_s`` what a renewal adds to the time
    of the last word from the machine.
    """

    kind: ClassVar[str] = "lease.granted"
    about: ClassVar[str] = "An entry is handed to a machine, until a time."
    host: str
    until: str
    lease_s: float
    slot: int = 0


@attrs.frozen(kw_only=True)
class LeaseRenewed(Event):
    """The machine was heard from: its lease runs longer."""

    kind: ClassVar[str] = "lease.renewed"
    about: ClassVar[str] = "A machine was heard from; its lease runs longer."
    lease: int
    host: str
    until: str


@attrs.frozen(kw_only=True)
class LeaseEnded(Event):
    """The machine has given the entry back (``done``, ``refused``, ``died``: only its runner did), or its time ran out
    (``expired``): the entry may run elsewhere.
    """

    kind: ClassVar[str] = "lease.ended"
    about: ClassVar[str] = "An entry is no longer a machine's: it is done, or the machine's time ran out."
    lease: int
    host: str
    how: LeaseEnd
    reason: str = ""


@attrs.frozen(kw_only=True)
class DeliveredLate(Event):
    """What a machine wrote down under a lease that had already ended; kept, and counted nowhere."""

    kind: ClassVar[str] = "delivery.late"
    about: ClassVar[str] = "An event that came after its lease had ended; kept, and counted nowhere."
    lease: int
    host: str
    name: str
    event: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class CheckStarted(Event):
    """A check begins: every distinct model of a queue is loaded and asked once."""

    kind: ClassVar[str] = "check.started"
    about: ClassVar[str] = "A check begins: every distinct model of a queue is loaded and asked once."
    queue_path: str
    queue_sha256: str
    started_local: str
    models: tuple[str, ...]
    host: Host
    boot_id: str
    versions: Mapping[str, str]
    plugins: tuple[UsedPlugin, ...]


@attrs.frozen(kw_only=True)
class CheckedModel(Event):
    """What the check found of one model. ``None`` where it could not be found out.

    touchstone's fields are ``model``, ``loaded``, ``status`` (ok, reasoning_only, empty or error), ``content_chars``
    and ``ram_before_mb``, ``ram_after_mb``, ``ram_delta_mb``: memory after a settled reset, with the model loaded, and
    the difference. ``ram_back_mb`` is memory after the model was evicted again.
    """

    kind: ClassVar[str] = "check.model"
    about: ClassVar[str] = "What the check found of one model."
    model: str
    loaded: bool
    status: str
    content_chars: int
    ram_before_mb: float | None
    ram_after_mb: float | None
    ram_delta_mb: float | None
    ram_back_mb: float | None
    baseline_proven: bool
    role: str
    endpoint: str | None
    answered_by: str | None
    loaded_models: tuple[str, ...] | None
    context_length: int | None
    seconds: float | None
    reset_verdict: Verdict
    evict_verdict: Verdict
    memory_back: bool
    verdict: CheckVerdict
    problem: str = ""
    remedy: str = ""


@attrs.frozen(kw_only=True)
class CheckFinished(Event):
    """A check ended; ``interrupted`` names the signal that ended it early."""

    kind: ClassVar[str] = "check.finished"
    about: ClassVar[str] = "A check ended."
    failed: int
    interrupted: str = ""


@attrs.frozen(kw_only=True)
class UnknownEvent(Event):
    """An event of a kind this version does not know."""

    kind: ClassVar[str] = "unknown"
    about: ClassVar[str] = "An event of a kind this version does not know."
    name: str
    data: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Imported(Event):
    """Results from elsewhere, for the history of durations and scores. They are no night: nothing of it resumes.

    ``source`` is the format, ``sha256`` of the file's content, so that none is taken over twice, ``measured_at`` when
    it was measured (UTC, ISO 8601).
    """

    kind: ClassVar[str] = "import.finished"
    about: ClassVar[str] = "Results from elsewhere: the file, its SHA-256, its entries with durations and scores."
    source: str
    path: str
    sha256: str
    measured_at: str
    entries: tuple[ImportedEntry, ...]


@attrs.frozen(kw_only=True)
class JournalSalvaged(Event):
    """This journal was made of what another, damaged one still vouched for; it belongs to no night.

    ``source`` is that file, ``sha256`` of its content (without its -wal file), ``events`` how many were saved, all
    before this one; ``lost`` how many more it had given numbers to, ``None`` where it could not tell; ``broken`` why
    it ends there.
    """

    kind: ClassVar[str] = "journal.salvaged"
    about: ClassVar[str] = "This journal was made of what a damaged one still vouched for."
    source: str
    sha256: str
    events: int
    lost: int | None
    broken: str = ""


EVENT_CLASSES: Mapping[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        NightStarted,
        NightResumed,
        NightWaiting,
        NightAsked,
        NightPaused,
        NightUnpaused,
        NightFrozen,
        NightContinued,
        NightKeptAwake,
        NightSlept,
        EntryStarted,
        ResetStarted,
        ResetFinished,
        SettleStarted,
        SettleFinished,
        CooldownStarted,
        StepStarted,
        StepSpawned,
        StepFinished,
        StepSkipped,
        StepDeferred,
        RetryWaiting,
        EndpointDead,
        RestartStarted,
        RestartFinished,
        EntryFinished,
        ServerStarted,
        ServerSpawned,
        ServerFinished,
        Warned,
        NightInterrupted,
        NightFinished,
        HostJoined,
        HostLost,
        LeaseGranted,
        LeaseRenewed,
        LeaseEnded,
        DeliveredLate,
        CheckStarted,
        CheckedModel,
        CheckFinished,
        Imported,
        JournalSalvaged,
    )
}
"""Every kind of event, in the order in which a night writes them."""


def to_data(event: Event) -> dict[str, Any]:
    """The event as JSON data, without its kind: what the journal's ``data`` column holds."""
    return attr.asdict(event, retain_collection_types=False)


def to_json(event: Event) -> str:
    """The same as compact ASCII JSON text, five times as fast: one pass of the encoder, no copy.

    Raises:
        TypeError, ValueError: a value is not JSON, or a number not finite.
    """
    return _encode(event)


def _plain(value: Any) -> Any:
    if attrs.has(type(value)):
        return {name: getattr(value, name) for name in _field_names(cast("Hashable", type(value)))}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


@cache
def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(cls))


# No NaN and no infinity: JSON has neither, and every reader but Python's would refuse the event.
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_plain).encode


def from_data(kind: str, data: Mapping[str, Any]) -> Event:
    """The typed event of journal data; fields of a newer version are ignored.

    Nested values stay plain JSON data where no reader needs them typed: structuring every field with cattrs costs
    more than reading the journal does.

    Returns:
        An event of the kind's class, or an `UnknownEvent`.
    """
    cls = EVENT_CLASSES.get(kind)
    if cls is None:
        return UnknownEvent(name=kind, data=data)
    known = {field.name for field in attrs.fields(cls)}
    return cls(**{key: value for key, value in data.items() if key in known})
