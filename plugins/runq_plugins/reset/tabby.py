"""TabbyAPI: unloads its model and its embedding model.

Source: theroyallab/tabbyAPI endpoints/core/router.py and common/model.py. Both unloads answer `null`; without a model
every question after it is HTTP 503 "No ... models are currently loaded.". The model lives in the server's own process,
on the card: what can be proven here is only what that process gives back, so the verdict is `unverified` at best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs
import psutil

from runq.plugin import HttpReply, ResetContext
from runq_plugins.reset import owner
from runq_plugins.reset.asked import AsksRegistry, Endpoint, key_in, key_option, root, timeout_option, url_option
from runq_plugins.reset.eviction import Complaint, Deadline, Resident, whole

KINDS = ("/v1/model", "/v1/model/embedding")
"""Where the language model and the embedding model are."""


@attrs.define(kw_only=True)
class TabbyRegistry:
    """The models of one TabbyAPI server."""

    endpoint: Endpoint
    _paths: dict[str, str] = attrs.field(factory=dict, init=False)

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """The language model and the embedding model, where they are loaded."""
        found: list[Resident] = []
        for path in KINDS:
            reply = self.endpoint.ask("GET", path, limit_s=deadline.call_s())
            if _none_loaded(reply):
                continue
            card = reply.body if reply.status == 200 and isinstance(reply.body, dict) else {}
            name, parameters = card.get("id"), card.get("parameters")
            if not isinstance(name, str):
                raise self.endpoint.strange(reply, "TabbyAPI's card of its model")
            self._paths[name] = path
            length = whole(parameters.get("max_seq_len")) if isinstance(parameters, dict) else None
            found.append(Resident(id=name, model=name, context_length=length))
        return tuple(found)

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """Unload each; requests under way are cut off."""
        for resident in residents:
            limit_s = max(0.1, 0.5 * deadline.left_s)
            reply = self.endpoint.ask("POST", f"{self._paths[resident.id]}/unload", limit_s=limit_s)
            if not (reply.status == 200 and reply.text.strip() == "null") and not _none_loaded(reply):
                raise Complaint(f"TabbyAPI did not confirm the unload of {resident.id} ({reply.summary()})")

    def owners(self) -> Sequence[owner.Owner] | None:
        """The process that listens and everything below it; it stays."""
        process = owner.listener_of(self.endpoint.url)
        if process is None:
            return None
        try:
            return owner.snapshot((process, *process.children(recursive=True)), lambda _: False)
        except psutil.Error:
            return None


@attrs.frozen(kw_only=True)
class TabbyReset(AsksRegistry):
    """Unloads TabbyAPI's model and embedding model. Its process stays, so the verdict is `unverified` at best."""

    can_verify: ClassVar[bool] = False
    who: ClassVar[str] = "TabbyAPI"
    idle_limit_mb: ClassVar[float] = 2048.0
    """Python with torch and CUDA's libraries."""
    release_wait_s: ClassVar[float] = 10.0

    base_url: str = url_option("http://127.0.0.1:5000", "TabbyAPI")
    timeout_s: float = timeout_option()
    api_key_env: str = key_option("TABBY_ADMIN_KEY", "TabbyAPI's admin key")

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """TabbyAPI's URL."""
        return root(self.base_url)

    def registry(self, context: ResetContext) -> TabbyRegistry:
        """Its models."""
        key = key_in(context, self.api_key_env)
        return TabbyRegistry(
            endpoint=Endpoint(
                url=root(self.base_url),
                who=self.who,
                start="start it with `python main.py` in TabbyAPI's folder",
                headers={"X-Admin-Key": key} if key else {},
                sleep=context.sleep,
            )
        )


def _none_loaded(reply: HttpReply) -> bool:
    """Whether it says that there is no such model: HTTP 503 (common/model.py, `check_model_container`)."""
    return reply.status == 503 and "currently loaded" in reply.text
