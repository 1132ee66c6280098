"""Dask.distributed as the carrier: entries are tasks that take up a worker's resource, questions are run beside them.

Dask decides nothing here. A task is pinned to the worker that the lease names, so that Dask has no reason to run it
elsewhere; if it runs it again where it was, that starts nothing (`runq.fleet.station.run_lease`). What Dask forgets,
because its scheduler or the head was restarted, stands in files of the machine and in the head's journal.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from distributed import Client, Future
from distributed.security import Security

from runq.fleet.lease import elapsed
from runq.fleet.station import exchange, introduce, run_lease
from runq.fleet.transport import Answer, Arrived, Gone, News, Refused
from runq.fleet.wire import Ask, Terms
from runq_schemas.event_parts import Host

RESOURCE = "endpoint"
"""The Dask resource of a worker that says how many entries it runs at a time."""

REFRESH_S = 1.0
"""How often the scheduler is asked who is there."""

ANSWER_S = 15.0
"""What an answer may take beyond the time that a question is held."""


@attrs.frozen(kw_only=True)
class Own:
    """What a machine has to be like to take part: runq and the plugins of the head, and its runs folder.

    ``plugins`` are (kind, name, distribution, version) of those that the queue uses.
    """

    versions: Mapping[str, str]
    plugins: frozenset[tuple[str, str, str, str]]
    token: str
    token_path: Path

    def refuses(self, seen: Mapping[str, Any]) -> tuple[str, str]:
        """Why a machine may not take part, and what to do about it; empty when it may."""
        mine, theirs = self.versions["runq"], seen["versions"]["runq"]
        if mine != theirs:
            return f"it has runq {theirs}, the head has {mine}", f"install runq {mine} there"
        there = {tuple(one) for one in seen["plugins"]}
        for kind, name, distribution, version in sorted(self.plugins - there):
            other = [f"{one[2]} {one[3]}" for one in there if one[:2] == (kind, name)]
            has = f"has it of {' and '.join(sorted(other))}" if other else "has none"
            return (
                f"the head has the {kind} plugin {name!r} of {distribution} {version}, and it {has}",
                f"install {distribution} {version} there",
            )
        if not seen["shares"]:
            runs = self.token_path.parent
            return f"it does not see the runs folder {runs}", "share that folder, or mount it at the same path there"
        return "", ""


@attrs.frozen(kw_only=True)
class Station:
    """What the workers are asked to run; importable there."""

    introduce: Callable[..., Any] = introduce
    exchange: Callable[..., Any] = exchange
    run_lease: Callable[..., Any] = run_lease


class DaskTransport:
    """Reaches the workers of a Dask scheduler.

    Args:
        address: the scheduler's.
        security: TLS, where it has certificates.
        own: what a machine has to be like.
        station: what its workers run; by default the real thing.
        connect_s: how long the first connection may take.

    Raises:
        OSError: the scheduler cannot be reached in this time.
    """

    def __init__(
        self,
        address: str,
        *,
        security: Security | None,
        own: Own,
        station: Station | None = None,
        connect_s: float = 10.0,
    ) -> None:
        self._station = station or Station()
        self._address = address
        self._security = security
        self._own = own
        self._news: queue.SimpleQueue[News] = queue.SimpleQueue()
        self._known: dict[str, str] = {}
        self._looked_at: set[str] = set()
        self._futures: dict[int, Future[Any]] = {}
        self._closed = False
        self._first_look = threading.Event()
        self._client = self._connect(connect_s)
        self._spawn(self._watch())

    def refusals(self, timeout_s: float) -> Sequence[Refused]:
        """Look at whoever is there now, for so long at most. Returns those that may not take part."""
        self._first_look.wait(timeout_s)
        found = self.news(0.0)
        for one in found:
            self._news.put(one)
        return [one for one in found if isinstance(one, Refused)]

    def news(self, timeout_s: float) -> Sequence[News]:
        """What has come since; waits so long at most for the first of it."""
        found: list[News] = []
        try:
            found.append(self._news.get(timeout=timeout_s))
            while True:
                found.append(self._news.get_nowait())
        except queue.Empty:
            return found

    def ask(self, address: str, ask: Ask) -> None:
        """Ask a machine; an `Answer` follows in any case."""
        self._spawn(self._ask(address, ask))

    def start(self, address: str, lease: int, job: str, terms: Terms, resources: Mapping[str, float]) -> None:
        """Have a machine start an entry, if it has not yet."""
        self._spawn(self._start(address, lease, job, terms, dict(resources)))

    def close(self) -> None:
        """Let go of everything; what runs on the machines goes on."""
        self._closed = True
        client: Any = self._client
        client.close(timeout=2)

    # --- in Dask's own thread -------------------------------------------------------------------------------------

    def _connect(self, timeout_s: float) -> Client:
        made: Client = self._client_of(timeout_s)
        return made

    def _client_of(self, timeout_s: float, **more: Any) -> Any:
        make: Any = Client
        security = {} if self._security is None else {"security": self._security}
        return make(self._address, timeout=timeout_s, set_as_default=False, name="runq", **security, **more)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        loop: Any = self._client.loop
        asyncio.run_coroutine_threadsafe(work, loop.asyncio_loop)

    async def _watch(self) -> None:
        """Tell who comes and goes, until it is closed."""
        while not self._closed:
            try:
                scheduler: Any = self._client.scheduler
                identity = await asyncio.wait_for(scheduler.identity(n_workers=-1), ANSWER_S)
                await self._compare(identity["workers"])
                self._first_look.set()
            except Exception as error:  # whatever it is, it means that nobody can be reached now
                for address in list(self._known):
                    self._forget(address, f"the scheduler cannot be reached: {type(error).__name__}: {error}")
                await self._again()
            await asyncio.sleep(REFRESH_S)

    async def _again(self) -> None:
        """Connect anew where the client has given up."""
        if self._closed or self._client.status not in ("closed", "closing"):
            return
        try:
            self._client = await self._client_of(ANSWER_S, asynchronous=True)
        except Exception:  # it is tried again with the next look
            return

    async def _compare(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        for address in [one for one in self._known if one not in workers]:
            self._forget(address, "its Dask worker left")
        self._looked_at &= set(workers)
        new = [one for one in workers.items() if one[0] not in self._known and one[0] not in self._looked_at]
        await asyncio.gather(*(self._look_at(address, info) for address, info in new))

    def _forget(self, address: str, reason: str) -> None:
        del self._known[address]
        self._news.put(Gone(address=address, reason=reason))

    async def _look_at(self, address: str, info: Mapping[str, Any]) -> None:
        """Let a worker take part, or say why not."""
        given = str(info["name"])
        name = given if "://" not in given else str(address)
        slots = int(info.get("resources", {}).get(RESOURCE, 0))
        if slots < 1:
            self._refuse(address, name, f"it has no resource {RESOURCE!r}", f'start it with --resources "{RESOURCE}=1"')
            return
        try:
            seen = await self._run(address, self._station.introduce, self._own.token, str(self._own.token_path))
        except TimeoutError:
            return  # it is asked again with the next look
        except Exception as error:
            why = f"runq cannot be run there: {type(error).__name__}: {error}"
            self._refuse(address, name, why, f"install runq {self._own.versions['runq']} in its environment")
            return
        heard_s = elapsed()
        name = given if "://" not in given else str(seen["host"]["name"])
        why, remedy = self._own.refuses(seen)
        if not why and name in self._known.values():
            why, remedy = f"another worker has the name {name}", "start it with a --name of its own"
        if why:
            self._refuse(address, name, why, remedy)
            return
        self._known[address] = name
        self._news.put(
            Arrived(
                name=name,
                address=address,
                machine=Host(**seen["host"]),
                slots=slots,
                resources=dict(info.get("resources", {})),
                boot_id=seen["boot_id"],
                said_s=seen["now_s"],
                heard_s=heard_s,
            )
        )

    def _refuse(self, address: str, name: str, reason: str, remedy: str) -> None:
        self._looked_at.add(address)
        self._news.put(Refused(name=name, reason=reason, remedy=remedy))

    async def _run(self, address: str, function: Any, *words: Any) -> Any:
        found = await asyncio.wait_for(self._client.run(function, *words, workers=[address]), ANSWER_S)
        return found[address]

    async def _ask(self, address: str, ask: Ask) -> None:
        told = None
        try:
            running: Any = self._client.run(self._station.exchange, ask, workers=[address])
            told = (await asyncio.wait_for(running, ask.hold_s + ANSWER_S))[address]
        except Exception:  # no answer is an answer: the lease knows what to do
            await asyncio.sleep(REFRESH_S)
        self._news.put(Answer(address=address, told=told, heard_s=elapsed()))

    async def _start(self, address: str, lease: int, job: str, terms: Terms, resources: dict[str, float]) -> None:
        self._futures[lease] = self._client.submit(
            self._station.run_lease,
            job,
            terms,
            key=f"runq-lease-{ask_key(job)}-{lease}",
            workers=[address],
            allow_other_workers=False,
            resources=resources,
            pure=False,
            retries=0,
        )


def ask_key(job: str) -> str:
    """What tells this night's tasks from another's on the same scheduler."""
    from runq.fleet.wire import Job

    read = Job.from_json(job)
    return f"{read.journal}-{read.night}"
