"""How short of memory the machine is: a reason for care, and no proof of anything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import attrs

from runq.plugin import PluginError

PSI = Path("/proc/pressure/memory")

LEVELS = {1: 0.0, 2: 50.0, 4: 100.0}
"""macOS tells three levels (kern.memorystatus_vm_pressure_level: 1 normal, 2 warning, 4 critical), shown as halves."""

SYSCTL_S = 2.0
"""Seconds for one `sysctl` call, which takes milliseconds."""

_FORMULAS = {
    "linux": "`some avg10` of /proc/pressure/memory: share of the last 10 s in which a task waited for memory, in %",
    "darwin": "kern.memorystatus_vm_pressure_level: normal 0, warning 50, critical 100, in %",
}


@attrs.frozen(kw_only=True)
class PressureProbe:
    """Linux's pressure stall information (Documentation/accounting/psi.rst), macOS's memory pressure level.

    It stands beside the probes that read MB and is recorded with each baseline.
    """

    formula: ClassVar[str] = _FORMULAS.get(sys.platform, "memory pressure in %, on Linux and macOS only")

    def pressure_percent(self) -> float:
        """The figure now: 0 none, 100 as bad as it gets.

        Raises:
            PluginError: this system or its kernel does not tell it.
        """
        if sys.platform == "darwin":
            return _macos()
        return linux_percent(PSI)


def linux_percent(file: Path) -> float:
    """``some avg10`` of a pressure file, in percent.

    Raises:
        PluginError: the kernel has none (before 4.20, or compiled or switched off), or the file says something else.
    """
    try:
        text = file.read_text(encoding="ascii")
    except OSError as error:
        raise PluginError(
            f"{file} cannot be read: {error.strerror}",
            remedy="boot Linux 4.20 or newer with psi=1, or leave `pressure` out of `probes`",
        ) from error
    for line in text.splitlines():
        kind, *pairs = line.split()
        values = dict(pair.partition("=")[::2] for pair in pairs)
        if kind == "some" and "avg10" in values:
            return float(values["avg10"])
    raise PluginError(f"{file} has no `some avg10`", remedy="leave `pressure` out of `probes`")


def _macos() -> float:
    name = "kern.memorystatus_vm_pressure_level"
    try:
        level = int(subprocess.check_output(["/usr/sbin/sysctl", "-n", name], text=True, timeout=SYSCTL_S))
        return LEVELS[level]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise PluginError(f"sysctl {name} tells no known level: {error}", remedy="leave `pressure` out") from error
