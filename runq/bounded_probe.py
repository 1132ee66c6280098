"""A probe that cannot hold a night: its reading is given up after a while."""

from __future__ import annotations

import threading
from typing import Any

import attrs

from runq.plugin import PluginError, Probe

READING_LIMIT_S = 2.0
"""A thousand times what a reading costs. A driver that hangs must not put off a step's timeout by more than this."""


@attrs.define
class BoundedProbe:
    """Reads a probe in a thread of its own; one that did not come back once is not asked again."""

    probe: Probe
    limit_s: float = READING_LIMIT_S
    _hangs: bool = attrs.field(default=False, init=False)

    def read_mb(self) -> float:
        """The figure now, in MB.

        Raises:
            PluginError: it did not come in time, now or before.
            Exception: whatever the probe raises.
        """
        if self._hangs:
            raise PluginError("it hung before and is not asked again")
        result: list[Any] = []
        thread = threading.Thread(target=self._read, args=(result,), name="runq-probe", daemon=True)
        thread.start()
        thread.join(self.limit_s)
        if not result:
            self._hangs = True
            raise PluginError(f"it gave no reading within {self.limit_s:g} s")
        if isinstance(result[0], BaseException):
            raise result[0]
        return float(result[0])

    def _read(self, result: list[Any]) -> None:
        try:
            result.append(self.probe.read_mb())
        except BaseException as error:  # handed over to the caller's thread
            result.append(error)
