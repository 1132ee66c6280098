"""LM Studio: evicts through its REST interface, or through `lms` where there is none, and proves it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from runq.plugin import ResetContext, ResetOutcome
from runq_plugins.options import http_url, not_empty, positive

if TYPE_CHECKING:
    from runq.plugin import Look, Sought
    from runq_plugins.reset.lms_evicting import LmStudio


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
    timeout_s: float = attrs.field(
        default=120.0, validator=positive, metadata={"description": "Seconds the whole reset may take."}
    )
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
        return self._studio(context).reset()

    def loaded(self, context: ResetContext) -> Sequence[str] | None:
        """The ids of the loaded instances. Never starts LM Studio."""
        residents = self._studio(context).residents()
        return None if residents is None else [resident.id for resident in residents]

    def context_lengths(self, context: ResetContext) -> Mapping[str, int]:
        """The context length of each loaded instance, by instance id and by model. Never starts LM Studio."""
        return self._studio(context).context_lengths()

    def _base(self) -> str:
        return re.sub(r"(/api)?/v[01]$", "", self.base_url.rstrip("/"))

    def _studio(self, context: ResetContext) -> LmStudio:
        # A plan makes this backend, by default, and asks nothing of it: its start is not to wait for an HTTP client.
        from runq_plugins.reset.lms_evicting import LmStudio

        return LmStudio(
            base_url=self._base(),
            binary=self.binary,
            token_env=self.api_token_env,
            timeout_s=self.timeout_s,
            context=context,
        )
