"""The machine and the versions a night runs with."""

from __future__ import annotations

import platform
from importlib.metadata import version

from runq_schemas.event_parts import Host

MB = 2**20


def this_host() -> Host:
    """This machine; memory in MB (2**20 bytes)."""
    import psutil

    return Host(
        name=platform.node(),
        system=f"{platform.system()} {platform.release()}",
        machine=platform.machine(),
        cpus=psutil.cpu_count() or 1,
        memory_mb=round(psutil.virtual_memory().total / MB, 1),
    )


def versions() -> dict[str, str]:
    """The versions a result may depend on."""
    import sqlite3

    return {"runq": version("runq"), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
