"""Which boot of the machine this is: a pid means nothing beyond it."""

from __future__ import annotations

from pathlib import Path

import psutil

_LINUX_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id(source: Path = _LINUX_BOOT_ID) -> str:
    """A text that stays the same until the machine boots again.

    Args:
        source: where Linux tells it (random(4)); elsewhere the boot time in whole seconds stands in. That
            one also changes when the clock is set, which makes a boot look new: a recorded pid is then not
            believed, and the mark in the environment still finds the process.
    """
    try:
        return source.read_text(encoding="ascii").strip()
    except OSError:
        return f"booted-{int(psutil.boot_time())}"
