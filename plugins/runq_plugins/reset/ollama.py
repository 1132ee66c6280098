"""Ollama: evicts every local model through its HTTP interface, and proves it by the runner processes.

Source: Ollama server/routes.go (`GenerateHandler`: keep_alive 0 with an empty prompt expires the runner and answers at
once, the same whether or not anything was loaded), server/sched.go (`Load` lists a model only when it is up),
api/types.go (`ProcessModelResponse`). The command line is not used: on macOS it starts the app when the server is down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import attrs
import psutil
from urllib3.util import parse_url

from runq.plugin import Garbage, HttpFailure, HttpReply, ResetContext, ResetOutcome, TimedOut, Unreachable, request_json
from runq_plugins.options import positive, url_problem
from runq_plugins.reset import owner
from runq_plugins.reset.eviction import (
    Busy,
    Complaint,
    Deadline,
    Resident,
    Unasked,
    context_lengths,
    evict_all,
    whole,
)
from runq_plugins.reset.ollama_host import ollama_url

_WHO = "Ollama"


def _host(_: Any, attribute: attrs.Attribute[Any], value: str | None) -> None:
    problem = "" if value is None else url_problem(ollama_url(value))
    if problem:
        raise ValueError(f"{attribute.name}: {problem}")


@attrs.frozen(kw_only=True)
class OllamaRegistry:
    """The models of one Ollama server."""

    url: str
    sleep: Callable[[float], None]

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """Everything that `GET /api/ps` lists, models that run elsewhere left out."""
        try:
            reply = request_json("GET", f"{self.url}/api/ps", timeout_s=deadline.call_s(), sleep=self.sleep)
        except TimedOut as error:
            raise Busy(
                f"Ollama is busy or hangs, a model may be loading: {error}", "restart Ollama if this goes on"
            ) from error
        except Unreachable as error:
            raise Unasked(f"Ollama could not be asked: {error}", "start it with `ollama serve`") from error
        except Garbage as error:
            raise Unasked(f"what listens there is not Ollama: {error}", "give Ollama's address as `host`") from error
        return _models(reply)

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """An empty prompt with keep_alive 0 for each."""
        problems: list[str] = []
        for resident in residents:
            try:
                reply = request_json(
                    "POST",
                    f"{self.url}/api/generate",
                    body={"model": resident.id, "keep_alive": 0, "stream": False},
                    timeout_s=deadline.call_s(),
                    sleep=self.sleep,
                )
            except HttpFailure as error:
                problems.append(f"the unload of {resident.id} was not answered: {error}")
                continue
            if not (isinstance(reply.body, dict) and reply.body.get("done_reason") == "unload"):
                problems.append(f"Ollama did not confirm the unload of {resident.id} ({reply.summary()})")
        if problems:
            raise Complaint(problems[0])

    def owners(self) -> Sequence[owner.Owner] | None:
        """The runner processes: every descendant of the server that listens on this machine's port.

        They are `llama-server` since Ollama 0.30.0 and `ollama runner` or `ollama_llama_server` before; the server
        starts nothing else, so no name is asked for.
        """
        url = parse_url(self.url)
        if not owner.is_local(url.host or ""):
            return None
        server = owner.listener(url.port or (443 if url.scheme == "https" else 80))
        if server is None or not owner.bears(server, ("ollama",)):  # a tunnel or a container's proxy
            return None
        try:
            return owner.snapshot(server.children(recursive=True), lambda _: True)
        except psutil.Error:
            return None


@attrs.frozen(kw_only=True)
class OllamaReset:
    """Evicts every model that Ollama holds on its machine; cloud models hold no memory there and are left alone."""

    can_verify: ClassVar[bool] = True

    host: str | None = attrs.field(
        default=None,
        validator=_host,
        metadata={"description": "Address, written as in OLLAMA_HOST; by default that variable, else 127.0.0.1:11434."},
    )
    timeout_s: float = attrs.field(
        default=120.0, validator=positive, metadata={"description": "Seconds the whole reset may take."}
    )

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """Ollama's URL, `OLLAMA_HOST` of the environment included."""
        return self._url(env.get("OLLAMA_HOST", ""))

    def reset(self, context: ResetContext) -> ResetOutcome:
        """Evict what is listed, wait for an empty list, and look whether the runners are gone."""
        return evict_all(
            self._registry(context),
            context,
            who=_WHO,
            timeout_s=self.timeout_s,
            idle_limit_mb=0.0,  # a runner exists only while a model does
            release_wait_s=self.timeout_s,  # an unlisted runner is usually a load, which ends by being listed
        )

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        """The names that `GET /api/ps` lists; ``None`` when it cannot be asked."""
        residents = self._residents(context)
        return None if residents is None else [resident.id for resident in residents]

    def context_lengths(self, context: ResetContext) -> Mapping[str, int]:
        """The context length of each loaded model, which `GET /api/ps` has since Ollama 0.9.7."""
        return context_lengths(self._residents(context) or ())

    def _residents(self, context: ResetContext) -> Sequence[Resident] | None:
        deadline = Deadline(context.clock, context.clock() + self.timeout_s)
        try:
            return self._registry(context).residents(deadline)
        except Unasked:
            return None

    def _registry(self, context: ResetContext) -> OllamaRegistry:
        return OllamaRegistry(url=self._url(context.env.get("OLLAMA_HOST", "")), sleep=context.sleep)

    def _url(self, variable: str) -> str:
        return ollama_url(variable if self.host is None else self.host)


def _models(reply: HttpReply) -> tuple[Resident, ...]:
    models = reply.body.get("models") if isinstance(reply.body, dict) else None
    if reply.status == 503:
        raise Busy(f"Ollama is busy ({reply.summary()})", "restart Ollama if this goes on")
    if isinstance(reply.body, dict) and "error" in reply.body:
        raise Unasked(f"Ollama answered with an error ({reply.summary()})", "look into Ollama's log")
    if reply.status != 200 or not isinstance(models, list):
        raise Unasked(
            f"the answer is not Ollama's list of running models ({reply.summary()})",
            "give Ollama's address as `host`",
        )
    found: list[Resident] = []
    for model in models:
        name = (model.get("model") or model.get("name")) if isinstance(model, dict) else None
        if not isinstance(name, str):
            raise Unasked(f"Ollama lists a model without a name ({reply.summary()})", "update runq or Ollama")
        if not _elsewhere(name, model):
            size = model.get("size")
            found.append(
                Resident(
                    id=name,
                    model=name,
                    size_mb=size / owner.MB if isinstance(size, int) and not isinstance(size, bool) else None,
                    context_length=whole(model.get("context_length")),
                    note="Stopping..., a request may still be open" if _expired(model.get("expires_at")) else "",
                )
            )
    return tuple(found)


def _elsewhere(name: str, model: dict[str, Any]) -> bool:
    """Whether a model runs on another machine: a `cloud` tag, or a remote host in its description."""
    tag = name.rpartition(":")[2]
    return tag == "cloud" or tag.endswith("-cloud") or bool(model.get("remote_host") or model.get("remote_model"))


def _expired(text: object) -> bool:
    """Whether the time is past: what `ollama ps` prints as "Stopping..." (Ollama cmd/cmd.go)."""
    if not isinstance(text, str):
        return False
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return False
    return at.tzinfo is not None and at < datetime.now(UTC)
