"""macOS's memory in use, with what Metal has wired and what is compressed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import ClassVar

import attrs

from runq.plugin import PluginError
from runq_plugins.probe.vm_stat import parse

VM_STAT_S = 2.0
"""Seconds for one `vm_stat` call, which takes milliseconds."""

PARTS = {
    "Anonymous pages": 1,
    "Pages purgeable": -1,
    "Pages wired down": 1,
    "Pages occupied by compressor": 1,
}
"""What Activity Monitor adds up as memory used: app memory, wired memory and the compressor's."""


@attrs.frozen(kw_only=True)
class MacosProbe:
    """Memory in use on a Mac: app memory + wired + compressed.

    Weights that Metal uses are wired and so are in it, mapped from a file or not. A fall proves no unload: since macOS
    26 Metal lets go of its wired memory about a second after a model's last use (ggml-org/llama.cpp#17766). For one
    server's own figure see the probe `process` with ``figure: footprint``.
    """

    formula: ClassVar[str] = "vm_stat: anonymous - purgeable + wired down + occupied by compressor, in MB (2**20 bytes)"

    def read_mb(self) -> float:
        """The figure now, in MB.

        Raises:
            PluginError: this is no Mac, or `vm_stat` says something else.
        """
        if sys.platform != "darwin":
            raise PluginError("the probe `macos` reads macOS's counters only", remedy="use the probe `system`")
        try:
            return used_mb(parse(subprocess.check_output(["/usr/bin/vm_stat"], text=True, timeout=VM_STAT_S)))
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise PluginError(f"vm_stat cannot be read: {error}", remedy="use the probe `system`") from error


def used_mb(counters: Mapping[str, float]) -> float:
    """The sum of the parts, in MB.

    Raises:
        ValueError: a counter is missing.
    """
    missing = [name for name in PARTS if name not in counters]
    if missing:
        raise ValueError(f"it has no {missing[0]!r}")
    return sum(sign * counters[name] for name, sign in PARTS.items())
