"""The machine's memory that models can occupy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import attrs

from runq_plugins.probe.meminfo import MEMINFO, counters_mb

_COUNTERS = ("AnonPages", "Mapped", "Shmem")

_LINUX_FORMULA = "AnonPages + Mapped + Shmem of /proc/meminfo, in MB (2**20 bytes)"
_OTHER_FORMULA = "psutil virtual_memory(): total - available, in MB (2**20 bytes); mapped weights may be missing"


def formula_for(platform: str) -> str:
    """Which counters make the figure on a platform (`sys.platform`)."""
    return _LINUX_FORMULA if platform == "linux" else _OTHER_FORMULA


@attrs.frozen(kw_only=True)
class SystemProbe:
    """Anonymous, mapped and shared memory of the whole machine.

    On Linux the system's `used` does not move at all for weights that are mapped from a file, llama.cpp's default,
    and lags behind for pages parked on per-CPU lists; these three counters (Documentation/filesystems/proc.rst)
    show both at once. File-backed shared memory counts twice, which a difference between two readings does not mind.
    """

    formula: ClassVar[str] = formula_for(sys.platform)

    def read_mb(self) -> float:
        """The figure now, in MB.

        Raises:
            PluginError: /proc/meminfo cannot be read or lacks a counter.
        """
        if sys.platform == "linux":
            return linux_mb(MEMINFO)
        return available_mb()

    def free_mb(self) -> float:
        """What the system calls available, in MB: free, or given back at once when somebody needs it.

        Raises:
            PluginError: /proc/meminfo cannot be read or lacks the counter.
        """
        if sys.platform == "linux":
            return counters_mb(("MemAvailable",))["MemAvailable"]
        import psutil

        return float(psutil.virtual_memory().available) / 2**20


def linux_mb(meminfo: Path) -> float:
    """AnonPages + Mapped + Shmem of a meminfo file, in MB.

    Raises:
        PluginError: it cannot be read or lacks a counter.
    """
    return sum(counters_mb(_COUNTERS, meminfo).values())


def available_mb() -> float:
    """Total less available memory, in MB."""
    import psutil  # only where there is no /proc/meminfo: `runq plan` starts a third faster without it

    memory = psutil.virtual_memory()
    return float(memory.total - memory.available) / 2**20
