"""vLLM's sleep mode: servers that run all night, of which only the one that is needed is awake.

Source: vLLM docs/features/sleep_mode.md. The paths exist only with `--enable-sleep-mode` and `VLLM_SERVER_DEV_MODE=1`.
A server that sleeps has let go of its weights and its cache, not of its process and of what that holds on the card
(vllm-project/vllm#32714, #47654: up to all of it), and at level 1 the weights are in the system's memory. So sleep is
never `verified`; the end of the process is, which is the `server` backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from runq.plugin import HttpReply, Look, ModelSpec, PluginError, ResetContext, ResetOutcome, Sought
from runq_plugins.options import not_empty, url_problem
from runq_plugins.reset import owner
from runq_plugins.reset.asked import (
    AsksRegistry,
    Endpoint,
    bearer,
    key_in,
    key_option,
    root,
    timeout_option,
)
from runq_plugins.reset.eviction import Busy, Complaint, Deadline, Resident, Unasked, evict_all, whole

POLL_S = 0.5
"""Seconds between two questions while a server wakes up."""

SERVER_REMEDY = "for a proven baseline let runq start and end vLLM: `reset: {backend: server, ...}`"


def _urls(_: Any, attribute: attrs.Attribute[Any], value: Sequence[str]) -> None:
    not_empty(_, attribute, value)
    for url in value:
        problem = url_problem(url)
        if problem:
            raise ValueError(f"{attribute.name}: {problem}")


def _level(_: Any, attribute: attrs.Attribute[Any], value: int) -> None:
    if value not in (1, 2):
        raise ValueError(f"{attribute.name} must be 1 or 2, not {value!r}")


@attrs.define(kw_only=True)
class SleepRegistry:
    """The vLLM servers that are awake; a resident's id is the model that its server serves."""

    endpoints: Sequence[Endpoint]
    level: int
    _awake: dict[str, Endpoint] = attrs.field(factory=dict, init=False)

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """The model of every server that does not sleep."""
        found: list[Resident] = []
        for endpoint in self.endpoints:
            if is_sleeping(endpoint, deadline):
                continue
            name, length = served(endpoint, deadline)[0]
            self._awake[name] = endpoint
            found.append(Resident(id=name, model=name, context_length=length))
        return tuple(found)

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """Send each server to sleep."""
        for resident in residents:
            endpoint = self._awake[resident.id]
            reply = endpoint.ask("POST", f"/sleep?level={self.level}", limit_s=max(0.1, 0.5 * deadline.left_s))
            if reply.status != 200:
                raise Complaint(f"vLLM did not confirm the sleep of {resident.id} ({reply.summary()})")

    def owners(self) -> Sequence[owner.Owner] | None:
        """The servers' processes, for their figures: they stay."""
        found: list[owner.Owner] = []
        for endpoint in self.endpoints:
            process = owner.listener_of(endpoint.url)
            family = None if process is None else owner.snapshot(owner.family(process, ("vllm",)), lambda _: False)
            if family is None:
                return None
            found += family
        return tuple(found)


