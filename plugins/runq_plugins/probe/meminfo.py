"""Counters of Linux's /proc/meminfo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runq.plugin import PluginError

MEMINFO = Path("/proc/meminfo")

OTHER_PROBE = "use the probe `psutil_used`"


def counters_mb(names: Sequence[str], meminfo: Path = MEMINFO) -> dict[str, float]:
    """The named counters, in MB (2**20 bytes; the file's ``kB`` are 1,024 bytes, proc_meminfo(5)).

    Raises:
        PluginError: the file cannot be read or lacks a counter.
    """
    try:
        text = meminfo.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise PluginError(f"{meminfo} cannot be read: {error.strerror}", remedy=OTHER_PROBE) from error
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if name in names and len(words) == 2 and words[0].isdigit() and words[1] == "kB":
            found[name] = int(words[0]) / 1024
    missing = [name for name in names if name not in found]
    if missing:
        raise PluginError(f"{meminfo} has no {' and no '.join(missing)}", remedy=OTHER_PROBE)
    return found
