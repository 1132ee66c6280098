"""Any command as a reset: exit 0 says that the command is content, a `verify` command proves more."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from runq.plugin import ResetContext, ResetOutcome
from runq_plugins.options import positive
from runq_plugins.program import CannotStart, ProgramResult, run_bounded


def _runnable(_: Any, attribute: attrs.Attribute[Any], value: str | Sequence[str] | None) -> None:
    if value is None:
        return
    try:
        words = _words(value)
    except ValueError as error:
        raise ValueError(f"{attribute.name} cannot be split into words: {error}") from None
    if not words or not words[0].strip():
        raise ValueError(f"{attribute.name} is empty; use `reset: none` to reset nothing")


@attrs.frozen(kw_only=True)
class CommandReset:
    """Evicts by running a command. Exit 0 alone is ``unverified``: programs exit 0 when nothing happened."""

    command: str | tuple[str, ...] = attrs.field(
        validator=_runnable,
        metadata={
            "description": "Evicts every model: one string, split like a shell would but run without one, or a list."
        },
    )
    verify: str | tuple[str, ...] | None = attrs.field(
        default=None,
        validator=_runnable,
        metadata={
            "description": "Run afterwards; exit 0 proves that nothing is loaded any more, anything else means failed."
        },
    )
    timeout_s: float = attrs.field(
        default=120.0,
        validator=positive,
        metadata={"description": "Seconds each of the two commands may take; then it and its children are ended."},
    )

    @property
    def can_verify(self) -> bool:
        """Whether a `verify` command is given."""
        return self.verify is not None

    def endpoint(self, env: Mapping[str, str]) -> str | None:
        """None: a command does not say which endpoint it touches."""
        return None

    def reset(self, context: ResetContext) -> ResetOutcome:
        """Run the command, then the `verify` command if there is one."""
        problem = self._problem("the reset command", self.command, context)
        if problem:
            return ResetOutcome(verdict="failed", reason=problem, remedy=_remedy(self.command))
        if self.verify is None:
            return ResetOutcome(
                verdict="unverified",
                reason="the reset command exited 0, which does not prove that anything was evicted",
                remedy="add a `verify` command that exits 0 only when nothing is loaded",
            )
        problem = self._problem("the verify command", self.verify, context)
        if problem:
            return ResetOutcome(verdict="failed", reason=problem, remedy=_remedy(self.verify))
        return ResetOutcome(verdict="verified", loaded_after=())

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        """Nothing when the `verify` command exits 0; otherwise it cannot be told what."""
        if self.verify is None or self._problem("the verify command", self.verify, context):
            return None
        return []

    def _problem(self, what: str, command: str | Sequence[str], context: ResetContext) -> str:
        """Run a command; why it did not end well, or nothing."""
        try:
            result = run_bounded(
                _words(command),
                timeout_s=self.timeout_s,
                env=context.env,
                cwd=context.entry.base_dir,
                sleep=context.sleep,
            )
        except CannotStart as error:
            return f"{what} cannot be started: {error}"
        return "" if result.ok else f"{what} {self._ending(result)}{_said(result)}"

    def _ending(self, result: ProgramResult) -> str:
        if result.timed_out:
            return f"did not end within {self.timeout_s:g} s"
        if result.signal:
            return f"was ended by {result.signal}"
        return f"exited {result.exit_code}"


def _words(command: str | Sequence[str]) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else list(command)


def _said(result: ProgramResult) -> str:
    tail = result.tail()
    return f": {tail}" if tail else ""


def _remedy(command: str | Sequence[str]) -> str:
    return f"run it by hand in the queue's folder: {shlex.join(_words(command))}"
