"""The memory of a server's own processes, wherever the rest of the machine goes."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import ClassVar, Literal

import attrs
import psutil

from runq.plugin import PluginError
from runq_plugins.options import port_number
from runq_plugins.probe.footprint import footprint_mb
from runq_plugins.reset.owner import listener

MB = 2**20

CONNECT_S = 0.2
"""Seconds to find out whether somebody listens on a port of this machine: the loopback answers in microseconds."""


@attrs.frozen(kw_only=True)
class ProcessProbe:
    """A server's whole process tree: the process that listens on a port, or those with a name, and all they started.

    It sees what other programs do not disturb: weights mapped from a file, and the worker processes of a router. No
    process is 0 MB: then the server is gone and its memory with it. Memory on a graphics card is not in it, and on
    macOS not all that Metal holds.
    """

    port: int | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(port_number),
        metadata={"description": "The TCP port that the server listens on; or `name`."},
    )
    name: str | None = attrs.field(
        default=None,
        metadata={"description": "Its program's name as the system shows it; every process with that name."},
    )
    figure: Literal["rss", "uss", "pss", "footprint"] = attrs.field(
        default="rss",
        metadata={
            "description": "`rss`: the resident set, pages that several of its processes share counted for each. `uss`:"
            " what only one process holds; `pss` (Linux): shared pages divided; both walk through a process's pages, 5"
            " to 15 ms for each GB, and hold it up meanwhile. `footprint` (macOS): what it costs the machine, Metal's"
            " memory included."
        },
    )

    formula: ClassVar[str] = (
        "resident set (or unique set, proportional set, physical footprint) of a server's process and its descendants,"
        " in MB (2**20 bytes)"
    )

    def __attrs_post_init__(self) -> None:
        """Check that there is exactly one way to find the server."""
        if (self.port is None) == (self.name is None):
            raise ValueError("give either port or name: the server's port, or its program's name")

    def read_mb(self) -> float:
        """The figure now, in MB; 0 when there is no such process.

        Raises:
            PluginError: the process belongs to another user, or the system has no such figure.
        """
        return sum((self._figure_mb(process) for process in self._tree()), 0.0)

    def _tree(self) -> list[psutil.Process]:
        found: dict[int, psutil.Process] = {}
        for root in self._roots():
            found[root.pid] = root
            with contextlib.suppress(psutil.NoSuchProcess):
                found.update({child.pid: child for child in root.children(recursive=True)})
        return list(found.values())

    def _roots(self) -> Iterator[psutil.Process]:
        if self.port is None:
            for process in psutil.process_iter(["name"]):
                if process.info["name"] == self.name:
                    yield process
            return
        server = listener(self.port)
        if server is not None:
            yield server
        elif _answers(self.port):
            raise PluginError(
                f"the process that listens on port {self.port} cannot be seen: it belongs to another user",
                remedy="run runq as the same user as the server, or use the probe `system`",
            )

    def _figure_mb(self, process: psutil.Process) -> float:
        try:
            if self.figure == "rss":
                return float(process.memory_info().rss) / MB
            if self.figure == "footprint":
                return footprint_mb(process.pid)
            full = process.memory_full_info()
        except (psutil.NoSuchProcess, psutil.ZombieProcess, ProcessLookupError):
            return 0.0  # it ended between the two looks: it holds nothing
        except psutil.AccessDenied as error:
            raise PluginError(
                f"the memory of process {process.pid} may not be read: it belongs to another user",
                remedy="run runq as the same user as the server, or use the probe `system`",
            ) from error
        figure = getattr(full, self.figure, None)
        if figure is None:
            raise PluginError(f"this system has no {self.figure} of a process", remedy="use `figure: rss`")
        return float(figure) / MB


def _answers(port: int) -> bool:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(CONNECT_S)
            if probe.connect_ex((host, port)) == 0:
                return True
    return False
