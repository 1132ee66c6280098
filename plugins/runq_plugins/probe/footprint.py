"""A process's physical footprint on macOS: what it costs the machine, Metal's memory included."""

from __future__ import annotations

import ctypes
import sys

from runq.plugin import PluginError

_RUSAGE_INFO_V2 = 2

_FIELDS = (
    "user_time",
    "system_time",
    "pkg_idle_wkups",
    "interrupt_wkups",
    "pageins",
    "wired_size",
    "resident_size",
    "phys_footprint",
)
"""The first fields of `struct rusage_info_v2` after its uuid (sys/resource.h), each of 64 bits."""


class RusageInfo(ctypes.Structure):
    """`struct rusage_info_v2`, with room for the fields that are not read."""

    _fields_ = (
        ("uuid", ctypes.c_uint8 * 16),
        *((name, ctypes.c_uint64) for name in _FIELDS),
        ("rest", ctypes.c_uint64 * 32),
    )


def footprint_mb(pid: int) -> float:
    """The physical footprint of a process, in MB (2**20 bytes).

    Raises:
        PluginError: this is no Mac, or the process is another user's.
        ProcessLookupError: there is no such process.
    """
    if sys.platform != "darwin":
        raise PluginError("only macOS knows the physical footprint of a process", remedy="use `figure: pss` or `rss`")
    info = RusageInfo()
    library = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)
    if library.proc_pid_rusage(pid, _RUSAGE_INFO_V2, ctypes.byref(info)) != 0:
        number = ctypes.get_errno()
        error = OSError(number, "proc_pid_rusage")
        if isinstance(error, ProcessLookupError):
            raise error
        raise PluginError(
            f"the footprint of process {pid} cannot be read: {error}",
            remedy="run runq as the same user as the server",
        )
    return float(info.phys_footprint) / 2**20
