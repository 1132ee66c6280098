"""Ollama: evicts every local model through its HTTP interface, and proves it by the runner processes.

Source: Ollama server/routes.go (`GenerateHandler`: keep_alive 0 with an empty prompt expires the runner and answers at
once, the same whether or not anything was loaded), server/sched.go (`Load` lists a model only when it is up),
api/types.go (`ProcessModelResponse`). The command line is not used: on macOS it starts the app when the server is down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import attrs

from runq.plugin import HttpReply, Look, ResetContext, Sought
from runq_plugins.options import url_problem
from runq_plugins.reset import owner
from runq_plugins.reset.asked import AsksRegistry, Endpoint, timeout_option
from runq_plugins.reset.eviction import Busy, Complaint, Deadline, Resident, Unasked, whole
from runq_plugins.reset.ollama_host import ollama_url


def _host(_: Any, attribute: attrs.Attribute[Any], value: str | None) -> None:
    problem = "" if value is None else url_problem(ollama_url(value))
    if problem:
        raise ValueError(f"{attribute.name}: {problem}")


@attrs.frozen(kw_only=True)
class OllamaRegistry:
    """The models of one Ollama server."""

    endpoint: Endpoint

    def residents(self, deadline: Deadline) -> Sequence[Resident]:
        """Everything that `GET /api/ps` lists, models that run elsewhere left out."""
        return _models(self.endpoint, self.endpoint.ask("GET", "/api/ps", limit_s=deadline.call_s()))

    def evict(self, residents: Sequence[Resident], deadline: Deadline) -> None:
        """An empty prompt with keep_alive 0 for each."""
        problems: list[str] = []
        for resident in residents:
            body = {"model": resident.id, "keep_alive": 0, "stream": False}
            try:
                reply = self.endpoint.ask("POST", "/api/generate", limit_s=deadline.call_s(), body=body)
            except Unasked as error:
                problems.append(f"the unload of {resident.id} was not answered: {error.cause}")
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
        return owner.children_of_listener(self.endpoint.url, ("ollama",))


@attrs.frozen(kw_only=True)
class OllamaReset(AsksRegistry):
    """Evicts every model that Ollama holds on its machine; cloud models hold no memory there and are left alone."""

    who: ClassVar[str] = "Ollama"

    host: str | None = attrs.field(
        default=None,
        validator=_host,
        metadata={"description": "Address, written as in OLLAMA_HOST; by default that variable, else 127.0.0.1:11434."},
    )
    timeout_s: float = timeout_option()

    @classmethod
    def find(cls, look: Look) -> Sought:
        """Its servers on this machine, or where the user says."""
        from runq_plugins.find import ollama

        return ollama.find(look)

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """Ollama's URL, `OLLAMA_HOST` of the environment included."""
        return self._url(env.get("OLLAMA_HOST", ""))

    def registry(self, context: ResetContext) -> OllamaRegistry:
        """What Ollama lists."""
        return OllamaRegistry(
            endpoint=Endpoint(
                url=self._url(context.env.get("OLLAMA_HOST", "")),
                who=self.who,
                start="start it with `ollama serve`",
                option="host",
                sleep=context.sleep,
            )
        )

    def _url(self, variable: str) -> str:
        return ollama_url(variable if self.host is None else self.host)


def _models(endpoint: Endpoint, reply: HttpReply) -> tuple[Resident, ...]:
    models = reply.body.get("models") if isinstance(reply.body, dict) else None
    if reply.status == 503:
        raise Busy(f"Ollama is busy ({reply.summary()})", "restart Ollama if this goes on")
    if isinstance(reply.body, dict) and "error" in reply.body:
        raise Unasked(f"Ollama answered with an error ({reply.summary()})", "look into Ollama's log")
    if reply.status != 200 or not isinstance(models, list):
        raise endpoint.strange(reply, "Ollama's list of running models")
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
