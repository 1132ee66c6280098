"""What one queue file needs: its programs, its servers, its models."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from runq.discovery import Plugins
from runq.doctor.finding import Finding, Status
from runq.doctor.needs import Runs, find_program, need_finding, run_python
from runq.http import HttpFailure, request_json
from runq.locks import endpoint_name
from runq.looking import Look, Need, Sought, TellsNeeds
from runq.plugin import StartsServer, Target
from runq.prepared import PreparedEntry, PreparedQueue
from runq.seeking import seek
from runq_schemas.errors import QueueFileError

AREA = "queue"

ASK_S = 10.0
"""Seconds a server may take to list its models; one that loads a model may answer late."""


def refused_findings(error: QueueFileError) -> Iterator[Finding]:
    """Why a night would refuse the file."""
    for problem in error.problems:
        yield Finding(
            area=AREA, name=problem.where or AREA, status="fail", message=problem.message, remedy=problem.remedy
        )


def queue_findings(
    queue: PreparedQueue, plugins: Plugins, sizes_mb: MutableMapping[str, float], *, run: Runs = run_python
) -> Iterator[Finding]:
    """Everything that a queue needs and that can be looked at without loading a model.

    Args:
        sizes_mb: gets the size of each model's weights, by id, where its server tells it.
    """
    count = f"{len(queue.entries)} entries" if len(queue.entries) > 1 else "1 entry"
    yield Finding(area=AREA, name=queue.spec.path.name, status="ok", message=f"{count}; a night would start")
    yield from _programs(queue, run)
    yield from _servers(queue, plugins, sizes_mb)


def _programs(queue: PreparedQueue, run: Runs) -> Iterator[Finding]:
    told: set[tuple[str, str, str]] = set()
    for entry in queue.entries:
        env = {**os.environ, **entry.env}
        path = env.get("PATH", "")
        for name, plugin in ((entry.spec.harness.name, entry.harness), (entry.spec.reset.name, entry.reset)):
            for need in plugin.needs(queue.base_dir) if isinstance(plugin, TellsNeeds) else ():
                if (need.program, need.module, path) not in told:
                    told |= {(need.program, need.module, path), (need.program, "", path)}
                    yield need_finding(
                        need, area=AREA, name=name, missing="fail", base_dir=queue.base_dir, env=env, run=run
                    )
        for step, program in _argv_programs(entry):
            if (program, "", path) in told:
                continue
            told.add((program, "", path))
            need = Need(program=program, remedy=f"install it, or correct the command of step `{step}`")
            found = find_program(program, queue.base_dir, env)
            if found is None:
                yield need_finding(
                    need, area=AREA, name=f"step {step}", missing="fail", base_dir=queue.base_dir, env=env
                )
            else:
                yield Finding(area=AREA, name=f"step {step}", status="ok", message=f"runs {found}")


def _argv_programs(entry: PreparedEntry) -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory(prefix="runq-doctor-") as bundle:
        for step in entry.steps:
            with suppress(Exception):  # it wants what the step before leaves; the night will see
                yield step.name, str(entry.harness.argv(entry.entry, step, Path(bundle))[0])


def _servers(queue: PreparedQueue, plugins: Plugins, sizes_mb: MutableMapping[str, float]) -> Iterator[Finding]:
    asked: dict[str, tuple[Target, PreparedEntry]] = {}
    wanted: dict[str, dict[str, None]] = {}
    for entry in queue.entries:
        for target in entry.harness.targets(entry.entry):
            name = endpoint_name(target.base_url)
            asked.setdefault(name, (target, entry))
            model = target.model or entry.entry.model
            wanted.setdefault(name, {})[model.id] = None
    started = {endpoint_name(e.endpoint) for e in queue.entries if e.endpoint and _starts_its_own(e)}
    for name, (target, entry) in asked.items():
        yield from _started(target) if name in started else _asked(target, entry, list(wanted[name]), plugins)
    seen: set[tuple[str, str]] = set()
    for entry in queue.entries:
        key = (entry.spec.reset.name, entry.endpoint or "")
        if entry.endpoint and key not in seen and endpoint_name(entry.endpoint) not in started:
            seen.add(key)
            sought = _sought(entry.spec.reset.name, entry.endpoint, plugins, entry.env)
            if sought is not None:
                yield from _backend(entry, sought)
                models = [model for server in sought.servers for model in server.models]
                sizes_mb.update({model.id: model.size_mb for model in models if model.size_mb is not None})


def _starts_its_own(entry: PreparedEntry) -> bool:
    return isinstance(entry.reset, StartsServer) and isinstance(entry.reset, TellsNeeds)


def _started(target: Target) -> Iterator[Finding]:
    """runq starts this server itself, so nothing may stand in its place."""
    url = target.base_url.rstrip("/")
    try:
        request_json("GET", f"{url}/models", timeout_s=ASK_S)
    except HttpFailure:
        yield Finding(area=AREA, name=url, status="ok", message="free; runq starts a server there for each model")
        return
    message = "something answers there already, and runq is to start its own server there"
    yield Finding(area=AREA, name=url, status="fail", message=message, remedy="end that program, or give another port")


def _asked(target: Target, entry: PreparedEntry, models: Sequence[str], plugins: Plugins) -> Iterator[Finding]:
    url = target.base_url.rstrip("/")
    headers = {"Authorization": f"Bearer {target.api_key}"} if target.api_key else {}
    try:
        reply = request_json("GET", f"{url}/models", timeout_s=ASK_S, headers=headers)
    except HttpFailure as error:
        remedy = _how_to_start(entry, url, plugins)
        yield Finding(area=AREA, name=url, status="fail", message=f"no answer: {error}", remedy=remedy)
        return
    if reply.status in (401, 403):
        message = f"it refuses to answer with this key ({reply.summary()})"
        remedy = "correct the key of this endpoint in the harness's configuration"
        yield Finding(area=AREA, name=url, status="fail", message=message, remedy=remedy)
        return
    offered = _ids(reply.body)
    if offered is None:
        message = f"it answers, but lists no models ({reply.summary()})"
        remedy = "if the path is not the one for /chat/completions, correct it; often `/v1` is missing"
        yield Finding(area=AREA, name=url, status="warn", message=message, remedy=remedy)
        return
    yield Finding(area=AREA, name=url, status="ok", message=f"answers, {len(offered)} models")
    for model in models:
        if not _offers(offered, model):
            yield _unlisted(url, model, offered)


def _unlisted(url: str, model: str, offered: Sequence[str]) -> Finding:
    near = difflib.get_close_matches(model, offered, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]!r}? " if near else ""
    remedy += "write the id exactly as the server lists it; LM Studio lists models that are not loaded only with "
    remedy += "just-in-time loading on"
    return Finding(area=AREA, name=url, status="warn", message=f"does not list the model {model!r}", remedy=remedy)


def _offers(offered: Sequence[str], model: str) -> bool:
    return model in offered or f"{model}:latest" in offered  # Ollama's default tag


def _ids(body: Any) -> list[str] | None:
    data = body.get("data") if isinstance(body, Mapping) else None
    if not isinstance(data, list):
        return None
    return [str(one["id"]) for one in data if isinstance(one, Mapping) and "id" in one]


def _sought(backend: str, url: str, plugins: Plugins, env: Mapping[str, str]) -> Sought | None:
    found = list(seek(plugins, Look(urls=(url,), env={**os.environ, **env}), backend=backend))
    return found[0].sought if found else None


def _how_to_start(entry: PreparedEntry, url: str, plugins: Plugins) -> str:
    if entry.endpoint is None or endpoint_name(entry.endpoint) != endpoint_name(url):
        return "start the server that listens there, or correct the address"
    sought = _sought(entry.spec.reset.name, url, plugins, entry.env)
    return sought.remedy if sought and sought.remedy else "start the server that listens there, or correct the address"


def _backend(entry: PreparedEntry, sought: Sought) -> Iterator[Finding]:
    """Whether what listens at the backend's endpoint is a server of its kind."""
    name = f"reset {entry.spec.reset.name}"
    if sought.problem:
        reason, _, remedy = sought.problem.partition(": ")
        yield Finding(area=AREA, name=name, status="fail", message=reason, remedy=remedy or sought.remedy)
        return
    if not sought.servers:
        asked = {endpoint_name(target.base_url) for target in entry.harness.targets(entry.entry)}
        status: Status = "warn" if endpoint_name(entry.endpoint or "") in asked else "fail"  # it has failed above
        message = f"{sought.product} does not answer at {entry.endpoint}"
        remedy = f"{sought.remedy}; or correct the address or the backend of `reset`"
        yield Finding(area=AREA, name=name, status=status, message=message, remedy=remedy)
        return
    server = sought.servers[0]
    fits = server.reset.get("backend") == entry.spec.reset.name
    yield Finding(
        area=AREA,
        name=name,
        status="ok" if fits and not server.note else "warn",
        message=f"{sought.product} answers at {entry.endpoint}",
        remedy=server.note,
    )
