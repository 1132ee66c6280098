"""What the backends that ask over HTTP share: their options, one bounded question, the methods of a backend."""

from __future__ import annotations

import re
import shlex
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from runq.plugin import Garbage, HttpReply, ResetContext, ResetOutcome, TimedOut, Unreachable, request_json
from runq_plugins.options import http_url, not_empty, positive
from runq_plugins.reset.eviction import Busy, Deadline, Registry, Resident, Unasked, context_lengths, evict_all


@attrs.frozen(kw_only=True)
class Endpoint:
    """One server of models, and how its failures are told.

    Args:
        url: without a trailing slash.
        who: its name in reasons.
        start: how it is started, for a remedy.
        option: the option that holds its address, for a remedy.
        key_option: the option that names its key's environment variable, for a remedy.
        headers: sent with each question; they may hold the key.
        sleep: the night's.
    """

    url: str
    who: str
    start: str
    option: str = "base_url"
    key_option: str = "api_key_env"
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    sleep: Callable[[float], None]

    def ask(self, method: str, path: str, *, limit_s: float, body: Any = None) -> HttpReply:
        """One question, answered completely within ``limit_s`` seconds.

        Raises:
            Busy: it did not answer in time.
            Unasked: nothing listens there, or something else does, or it wants a key.
        """
        url = f"{self.url}{path}"
        try:
            reply = request_json(method, url, body=body, timeout_s=limit_s, headers=self.headers, sleep=self.sleep)
        except TimedOut as error:
            raise Busy(
                f"{self.who} is busy or hangs, a model may be loading: {error}", f"restart {self.who} if this goes on"
            ) from error
        except Unreachable as error:
            raise Unasked(
                f"{self.who} could not be asked: {error}", f"{self.start}, or give the right `{self.option}`"
            ) from error
        except Garbage as error:
            raise Unasked(
                f"what listens there is not {self.who}: {error}", f"give the address of {self.who} as `{self.option}`"
            ) from error
        if reply.status in (401, 403):
            raise Unasked(
                f"{self.who} refuses to answer without a key ({reply.summary()})",
                f"put its key into the environment variable that `{self.key_option}` names",
            )
        return reply

    def strange(self, reply: HttpReply, what: str) -> Unasked:
        """The failure of an answer that is not what it should be."""
        return Unasked(
            f"the answer is not {what} ({reply.summary()})", f"give the address of {self.who} as `{self.option}`"
        )


class AsksRegistry:
    """The methods of a backend whose registry `evict_all` can empty. A subclass has ``timeout_s`` among its options."""

    can_verify: ClassVar[bool] = True
    who: ClassVar[str]
    idle_limit_mb: ClassVar[float] = 0.0
    """A process up to this size holds no model; 0 where processes exist only while models do."""
    release_wait_s: ClassVar[float] = float("inf")
    """How long the processes may take to let go once the list is empty. Where they exist only while models do, one that
    is not listed is usually a load, which ends by being listed: then the whole limit is waited."""

    timeout_s: float

    @abstractmethod
    def registry(self, context: ResetContext) -> Registry:
        """The endpoint, for one reset or one question."""

    def reset(self, context: ResetContext) -> ResetOutcome:
        """Evict what is listed, wait for an empty list, and look whether the processes let go."""
        return evict_all(
            self.registry(context),
            context,
            who=self.who,
            timeout_s=self.timeout_s,
            idle_limit_mb=self.idle_limit_mb,
            release_wait_s=min(self.timeout_s, self.release_wait_s),
        )

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        """The names of what is loaded; ``None`` when it cannot be told."""
        residents = self._residents(context)
        return None if residents is None else [resident.id for resident in residents]

    def context_lengths(self, context: ResetContext) -> Mapping[str, int]:
        """The context length of each loaded model, where the server tells it."""
        return context_lengths(self._residents(context) or ())

    def _residents(self, context: ResetContext) -> Sequence[Resident] | None:
        try:
            return self.registry(context).residents(Deadline(context.clock, context.clock() + self.timeout_s))
        except Unasked:
            return None


def timeout_option(default_s: float = 120.0) -> Any:
    """The option `timeout_s`."""
    return attrs.field(
        default=default_s, validator=positive, metadata={"description": "Seconds the whole reset may take."}
    )


def url_option(default: str, of: str) -> Any:
    """The option `base_url`."""
    return attrs.field(
        default=default,
        validator=http_url,
        metadata={"description": f"Address of {of}; a trailing `/v1` is ignored."},
    )


def key_option(default: str, of: str) -> Any:
    """The option `api_key_env`."""
    return attrs.field(
        default=default,
        validator=not_empty,
        metadata={"description": f"Environment variable that holds {of}, where it wants one."},
    )


def root(url: str) -> str:
    """A base URL without trailing slash and without the `/v1` of the OpenAI-compatible paths."""
    return re.sub(r"/v1$", "", url.rstrip("/"))


def key_in(context: ResetContext, variable: str) -> str:
    """The key that an environment variable holds, or nothing."""
    return context.env.get(variable, "").strip()


def bearer(key: str) -> Mapping[str, str]:
    """The header of a key; none without one."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def context_option(words: Sequence[object]) -> int | None:
    """The tokens of context that a llama-server command line asks for; ``None`` where it leaves them to the model."""
    texts = [str(word) for word in words]
    for at, word in enumerate(texts):
        name, equals, value = word.partition("=")
        if name in ("-c", "--ctx-size"):
            value = value if equals else (texts[at + 1] if at + 1 < len(texts) else "")
            return int(value) if value.isdecimal() and int(value) > 0 else None
    return None


def words_in(command: object) -> Sequence[str]:
    """A command line as words; none when it cannot be split."""
    if not isinstance(command, str):
        return ()
    try:
        return shlex.split(command)
    except ValueError:
        return ()
