"""Evict everything, then prove it: the one course that every asking backend takes.

1. Ask what is resident, and remember the processes that hold it.
2. Evict each, whatever the answer says: servers answer "done" when nothing happened. What is still loading is
   waited for first, as far as there is time.
3. Ask until three readings over two seconds are empty, evicting what appears meanwhile (a load that was under way
   is listed only when it is over: Ollama server/sched.go).
4. Compare the processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import attrs

from runq.plugin import ResetContext, ResetOutcome, Verdict
from runq_plugins.reset.owner import Evidence, Owner, escaped

EMPTY_READINGS = 3
"""So many empty readings in a row ..."""

EMPTY_FOR_S = 2.0
"""... over at least so many seconds: an unload and the next load can leave a moment in which nothing is listed."""

POLL_S = 1.0
"""Seconds between two readings."""

CALL_S = 10.0
"""The most seconds one question may take, so that a busy server is asked again rather than waited for."""

FAIR_CALL_S = 1.0
"""A question with less time than this before the whole limit was cut short, and says nothing of the server."""

LOAD_WAIT_SHARE = 0.5
"""The part of the whole limit for which a load that is under way is waited for before it is evicted all the same: an
unload can miss a load, or kill it half way, and a load that hangs must not hold the night."""

COMPLAINT_S = 10.0
"""Seconds for a list to become empty once the server has refused to evict."""

UNSEEN_REMEDY = "run runq on the server's own machine, as a user who may see its processes"


class Unasked(Exception):
    """The endpoint could not be asked; asking again will not help."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy

    @property
    def cause(self) -> str:
        """What went wrong with the one question, without what it says of the server."""
        return str(self.__cause__ or self.reason)


class Busy(Unasked):
    """The endpoint did not answer in time; it may later."""


class Complaint(Exception):
    """The endpoint said that it did not evict."""


@attrs.frozen(kw_only=True)
class Resident:
    """Something loaded. ``None`` where the server does not tell.

    Args:
        id: what evicts it.
        model: the model's name.
        size_mb: its size in MB.
        context_length: tokens of context it is loaded with.
        note: something about it, for a reason that a person reads.
        loading: it is not up yet.
    """

    id: str
    model: str
    size_mb: float | None = None
    context_length: int | None = None
    note: str = ""
    loading: bool = False


def whole(value: object) -> int | None:
    """The positive whole number that a server's JSON holds; ``None`` for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def context_lengths(residents: Sequence[Resident]) -> Mapping[str, int]:
    """Tokens of context by id and by model name; an id comes first where two instances share a model."""
    told = [(resident, resident.context_length) for resident in residents if resident.context_length is not None]
    return {resident.model: length for resident, length in reversed(told)} | {
        resident.id: length for resident, length in told
    }


@attrs.frozen
class Deadline:
    """The moment at which a reset gives up."""

    clock: Callable[[], float]
    at: float

    @property
    def left_s(self) -> float:
        """Seconds left, 0 when none are."""
        return max(0.0, self.at - self.clock())

    def call_s(self) -> float:
        """Seconds the next call may take; never 0, which would fail before asking."""
        return max(0.1, min(CALL_S, self.left_s))


class Registry(Protocol):
    """What a backend's endpoint can do."""

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """Everything loaded. Raises `Unasked` or `Busy`."""
        ...

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """Ask for the eviction of each. Raises `Unasked`, `Busy` or `Complaint`."""
        ...

    def owners(self) -> Sequence[Owner] | None:
        """The processes that may hold models; ``None`` when they cannot be seen."""
        ...


