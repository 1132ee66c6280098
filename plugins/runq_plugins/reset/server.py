"""A server of one's own per model: started before the steps that need it, its end is the eviction.

For llama.cpp's `llama-server`, vLLM, `mlx_lm.server` and all that cannot unload: the process's exit beats every
counter. Health: llama.cpp tools/server/README.md answers 503 while it loads the model and 200 once it can serve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
from urllib3.util import parse_url

from runq.plugin import (
    HttpFailure,
    ModelSpec,
    Need,
    PluginError,
    ResetContext,
    ResetOutcome,
    Server,
    Unreachable,
    request_json,
)
from runq_plugins.options import not_empty, port_number, positive, url_problem
from runq_plugins.templates import fill, names_in

KNOWN = ("model", "port")

QUESTION_S = 5.0
"""The most seconds one health question may take; a server that loads may answer slowly."""


def _templates(_: Any, attribute: attrs.Attribute[Any], value: str | Sequence[str]) -> None:
    for template in (value,) if isinstance(value, str) else value:
        for name in names_in(template):
            if name not in KNOWN:
                known = ", ".join(f"{{{known}}}" for known in KNOWN)
                raise ValueError(f"{attribute.name}: {{{name}}} is not known; known are {known}")


def program_and_templates(_: Any, attribute: attrs.Attribute[Any], value: Sequence[str]) -> None:
    """A command line in which only `{model}` and `{port}` stand."""
    not_empty(_, attribute, value)
    _templates(_, attribute, value)


def _health(instance: ServerReset, attribute: attrs.Attribute[Any], value: str) -> None:
    if "model" in names_in(value):
        raise ValueError(f"{attribute.name}: only {{port}} may stand in it")
    _templates(instance, attribute, value)
    problem = url_problem(fill(value, lambda _: str(instance.port)))
    if problem:
        raise ValueError(f"{attribute.name}: {problem}")


@attrs.frozen(kw_only=True)
class ServerReset:
    """Starts one server per model and ends it to evict the model."""

    can_verify: ClassVar[bool] = True

    argv: tuple[str, ...] = attrs.field(
        validator=program_and_templates,
        metadata={
            "description": "The server's command line; `{model}` is the model's id, `{port}` the port, `{{` a brace."
        },
    )
    port: int = attrs.field(
        validator=port_number, metadata={"description": "Port the server listens on, for `{port}`."}
    )
    health_url: str = attrs.field(
        default="http://127.0.0.1:{port}/health",
        validator=_health,
        metadata={"description": "Answers HTTP 200 once the server can serve; `{port}` is the port."},
    )
    start_timeout_s: float = attrs.field(
        default=300.0,
        validator=positive,
        metadata={"description": "Seconds until the server must be healthy."},
    )
    health_interval_s: float = attrs.field(
        default=0.5, validator=positive, metadata={"description": "Seconds between two health questions."}
    )
    env: Mapping[str, str] = attrs.field(
        factory=dict,
        metadata={"description": "Environment variables for the server, beside those of the entry."},
    )

    def needs(self, base_dir: Path) -> Sequence[Need]:
        """The server's program."""
        return (Need(program=self.argv[0], remedy="install it, or correct `argv`"),)

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """Scheme, host and port of the health URL."""
        url = parse_url(self._health_url())
        return f"{url.scheme}://{url.netloc}"

    def start(self, context: ResetContext, model: ModelSpec) -> None:
        """Spawn the server and wait until it is healthy.

        Raises:
            PluginError: something answers already, the server ended, or it was not healthy in time.
        """
        answer = self._ask(context, QUESTION_S)
        if answer is not None:
            raise PluginError(
                f"something already answers at {self._health_url()} ({answer}), so another program would be measured",
                remedy="end that program, or give another `port`",
            )
        argv = [fill(word, lambda name: model.id if name == "model" else str(self.port)) for word in self.argv]
        server = context.supervisor.start(argv, model=model.id, env=dict(self.env))
        self._await_health(context, server, model)

    def reset(self, context: ResetContext) -> ResetOutcome:
        """End every server that was started; afterwards nothing may answer at the health URL."""
        running = [server for server in context.supervisor.servers() if server.running()]
        before = tuple(server.model for server in running)
        survivors = tuple(context.supervisor.stop_all())
        details = {"stopped_pids": [server.pid for server in running], "survivors": list(survivors)}
        if survivors:
            pids = ", ".join(map(str, survivors))
            return ResetOutcome(
                verdict="failed",
                loaded_before=before,
                loaded_after=before,
                reason=f"processes of the server could not be ended: pid {pids}",
                remedy=f"look at them with `ps -o stat,wchan,args -p {pids.replace(' ', '')}`; state D means a driver",
                details=details,
            )
        answer = self._ask(context, QUESTION_S)
        if answer is not None:
            return ResetOutcome(
                verdict="unverified",
                loaded_before=before,
                reason=f"no server of this night runs, but something else answers at {self._health_url()} ({answer})",
                remedy="end that program, or give another `port`",
                details=details,
            )
        return ResetOutcome(verdict="verified", loaded_before=before, loaded_after=(), details=details)

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        """The models of the servers that run."""
        return [server.model for server in context.supervisor.servers() if server.running()]

    def _health_url(self) -> str:
        return fill(self.health_url, lambda _: str(self.port))

    def _ask(self, context: ResetContext, timeout_s: float) -> str | None:
        """What the health URL answers, in words; ``None`` when nothing listens there."""
        try:
            reply = request_json("GET", self._health_url(), timeout_s=timeout_s, sleep=context.sleep)
        except Unreachable:
            return None
        except HttpFailure as failure:
            return str(failure)
        return f"HTTP {reply.status}"

    def _await_health(self, context: ResetContext, server: Server, model: ModelSpec) -> None:
        deadline = context.clock() + self.start_timeout_s
        answer: str | None = None
        while True:
            left = deadline - context.clock()
            if left > 0:
                answer = self._ask(context, min(QUESTION_S, max(0.1, left)))
            if not server.running():
                context.supervisor.stop_all()
                raise PluginError(
                    f"the server of {model.id} ended before it was healthy{_tail(server)}",
                    remedy="run its command line by hand; its whole output is in the server's log",
                )
            if answer == "HTTP 200":
                return
            if left <= 0:
                last = answer or "nothing listened"
                context.supervisor.stop_all()
                raise PluginError(
                    f"the server of {model.id} was not healthy within {self.start_timeout_s:g} s "
                    f"(last answer at {self._health_url()}: {last}){_tail(server)}",
                    remedy="raise `start_timeout_s`, or correct `health_url`",
                )
            context.sleep(min(self.health_interval_s, max(0.01, left)))


def _tail(server: Server) -> str:
    lines = [line for line in server.log_tail() if line.strip()][-8:]
    return "; its log ends: " + " | ".join(lines) if lines else ""
