"""mlx_lm's server: one process per model, started before the steps that need it and ended to evict it.

`mlx_lm.server` (ml-explore/mlx-lm mlx_lm/server.py) has no way to unload: a request for another model drops the last
one and keeps its memory pool (ml-explore/mlx-lm#1757). So this is the `server` backend with that program's command line
and default port.
"""

from __future__ import annotations

import attrs

from runq.plugin import Look, Sought
from runq_plugins.options import port_number
from runq_plugins.reset.server import ServerReset, program_and_templates


@attrs.frozen(kw_only=True)
class MlxReset(ServerReset):
    """Starts one `mlx_lm.server` per model and ends it to evict the model: the server itself cannot."""

    argv: tuple[str, ...] = attrs.field(
        default=("mlx_lm.server", "--model", "{model}", "--port", "{port}"),
        validator=program_and_templates,
        metadata={"description": "Its command line; `{model}` is the model's id, `{port}` the port, `{{` a brace."},
    )
    port: int = attrs.field(
        default=8080, validator=port_number, metadata={"description": "Port it listens on, for `{port}`."}
    )

    @classmethod
    def find(cls, look: Look) -> Sought:
        """Its servers on this machine, or where the user says."""
        from runq_plugins.find import mlx

        return mlx.find(look)