@attrs.define
class Eviction:
    """One reset in its course."""

    registry: Registry
    context: ResetContext
    evidence: Evidence
    deadline: Deadline
    release_wait_s: float
    _before: dict[str, Resident] = attrs.field(factory=dict, init=False)
    _listed: tuple[Resident, ...] | None = attrs.field(default=None, init=False)
    _asked: set[str] = attrs.field(factory=set, init=False)
    _complaint: str = attrs.field(default="", init=False)
    _readings: int = attrs.field(default=0, init=False)
    _load_wait_until: float = attrs.field(init=False)

    @_load_wait_until.default
    def _half_the_limit(self) -> float:
        return self.deadline.at - (1.0 - LOAD_WAIT_SHARE) * self.deadline.left_s

    def run(self) -> ResetOutcome:
        """Evict and prove."""
        try:
            doubt = self._course()
        except Unasked as problem:
            return self._outcome("failed", problem.reason, problem.remedy)
        if self._listed:
            return self._outcome("failed", self._still_loaded(), "end the client that uses it, or restart the server")
        if doubt:
            seen = self.registry.owners() is not None
            return self._outcome(
                "unverified", doubt, "restart the server if its memory stays" if seen else UNSEEN_REMEDY
            )
        return self._outcome("verified")

    def _course(self) -> str:
        empty_since: float | None = None
        empties = 0
        doubt = "its list was not seen empty for long enough within the time limit"
        while True:
            self._read()
            if self._listed:
                empties, empty_since = 0, None
            else:
                now = self.context.clock()
                empty_since = now if empty_since is None else empty_since
                empties += 1
                if empties >= EMPTY_READINGS and now - empty_since >= EMPTY_FOR_S:
                    owners = self._owners()
                    doubt = self.evidence.doubt(owners, evicted=bool(self._before), size_mb=self._size_mb())
                    # Waiting ends a doubt only where the processes are seen.
                    if not doubt or owners is None or now - empty_since >= self.release_wait_s:
                        return doubt
            if self.deadline.left_s <= 0:
                return doubt
            self.context.sleep(min(POLL_S, max(0.01, self.deadline.left_s)))

    def _read(self) -> None:
        """One reading; whatever is new in it is evicted."""
        known, self._listed, left_s = self._listed, None, self.deadline.left_s
        try:
            self._listed = tuple(self._patiently())
        except Unasked:
            if not known or left_s >= FAIR_CALL_S:
                raise
            self._listed = known  # the time was up: what the last whole reading said is what is known
            return
        self._readings += 1
        self._asked &= {resident.id for resident in self._listed}
        if not self._listed and self._before:
            return
        self.evidence.note_before(self.registry.owners())
        for resident in self._listed:
            self._before.setdefault(resident.id, resident)
        patient = self.context.clock() < self._load_wait_until
        fresh = [one for one in self._listed if one.id not in self._asked and not (one.loading and patient)]
        if not fresh:
            return
        self._before |= {resident.id: resident for resident in fresh if not resident.loading}
        self._asked |= {resident.id for resident in fresh}
        try:
            self.registry.evict(fresh, self.deadline)
        except Complaint as complaint:
            self._complaint = str(complaint)
            self._hurry()
        except Busy as busy:
            self._complaint = busy.reason

    def _owners(self) -> Sequence[Owner] | None:
        """The owners now, with those that held a model before and have left the server's tree."""
        owners = self.registry.owners()
        return None if owners is None else (*owners, *escaped(self.evidence.before, owners))

    def _patiently(self) -> Sequence[Resident]:
        while True:
            try:
                return self.registry.residents(self.deadline)
            except Busy:
                if self.deadline.left_s <= 0:
                    raise
                self.context.sleep(min(POLL_S, self.deadline.left_s))

    def _hurry(self) -> None:
        at = min(self.deadline.at, self.context.clock() + COMPLAINT_S)
        self.deadline = Deadline(self.deadline.clock, at)

    def _size_mb(self) -> float | None:
        sizes = [resident.size_mb for resident in self._before.values()]
        return sum(size for size in sizes if size is not None) if all(size is not None for size in sizes) else None

    def _still_loaded(self) -> str:
        shown = ", ".join(
            f"{resident.id} ({resident.note})" if resident.note else resident.id for resident in self._listed or ()
        )
        because = f": {self._complaint}" if self._complaint else ""
        return f"still loaded: {shown}{because}"

    def _outcome(self, verdict: Verdict, reason: str = "", remedy: str = "") -> ResetOutcome:
        return ResetOutcome(
            verdict=verdict,
            loaded_before=tuple(self._before) if self._readings else None,
            loaded_after=None if self._listed is None else tuple(resident.id for resident in self._listed),
            reason=reason,
            remedy=remedy,
            details={
                "readings": self._readings,
                "loaded_mb": self._size_mb() or None,
                **self.evidence.details(),
            },
        )


def evict_all(
    registry: Registry,
    context: ResetContext,
    *,
    who: str,
    timeout_s: float,
    idle_limit_mb: float,
    release_wait_s: float,
) -> ResetOutcome:
    """Evict everything that is resident and say what is proven.

    Args:
        registry: the endpoint.
        context: the night's context; its clock and sleep are used.
        who: the server's name, for reasons.
        timeout_s: the whole reset's limit in seconds.
        idle_limit_mb: a process up to this size holds no model.
        release_wait_s: how long the processes may take to let go once the list is empty, in seconds.
    """
    deadline = Deadline(context.clock, context.clock() + timeout_s)
    return Eviction(registry, context, Evidence(idle_limit_mb, who), deadline, release_wait_s).run()
