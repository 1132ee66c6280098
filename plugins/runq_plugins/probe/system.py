"""The machine's memory that models can occupy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import attrs
import psutil

from runq.plugin import PluginError

MEMINFO = Path("/proc/meminfo")

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


def linux_mb(meminfo: Path) -> float:
    """AnonPages + Mapped + Shmem of a meminfo file, in MB.

    Raises:
        PluginError: it cannot be read or lacks a counter.
    """
    try:
        text = meminfo.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise PluginError(
            f"{meminfo} cannot be read: {error.strerror}", remedy="use the probe `psutil_used`"
        ) from error
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if name in _COUNTERS and len(words) == 2 and words[0].isdigit() and words[1] == "kB":
            found[name] = int(words[0])
    missing = [name for name in _COUNTERS if name not in found]
    if missing:
        raise PluginError(f"{meminfo} has no {' and no '.join(missing)}", remedy="use the probe `psutil_used`")
    return sum(found.values()) / 1024


def available_mb() -> float:
    """Total less available memory, in MB."""
    memory = psutil.virtual_memory()
    return float(memory.total - memory.available) / 2**20