@attrs.frozen(kw_only=True)
class VllmReset(AsksRegistry):
    """Sends vLLM servers to sleep and wakes the one that the next step needs. Sleep is partial: never `verified`."""

    can_verify: ClassVar[bool] = False
    who: ClassVar[str] = "vLLM"

    base_urls: tuple[str, ...] = attrs.field(
        default=("http://127.0.0.1:8000",),
        validator=_urls,
        metadata={"description": "Addresses of all the vLLM servers, one per model; a trailing `/v1` is ignored."},
    )
    level: int = attrs.field(
        default=2,
        validator=_level,
        metadata={"description": "How deep they sleep: 1 keeps the weights in the system's memory, 2 discards them."},
    )
    timeout_s: float = timeout_option(300.0)
    api_key_env: str = key_option("VLLM_API_KEY", "vLLM's key")

    @classmethod
    def find(cls, look: Look) -> Sought:
        """Its servers on this machine, or where the user says."""
        from runq_plugins.find import vllm

        return vllm.find(look)

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """The first server's URL."""
        return root(self.base_urls[0])

    def registry(self, context: ResetContext) -> SleepRegistry:
        """The servers."""
        return SleepRegistry(endpoints=self._endpoints(context), level=self.level)

    def reset(self, context: ResetContext) -> ResetOutcome:
        """Send every server that is awake to sleep."""
        outcome = evict_all(
            self.registry(context),
            context,
            who=self.who,
            timeout_s=self.timeout_s,
            idle_limit_mb=float("inf"),  # the processes stay: their size proves nothing
            release_wait_s=0.0,
        )
        if outcome.verdict == "failed":
            return outcome
        kept = "the weights are in the system's memory" if self.level == 1 else "the weights are discarded"
        return attrs.evolve(
            outcome,
            verdict="unverified",
            reason=f"vLLM sleeps (level {self.level}): {kept}; its process and what that holds on the card stay",
            remedy=SERVER_REMEDY,
        )

    def start(self, context: ResetContext, model: ModelSpec) -> None:
        """Wake the server of a model.

        Raises:
            PluginError: no server serves it, or it did not wake in time.
        """
        deadline = Deadline(context.clock, context.clock() + self.timeout_s)
        try:
            endpoint = self._server_of(model, context, deadline)
            for path, body in self._waking():
                reply = endpoint.ask("POST", path, limit_s=max(0.1, deadline.left_s), body=body)
                if reply.status != 200:
                    raise PluginError(
                        f"vLLM at {endpoint.url} did not wake up: {path} ({reply.summary()})",
                        remedy="look at its log, and restart it",
                    )
            while is_sleeping(endpoint, deadline):
                if deadline.left_s <= 0:
                    raise PluginError(
                        f"vLLM at {endpoint.url} still sleeps after {self.timeout_s:g} s",
                        remedy="look at its log, and restart it",
                    )
                context.sleep(POLL_S)
        except Unasked as problem:
            raise PluginError(problem.reason, remedy=problem.remedy) from problem

    def _waking(self) -> Sequence[tuple[str, Any]]:
        """The requests that wake a server of this level; discarded weights are read again before the cache is made."""
        if self.level == 1:
            return (("/wake_up", None),)
        reload = ("/collective_rpc", {"method": "reload_weights"})
        return (("/wake_up?tags=weights", None), reload, ("/wake_up?tags=kv_cache", None))

    def _server_of(self, model: ModelSpec, context: ResetContext, deadline: Deadline) -> Endpoint:
        endpoints = self._endpoints(context)
        offered = {endpoint.url: [name for name, _ in served(endpoint, deadline)] for endpoint in endpoints}
        for endpoint in endpoints:
            if model.id in offered[endpoint.url]:
                return endpoint
        names = ", ".join(name for found in offered.values() for name in found)
        raise PluginError(
            f"no vLLM server serves {model.id}; they serve {names}",
            remedy="name the server of this model in `base_urls`, or write its id as `--served-model-name` has it",
        )

    def _endpoints(self, context: ResetContext) -> Sequence[Endpoint]:
        headers = bearer(key_in(context, self.api_key_env))
        return [
            Endpoint(
                url=root(url),
                who=self.who,
                start="start it with `vllm serve MODEL --enable-sleep-mode`",
                option="base_urls",
                headers=headers,
                sleep=context.sleep,
            )
            for url in self.base_urls
        ]


def is_sleeping(endpoint: Endpoint, deadline: Deadline) -> bool:
    """Whether a server sleeps.

    Raises:
        Unasked, Busy: it cannot be told.
    """
    reply = endpoint.ask("GET", "/is_sleeping", limit_s=deadline.call_s())
    if reply.status == 404:
        raise Unasked(
            f"vLLM at {endpoint.url} has no sleep mode ({reply.summary()})",
            f"start it with `--enable-sleep-mode` and VLLM_SERVER_DEV_MODE=1; {SERVER_REMEDY}",
        )
    sleeping = reply.body.get("is_sleeping") if isinstance(reply.body, dict) else None
    if reply.status == 503:
        raise Busy(f"vLLM is busy ({reply.summary()})", "restart vLLM if this goes on")
    if reply.status != 200 or not isinstance(sleeping, bool):
        raise endpoint.strange(reply, "whether vLLM sleeps")
    return sleeping


def served(endpoint: Endpoint, deadline: Deadline) -> Sequence[tuple[str, int | None]]:
    """The models of a server with their context lengths; at least one.

    Raises:
        Unasked, Busy: it cannot be told.
    """
    reply = endpoint.ask("GET", "/v1/models", limit_s=deadline.call_s())
    data = reply.body.get("data") if reply.status == 200 and isinstance(reply.body, dict) else None
    found = [_served(one, endpoint, reply) for one in (data if isinstance(data, list) else ())]
    if not found:
        raise endpoint.strange(reply, "vLLM's list of models")
    return found


def _served(one: object, endpoint: Endpoint, reply: HttpReply) -> tuple[str, int | None]:
    name = one.get("id") if isinstance(one, dict) else None
    if not isinstance(one, dict) or not isinstance(name, str):
        raise endpoint.strange(reply, "vLLM's list of models")
    return name, whole(one.get("max_model_len"))
