"""How a plugin looks for its servers: what `runq init` and `runq doctor` ask, and what it answers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import attrs

ANSWER_S = 3.0
"""Seconds one question may take. Servers of this machine list their models in milliseconds."""


@attrs.frozen(kw_only=True)
class OfferedModel:
    """A model that a server offers.

    Args:
        id: as the server spells it.
        size_mb: its weights in MB, of the file on disk where that is told; ``None`` when it is not.
        quant: its quantisation, as ``Q4_K_M``; empty when it is not told.
        chats: whether it answers a chat on this machine; embedding and cloud models do not.
    """

    id: str
    size_mb: float | None = None
    quant: str = ""
    chats: bool = True


@attrs.frozen(kw_only=True)
class FoundServer:
    """A server that answers.

    Args:
        base_url: its OpenAI-compatible URL, such as ``http://127.0.0.1:11434/v1``.
        engine: its kind in a word, such as ``ollama``.
        reset: what a queue file says to evict its models: ``backend`` and that backend's options.
        models: what it offers.
        note: what a user should know before a night with it; one sentence.
        key_env: the environment variable whose key it was asked with; empty without one.
    """

    base_url: str
    engine: str
    reset: Mapping[str, Any]
    models: tuple[OfferedModel, ...]
    note: str = ""
    key_env: str = ""


@attrs.frozen(kw_only=True)
class Sought:
    """What came of looking for one product.

    Args:
        product: its name, such as ``Ollama``.
        asked: the URLs that were asked.
        servers: those that are servers of this product.
        program: its program on this machine; ``None`` when it is not there.
        remedy: how to get a server of it that answers, in the imperative.
        problem: why a server that is there could not be asked, such as for want of a key; one sentence.
        note: what else is worth knowing, such as a program that is not on the PATH.
        for_beginners: whether ``remedy`` is good advice for somebody who has no server at all yet.
    """

    product: str
    asked: tuple[str, ...]
    servers: tuple[FoundServer, ...] = ()
    program: str | None = None
    remedy: str = ""
    problem: str = ""
    note: str = ""
    for_beginners: bool = False


@attrs.define(kw_only=True)
class Look:
    """Asks servers where they might be. Only reads, and starts nothing.

    Args:
        urls: where the user says that a server is; empty for the usual places.
        env: the environment.
        timeout_s: seconds one question may take.
    """

    urls: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=lambda: dict(os.environ), repr=False)
    timeout_s: float = ANSWER_S
    _answers: dict[tuple[str, str, str], Any] = attrs.field(factory=dict, init=False, repr=False)
    _silent: set[str] = attrs.field(factory=set, init=False)

    def places(self, *usual: str) -> tuple[str, ...]:
        """The roots to ask, without trailing slash: those the user gave, else the usual ones."""
        return tuple(dict.fromkeys(url.rstrip("/").removesuffix("/v1") for url in self.urls or usual))

    def get(self, url: str, path: str, *, key: str = "") -> Any:
        """The JSON that a path answers with HTTP 200; ``None`` when there is none.

        Where nothing listens, no second question is asked.

        Raises:
            PermissionError: the server wants a key, or another one.
        """
        from runq.http import HttpFailure, HttpReply, Unreachable, request_json

        if url in self._silent:
            return None
        if (url, path, key) not in self._answers:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            try:
                self._answers[url, path, key] = request_json(
                    "GET", url + path, timeout_s=self.timeout_s, headers=headers
                )
            except Unreachable:
                self._silent.add(url)
                return None
            except HttpFailure:
                self._answers[url, path, key] = None
        reply = self._answers[url, path, key]
        if not isinstance(reply, HttpReply):
            return None
        if reply.status in (401, 403):
            raise PermissionError(f"{url} refuses to answer without a key")
        return reply.body if reply.status == 200 else None

    def program(self, name: str) -> str | None:
        """A program on the PATH."""
        return shutil.which(name, path=self.env.get("PATH", ""))


@runtime_checkable
class FindsServers(Protocol):
    """A reset backend that knows where its servers usually are. A class method: no options are known yet."""

    @classmethod
    def find(cls, look: Look) -> Sought:
        """Look for servers. Must not start any, nor load a model."""
        ...


@attrs.frozen(kw_only=True)
class Need:
    """What has to be on this machine for a plugin to work.

    Args:
        program: a program: an absolute path, or a name for the PATH.
        module: a module that this program, an interpreter, has to be able to import; none when empty.
        remedy: how to get it, in the imperative.
    """

    program: str
    module: str = ""
    remedy: str = ""


@runtime_checkable
class TellsNeeds(Protocol):
    """A plugin that knows which programs and modules it needs; `runq doctor` looks for them."""

    def needs(self, base_dir: Path) -> Sequence[Need]:
        """What is needed.

        Args:
            base_dir: the queue's folder; relative programs are relative to it.
        """
        ...
