"""KoboldCpp: restarts its server without a model, and proves it by the process that had it.

Source: KoboldCpp's admin mode (`--admin`, `--admindir`) as its clients use it. `POST /api/admin/reload_config` with
the file name `unload_model` answers `success`, and the server restarts: for a while nothing listens. Afterwards
`GET /api/v1/model` says `inactive`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs
import psutil

from runq.plugin import ResetContext
from runq_plugins.reset import owner
from runq_plugins.reset.asked import (
    AsksRegistry,
    Endpoint,
    bearer,
    key_in,
    key_option,
    root,
    timeout_option,
    url_option,
)
from runq_plugins.reset.eviction import Busy, Complaint, Deadline, Resident, Unasked, whole

NO_MODEL = "inactive"

UNLOAD = "unload_model"

IDLE_LIMIT_MB = 512.0
"""A process of KoboldCpp up to this size is taken to hold no model: Python, its libraries and its web pages."""


@attrs.define(kw_only=True)
class KoboldRegistry:
    """The one model of a KoboldCpp server."""

    endpoint: Endpoint
    _restarting: bool = attrs.field(default=False, init=False)

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """Its model, unless it says that it has none."""
        try:
            reply = self.endpoint.ask("GET", "/api/v1/model", limit_s=deadline.call_s())
        except Busy:
            raise
        except Unasked as problem:
            if self._restarting:
                raise Busy(f"KoboldCpp has not come back: {problem.reason}", problem.remedy) from problem
            raise
        name = reply.body.get("result") if isinstance(reply.body, dict) else None
        if reply.status != 200 or not isinstance(name, str) or not name:
            raise self.endpoint.strange(reply, "KoboldCpp's name of its model")
        if name == NO_MODEL:
            return ()
        return (
            Resident(id=name, model=name.removeprefix("koboldcpp/"), context_length=self._context_length(deadline)),
        )

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """Restart it without a model."""
        reply = self.endpoint.ask(
            "POST", "/api/admin/reload_config", limit_s=deadline.call_s(), body={"filename": UNLOAD}
        )
        if not (isinstance(reply.body, dict) and reply.body.get("success") is True):
            raise Complaint(
                f"KoboldCpp did not confirm the unload ({reply.summary()}); it must be started with `--admin`, and its"
                " password be in the variable that `api_key_env` names"
            )
        self._restarting = True

    def owners(self) -> Sequence[owner.Owner] | None:
        """The process that listens and everything below it."""
        process = owner.listener_of(self.endpoint.url)
        if process is None or not any("kobold" in word for word in owner.words_of(process)):
            return None
        try:
            return owner.snapshot((process, *process.children(recursive=True)), lambda _: True)
        except psutil.Error:
            return None

    def _context_length(self, deadline: Deadline) -> int | None:
        reply = self.endpoint.ask("GET", "/api/extra/true_max_context_length", limit_s=deadline.call_s())
        return whole(reply.body.get("value")) if isinstance(reply.body, dict) else None


@attrs.frozen(kw_only=True)
class KoboldCppReset(AsksRegistry):
    """Restarts a KoboldCpp server without its model; the steps, or its admin directory, must load the next one."""

    who: ClassVar[str] = "KoboldCpp"
    idle_limit_mb: ClassVar[float] = IDLE_LIMIT_MB

    base_url: str = url_option("http://127.0.0.1:5001", "KoboldCpp")
    timeout_s: float = timeout_option()
    api_key_env: str = key_option("KOBOLDCPP_ADMINPASSWORD", "the password of `--adminpassword`")

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """KoboldCpp's URL."""
        return root(self.base_url)

    def registry(self, context: ResetContext) -> KoboldRegistry:
        """Its model."""
        return KoboldRegistry(
            endpoint=Endpoint(
                url=root(self.base_url),
                who=self.who,
                start="start it with `koboldcpp --admin`",
                headers=bearer(key_in(context, self.api_key_env)),
                sleep=context.sleep,
            )
        )
