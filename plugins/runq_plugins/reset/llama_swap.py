"""llama-swap: stops every upstream process and proves it by those processes.

Source: mostlygeek/llama-swap internal/server (`/running`, `/api/models/unload`, `/unload`) and internal/process. The
unload answers when the processes have been stopped: SIGTERM, after `unloadTimeout` (10 s) SIGKILL, one group after
another; requests under way are ended. `/running` lists what is `starting`, `ready` or `stopping`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

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
    words_in,
)
from runq_plugins.reset.eviction import Complaint, Deadline, Resident

UNLOAD_SHARE = 0.75
"""The part of the time left that the unload may take: it answers late, and the list must still be read after it."""


@attrs.frozen(kw_only=True)
class SwapRegistry:
    """What one llama-swap runs."""

    endpoint: Endpoint

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """Every upstream process that is not stopped."""
        reply = self.endpoint.ask("GET", "/running", limit_s=deadline.call_s())
        running = reply.body.get("running") if isinstance(reply.body, dict) else None
        if reply.status != 200 or not isinstance(running, list):
            raise self.endpoint.strange(reply, "llama-swap's list of what runs")
        return tuple(self._resident(one, reply) for one in running)

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """Stop everything at once."""
        reply = self.endpoint.ask("POST", "/api/models/unload", limit_s=max(0.1, UNLOAD_SHARE * deadline.left_s))
        if reply.status in (404, 405):  # llama-swap before it had this path
            reply = self.endpoint.ask("GET", "/unload", limit_s=max(0.1, UNLOAD_SHARE * deadline.left_s))
        confirmed = isinstance(reply.body, dict) and reply.body.get("msg") == "ok"
        if not (confirmed or reply.text.strip() == "OK"):
            raise Complaint(f"llama-swap did not confirm the unload ({reply.summary()})")

    def owners(self) -> Sequence[owner.Owner] | None:
        """The upstream processes: llama-swap's children and theirs."""
        return owner.children_of_listener(self.endpoint.url, ("llama-swap", "llamaswap"))

    def _resident(self, one: object, reply: HttpReply) -> Resident:
        model = one.get("model") if isinstance(one, dict) else None
        if not isinstance(one, dict) or not isinstance(model, str):
            raise self.endpoint.strange(reply, "llama-swap's list of what runs")
        state = str(one.get("state", ""))
        return Resident(
            id=model,
            model=model,
            context_length=context_option(words_in(one.get("cmd"))),
            note="" if state == "ready" else state,
            loading=state == "starting",
        )


@attrs.frozen(kw_only=True)
class LlamaSwapReset(AsksRegistry):
    """Stops every model that llama-swap runs; requests under way are ended."""

    who: ClassVar[str] = "llama-swap"

    base_url: str = url_option("http://127.0.0.1:8080", "llama-swap")
    timeout_s: float = timeout_option()
    api_key_env: str = key_option("LLAMA_SWAP_API_KEY", "one of llama-swap's `apiKeys`")

    @classmethod
    def find(cls, look: Look) -> Sought:
        """Its servers on this machine, or where the user says."""
        from runq_plugins.find import llama_swap

        return llama_swap.find(look)

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """llama-swap's URL."""
        return root(self.base_url)

    def registry(self, context: ResetContext) -> SwapRegistry:
        """What llama-swap runs."""
        return SwapRegistry(
            endpoint=Endpoint(
                url=root(self.base_url),
                who=self.who,
                start="start it with `llama-swap --config FILE`",
                headers=bearer(key_in(context, self.api_key_env)),
                sleep=context.sleep,
            )
        )
