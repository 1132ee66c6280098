"""One LM Studio while it is emptied: through REST, or through `lms` where that does not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from urllib3.util import parse_url

from runq.plugin import ResetContext, ResetOutcome
from runq_plugins.reset import owner
from runq_plugins.reset.asked import Endpoint, bearer, key_in
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


@attrs.frozen(kw_only=True)
class LmStudio:
    """An LM Studio, for one reset or one question.

    Args:
        base_url: its server, without `/v1` or `/api/v0`.
        binary: the `lms` program, where the user named one.
        token_env: the environment variable that holds its API token.
        timeout_s: seconds the reset or the question may take.
        context: the night's.
    """

    base_url: str
    binary: str | None
    token_env: str
    timeout_s: float
    context: ResetContext = attrs.field(repr=False)

    def reset(self) -> ResetOutcome:
        """Unload every instance by REST, by `lms` where REST does not answer; then prove it."""
        deadline, rest = self._deadline(), self._rest()
        try:
            rest.residents(deadline)
        except Unasked as problem:
            return self._reset_by_cli(deadline, problem)
        return self._evict(rest, deadline)

    def residents(self) -> Sequence[Resident] | None:
        """What is loaded; ``None`` when it cannot be told."""
        deadline = self._deadline()
        try:
            return self._rest().residents(deadline)
        except Unasked:
            pass
        cli = self._cli()
        if cli is None:
            return None
        try:
            running, _ = cli.daemon(deadline)
            return cli.residents(deadline) if running else ()
        except Unasked:
            return None

    def context_lengths(self) -> Mapping[str, int]:
        """The context length of each loaded instance, by instance id and by model."""
        return context_lengths(self.residents() or ())

    def _deadline(self) -> Deadline:
        return Deadline(self.context.clock, self.context.clock() + self.timeout_s)

    def _reset_by_cli(self, deadline: Deadline, problem: Unasked) -> ResetOutcome:
        cli = self._cli()
        if cli is None:
            remedy = f"{problem.remedy}; {NO_LMS}" if self._is_local() else problem.remedy
            return ResetOutcome(verdict="failed", reason=problem.reason, remedy=remedy)
        try:
            running, pid = cli.daemon(deadline)
        except Unasked as second:
            return ResetOutcome(verdict="failed", reason=f"{problem.reason}; {second.reason}", remedy=second.remedy)
        if running:
            return self._evict(attrs.evolve(cli, pid=pid), deadline)
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

    def _evict(self, registry: RestRegistry | CliRegistry, deadline: Deadline) -> ResetOutcome:
        return evict_all(
            registry,
            self.context,
            who=_WHO,
            timeout_s=max(1.0, deadline.left_s),
            idle_limit_mb=IDLE_LIMIT_MB,
            release_wait_s=RELEASE_WAIT_S,
        )

    def _rest(self) -> RestRegistry:
        return RestRegistry(
            endpoint=Endpoint(
                url=self.base_url,
                who=_WHO,
                start="start it with `lms server start`",
                key_option="api_token_env",
                headers=bearer(key_in(self.context, self.token_env)),
                sleep=self.context.sleep,
            )
        )

    def _is_local(self) -> bool:
        return owner.is_local(parse_url(self.base_url).host or "")

    def _cli(self) -> CliRegistry | None:
        """`lms` speaks to the LM Studio of this machine, so it is no help with another's."""
        if not self._is_local():
            return None
        binary = self.binary or find_lms(self.context.env)
        if binary is None:
            return None
        return CliRegistry(
            binary=binary, env=self.context.env, cwd=self.context.entry.base_dir, sleep=self.context.sleep
        )
