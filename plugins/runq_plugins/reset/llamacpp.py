"""llama.cpp's `llama-server` in router mode: unloads every model and proves it by the model's own process.

Source: llama.cpp tools/server/README.md ("Using multiple models") and server-models.cpp. The router runs one child per
model. `POST /models/unload` answers at once; the status stays `loaded` while the child is asked to end and, after its
`stop-timeout` (10 s), killed; `unloaded` is set only when the child has ended. A loading child is killed at once, so a
load is waited for first. `DELETE /models` deletes files and is never called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs

from runq.plugin import HttpReply, Look, ResetContext, Sought
from runq_plugins.reset import owner
from runq_plugins.reset.asked import (
    AsksRegistry,
    Endpoint,
    bearer,
    context_option,
    key_in,
    key_option,
    root,
    timeout_option,
    url_option,
)
from runq_plugins.reset.eviction import Busy, Complaint, Deadline, Resident, Unasked, whole

NOT_RESIDENT = ("unloaded", "downloading", "downloaded")
"""The statuses without a child that holds a model; `loading`, `loaded`, `sleeping` and unknown ones count as loaded. A
model that sleeps has let go of its weights, not of its process and what that holds on the graphics card."""

SINGLE_REMEDY = (
    "start llama-server without a model, with `--models-dir` (router mode), or let runq start and end it: "
    "`reset: {backend: server, ...}`"
)


@attrs.define(kw_only=True)
class RouterRegistry:
    """The models of one router."""

    endpoint: Endpoint
    _single: str | None = attrs.field(default=None, init=False)
    _is_router: bool = attrs.field(default=False, init=False)

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """Every model whose status says that it has a process; the one model of a server that is no router."""
        if not self._is_router and self._single is None:
            self._find_role(deadline)
        if self._single is not None:
            return (Resident(id=self._single, model=self._single),)
        reply = self.endpoint.ask("GET", "/models", limit_s=deadline.call_s())
        data = reply.body.get("data") if isinstance(reply.body, dict) else None
        if reply.status != 200 or not isinstance(data, list):
            raise self.endpoint.strange(reply, "llama-server's list of models")
        found = (self._resident(model, reply) for model in data)
        return tuple(resident for resident in found if resident is not None)

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """Ask the router to unload each. The answer only says that it has begun."""
        if self._single is not None:
            raise Unasked(f"llama-server was started with one model, {self._single}, and cannot unload", SINGLE_REMEDY)
        problems: list[str] = []
        busy: Busy | None = None
        for resident in residents:
            body = {"model": resident.id}
            try:
                reply = self.endpoint.ask("POST", "/models/unload", limit_s=deadline.call_s(), body=body)
            except Busy as slow:
                busy = slow
                continue
            if not (_succeeded(reply) or _was_not_running(reply)):
                problems.append(f"llama-server did not confirm the unload of {resident.id} ({reply.summary()})")
        if problems:
            raise Complaint(problems[0])
        if busy:
            raise busy

    def owners(self) -> Sequence[owner.Owner] | None:
        """The models' processes: the router's children."""
        return owner.children_of_listener(self.endpoint.url, ("llama",))

    def _find_role(self, deadline: Deadline) -> None:
        reply = self.endpoint.ask("GET", "/props", limit_s=deadline.call_s())
        props = reply.body if isinstance(reply.body, dict) else {}
        if reply.status == 503:
            raise Busy(f"llama-server is loading its model ({reply.summary()})", SINGLE_REMEDY)
        if reply.status == 200 and props.get("role") == "router":
            self._is_router = True
        elif reply.status == 200 and isinstance(props.get("model_path"), str):
            alias = props.get("model_alias")
            self._single = alias if isinstance(alias, str) and alias else str(props["model_path"])
        else:
            raise self.endpoint.strange(reply, "what llama-server says of itself")

    def _resident(self, model: Any, reply: HttpReply) -> Resident | None:
        identifier = model.get("id") if isinstance(model, dict) else None
        status = model.get("status") if isinstance(model, dict) else None
        value = status.get("value") if isinstance(status, dict) else None
        if not (isinstance(identifier, str) and isinstance(status, dict) and isinstance(value, str)):
            raise self.endpoint.strange(reply, "a router's list of models with their status")
        if value in NOT_RESIDENT:
            return None
        meta = model.get("meta") if isinstance(model.get("meta"), dict) else {}
        size, args = whole(meta.get("size")), status.get("args")
        return Resident(
            id=identifier,
            model=identifier,
            size_mb=None if size is None else size / owner.MB,
            context_length=whole(meta.get("n_ctx")) or context_option(args if isinstance(args, list) else ()),
            note="" if value == "loaded" else value,
            loading=value == "loading",
        )


@attrs.frozen(kw_only=True)
class LlamaCppReset(AsksRegistry):
    """Unloads every model of a llama.cpp router: `llama-server` started without a model."""

    who: ClassVar[str] = "llama-server"

    base_url: str = url_option("http://127.0.0.1:8080", "the router")
    timeout_s: float = timeout_option()
    api_key_env: str = key_option("LLAMA_API_KEY", "llama-server's key")

    @classmethod
    def find(cls, look: Look) -> Sought:
        """Its servers on this machine, or where the user says."""
        from runq_plugins.find import llamacpp

        return llamacpp.find(look)

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """The router's URL."""
        return root(self.base_url)

    def registry(self, context: ResetContext) -> RouterRegistry:
        """The router's models."""
        return RouterRegistry(
            endpoint=Endpoint(
                url=root(self.base_url),
                who=self.who,
                start="start it with `llama-server --models-dir DIR`",
                headers=bearer(key_in(context, self.api_key_env)),
                sleep=context.sleep,
            )
        )


def _succeeded(reply: HttpReply) -> bool:
    return isinstance(reply.body, dict) and reply.body.get("success") is True


def _was_not_running(reply: HttpReply) -> bool:
    """Whether it had ended meanwhile: HTTP 400 "model is not running" (server-models.cpp)."""
    return reply.status == 400 and "not running" in reply.text
