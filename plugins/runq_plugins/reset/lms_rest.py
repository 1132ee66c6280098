"""LM Studio's REST interface, version 1 (LM Studio 0.4.0 and later).

Source: LM Studio's documentation, developer/rest (list, load, unload). An unknown path is answered with HTTP 200 and
an ``error`` (lmstudio-ai/lmstudio-bug-tracker#1680), so every answer is judged by the shape of its body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import psutil

from runq.plugin import HttpReply
from runq_plugins.reset import owner
from runq_plugins.reset.asked import Endpoint
from runq_plugins.reset.eviction import Busy, Complaint, Deadline, Resident, Unasked, whole

MARKERS = ("llmster", "llmworker", "lm studio", "lm-studio", "lmstudio")
"""Parts of the names and program paths of LM Studio's processes: the app, the headless `llmster`, and the workers
that its own node runs from `~/.lmstudio` (lmstudio-ai/lms#502 shows the tree)."""

EVICT_S = 30.0
"""The most seconds one unload may take; a few are usual, and the list decides in the end."""


@attrs.frozen(kw_only=True)
class RestRegistry:
    """The models of one LM Studio server."""

    endpoint: Endpoint

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """Every loaded instance of every model."""
        return _instances(self.endpoint.ask("GET", "/api/v1/models", limit_s=deadline.call_s()))

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """Unload each instance by its id; the answer must name it again."""
        problems: list[str] = []
        slow = ""
        for resident in residents:
            limit_s, body = max(0.1, min(EVICT_S, deadline.left_s)), {"instance_id": resident.id}
            try:
                reply = self.endpoint.ask("POST", "/api/v1/models/unload", limit_s=limit_s, body=body)
            except Busy as error:
                slow = f"the unload of {resident.id} was not answered: {error.cause}"
                continue
            except Unasked as error:
                problems.append(f"the unload of {resident.id} was not answered: {error.cause}")
                continue
            if not (isinstance(reply.body, dict) and reply.body.get("instance_id") == resident.id):
                problems.append(f"LM Studio did not confirm the unload ({reply.summary()})")
        if problems:
            raise Complaint(problems[0])
        if slow:
            raise Busy(slow, "restart LM Studio")

    def owners(self) -> Sequence[owner.Owner] | None:
        """The family of the process that listens on this machine's port."""
        process = owner.listener_of(self.endpoint.url)
        return None if process is None else family_owners(process)


def family_owners(process: psutil.Process) -> Sequence[owner.Owner] | None:
    """LM Studio's processes around one of them; ``None`` when it is not LM Studio's (a tunnel, a proxy)."""
    if not owner.bears(process, MARKERS):
        return None
    return owner.snapshot(owner.family(process, MARKERS), is_worker)


def is_worker(process: psutil.Process) -> bool:
    """Whether a process exists only to hold models."""
    return any("llmworker" in word for word in owner.words_of(process))


def _instances(reply: HttpReply) -> tuple[Resident, ...]:
    models = reply.body.get("models") if isinstance(reply.body, dict) else None
    if reply.status != 200 or not isinstance(models, list):
        raise Unasked(
            f"the answer is not LM Studio's list of models ({reply.summary()})",
            "update LM Studio to 0.4.0 or later, or give its address as `base_url`",
        )
    return tuple(resident for model in models for resident in _of_model(model, reply))


def _of_model(model: Any, reply: HttpReply) -> list[Resident]:
    instances = model.get("loaded_instances") if isinstance(model, dict) else None
    if not isinstance(instances, list):
        raise Unasked(
            f"LM Studio's list has a model without `loaded_instances` ({reply.summary()})",
            "update runq or LM Studio",
        )
    size = model.get("size_bytes")
    found: list[Resident] = []
    for instance in instances:
        identifier = instance.get("id") if isinstance(instance, dict) else None
        if not isinstance(identifier, str):
            raise Unasked("LM Studio lists a loaded instance without an id", "update runq or LM Studio")
        found.append(
            Resident(
                id=identifier,
                model=str(model.get("key", identifier)),
                size_mb=size / owner.MB if isinstance(size, (int, float)) and not isinstance(size, bool) else None,
                context_length=_context_length(instance),
            )
        )
    return found


def _context_length(instance: Mapping[str, Any]) -> int | None:
    config = instance.get("config")
    return whole(config.get("context_length")) if isinstance(config, dict) else None
