"""What a queue file says about watching an endpoint, made ready, or what is wrong with it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from runq.plugin import Step, Target
from runq_schemas.queue import EntrySpec

if TYPE_CHECKING:
    from runq.heartbeat import Beat


@attrs.frozen
class Fault:
    """Something wrong, and the key that says so."""

    message: str
    remedy: str
    path: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Watched:
    """The heartbeat of each step and the command that restarts the endpoint; empty where there is none."""

    beats: Mapping[str, Beat]
    restart: tuple[str, ...]
    faults: tuple[Fault, ...]


def watched_endpoint(
    spec: EntrySpec, steps: Sequence[Step], targets: Sequence[Target], *, starts_server: bool
) -> Watched:
    """How an entry's endpoint is watched.

    Args:
        targets: the endpoints its steps talk to, as the harness tells them.
        starts_server: whether the reset backend starts a server for each model.
    """
    faults: list[Fault] = []
    beats: Mapping[str, Beat] = {}
    if spec.heartbeat is not None:
        from runq.heartbeat import beats_of

        url = spec.heartbeat.url
        if url is not None and not url.startswith(("http://", "https://")):
            faults.append(
                Fault(f"heartbeat: {url!r} is no URL", "write it with http:// in front", ("heartbeat", "url"))
            )
        beats = beats_of(spec.heartbeat, steps, targets, spec.model)
        if not beats:
            message = f"heartbeat: the harness {spec.harness.name!r} does not say which endpoint its steps use"
            faults.append(Fault(message, "add `url: http://HOST:PORT/v1` to `heartbeat`", ("heartbeat",)))
    words: tuple[str, ...] = ()
    if spec.restart_command is not None:
        words, problems = _restart(spec.restart_command)
        if spec.heartbeat is None:
            problems.append(
                ("restart_command is for an endpoint whose heartbeat fails", "add `heartbeat: {}`, or remove it")
            )
        if starts_server:
            problems.append(("runq itself restarts the servers that it starts", "remove restart_command"))
        faults += [Fault(message, remedy, ("restart_command",)) for message, remedy in problems]
    return Watched(beats=beats, restart=words, faults=tuple(faults))


def _restart(command: str | tuple[str, ...]) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    try:
        words = tuple(shlex.split(command) if isinstance(command, str) else command)
    except ValueError as error:
        return (), [(f"restart_command cannot be split into words: {error}", "close its quotes, or write a list")]
    if not words or not words[0].strip():
        return (), [("restart_command is empty", "write a command, or remove the key")]
    return words, []
