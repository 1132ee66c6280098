"""LM Studio: evicts through its REST interface, or through `lms` where there is none, and proves it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
from urllib3.util import parse_url

from runq.plugin import Look, ResetContext, ResetOutcome, Sought
from runq_plugins.options import http_url, not_empty
from runq_plugins.reset import owner
from runq_plugins.reset.asked import Endpoint, bearer, key_in, timeout_option
from runq_plugins.reset.eviction import Deadline, Resident, Unasked, context_lengths, evict_all
from runq_plugins.reset.lms_cli import CliRegistry, find_lms
from runq_plugins.reset.lms_rest import RestRegistry

IDLE_LIMIT_MB = 1024.0
"""A process of LM Studio up to this size is taken to hold no model: app, server and idle workers are well below,
the models worth a night above."""

RELEASE_WAIT_S = 10.0
"""Seconds for the processes to let go once the list is empty; Ollama's own waiting is 5 (server/sched.go)."""

NO_LMS = "`lms` is neither on the PATH nor in LM Studio's folder: give its path as `binary`"
"""It could tell whether LM Studio runs; cron, systemd and launchd miss it on the PATH."""

_WHO = "LM Studio"


def _program(_: Any, attribute: attrs.Attribute[Any], value: str | None) -> None:
    if value is not None:
        not_empty(_, attribute, value)


@attrs.frozen(kw_only=True)
class LmsReset:
    """Evicts every model LM Studio has loaded."""

    can_verify: ClassVar[bool] = True

    base_url: str = attrs.field(
        default="http://127.0.0.1:1234",
        validator=http_url,
        metadata={"description": "LM Studio's server; a trailing `/v1` is ignored."},
    )
    binary: str | None = attrs.field(
        default=None,
        validator=_program,
        metadata={"description": "The `lms` program; by default the one on the PATH or in LM Studio's own folder."},
    )
    timeout_s: float = timeout_option()
    api_token_env: str = attrs.field(
        default="LM_API_TOKEN",
        validator=not_empty,
        metadata={"description": "Environment variable that holds LM Studio's API token, where it wants one."},
    )

    @classmethod
    def find(cls, look: Look) -> Sought:
        """Its servers on this machine, or where the user says."""
        from runq_plugins.find import lms

        return lms.find(look)

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """LM Studio's server."""
        return self._base()

    def reset(self, context: ResetContext) -> ResetOutcome:
        """Unload every instance by REST, by `lms` where REST does not answer; then prove it."""
        deadline = Deadline(context.clock, context.clock() + self.timeout_s)
        rest = self._rest(context)
        try:
            rest.residents(deadline)
        except Unasked as problem:
            return self._reset_by_cli(context, deadline, problem)
        return self._evict(rest, context, deadline)

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        """The ids of the loaded instances. Never starts LM Studio."""
        residents = self._residents(context)
        return None if residents is None else [resident.id for resident in residents]

    def context_lengths(self, context: ResetContext) -> Mapping[str, int]:
        """The context length of each loaded instance, by instance id and by model. Never starts LM Studio."""
        return context_lengths(self._residents(context) or ())

    def _residents(self, context: ResetContext) -> Sequence[Resident] | None:
        """What is loaded; ``None`` when it cannot be told."""
        deadline = Deadline(context.clock, context.clock() + self.timeout_s)
        try:
            return self._rest(context).residents(deadline)
        except Unasked:
            pass
        cli = self._cli(context)
        if cli is None:
            return None
        try:
            running, _ = cli.daemon(deadline)
            return cli.residents(deadline) if running else ()
        except Unasked:
            return None

    def _reset_by_cli(self, context: ResetContext, deadline: Deadline, problem: Unasked) -> ResetOutcome:
        cli = self._cli(context)
        if cli is None:
            remedy = f"{problem.remedy}; {NO_LMS}" if self._is_local() else problem.remedy
            return ResetOutcome(verdict="failed", reason=problem.reason, remedy=remedy)
        try:
            running, pid = cli.daemon(deadline)
        except Unasked as second:
            return ResetOutcome(verdict="failed", reason=f"{problem.reason}; {second.reason}", remedy=second.remedy)
        if running:
            return self._evict(attrs.evolve(cli, pid=pid), context, deadline)
        evidence = owner.Evidence(IDLE_LIMIT_MB, _WHO)
        doubt = evidence.doubt(cli.leftovers(), evicted=False, size_mb=None)
        return ResetOutcome(
            verdict="unverified" if doubt else "verified",
            loaded_before=(),
            loaded_after=(),
            reason=doubt or "LM Studio does not run, so nothing is loaded",
            remedy="end that process" if doubt else "if the steps need it, start it with `lms server start`",
            details={"running": False, **evidence.details()},
        )

    def _evict(self, registry: RestRegistry | CliRegistry, context: ResetContext, deadline: Deadline) -> ResetOutcome:
        return evict_all(
            registry,
            context,
            who=_WHO,
            timeout_s=max(1.0, deadline.left_s),
            idle_limit_mb=IDLE_LIMIT_MB,
            release_wait_s=RELEASE_WAIT_S,
        )

    def _base(self) -> str:
        return re.sub(r"(/api)?/v[01]$", "", self.base_url.rstrip("/"))

    def _rest(self, context: ResetContext) -> RestRegistry:
        return RestRegistry(
            endpoint=Endpoint(
                url=self._base(),
                who=_WHO,
                start="start it with `lms server start`",
                key_option="api_token_env",
                headers=bearer(key_in(context, self.api_token_env)),
                sleep=context.sleep,
            )
        )

    def _is_local(self) -> bool:
        return owner.is_local(parse_url(self._base()).host or "")

    def _cli(self, context: ResetContext) -> CliRegistry | None:
        """`lms` speaks to the LM Studio of this machine, so it is no help with another's."""
        if not self._is_local():
            return None
        binary = self.binary or find_lms(context.env)
        if binary is None:
            return None
        return CliRegistry(binary=binary, env=context.env, cwd=context.entry.base_dir, sleep=context.sleep)
