"""The ancestor's figure, for nights that are compared with touchstone's."""

from __future__ import annotations

from typing import ClassVar

import attrs


@attrs.frozen(kw_only=True)
class PsutilUsedProbe:
    """`psutil.virtual_memory().used`. On Linux it leaves out weights that are mapped from a file."""

    formula: ClassVar[str] = "psutil virtual_memory().used, in MB (2**20 bytes)"

    def read_mb(self) -> float:
        """The figure now, in MB."""
        import psutil

        return float(psutil.virtual_memory().used) / 2**20
