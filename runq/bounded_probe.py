"""A probe that cannot hold a night: its reading is given up after a while."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, Queue
from typing import Any

import attrs

from runq.plugin import PluginError, Probe, TellsFree, TellsPressure

IDLE_S = 5.0
"""The thread of a probe ends when nothing was asked for so long: a night of 1,000 entries has as many probes."""

READING_LIMIT_S = 2.0
"""A thousand times what a reading costs. A driver that hangs must not put off a step's timeout by more than this."""


@attrs.define
class BoundedProbe:
    """Reads a probe in a thread of its own; one that did not come back once is not asked again."""

    probe: Probe | TellsPressure
    limit_s: float = READING_LIMIT_S
    _hangs: bool = attrs.field(default=False, init=False)
    # Not SimpleQueue: its get() waits for ever when a signal comes after its time is up, as SIGCONT does in a process
    # that was stopped meanwhile (CPython, Modules/_queuemodule.c: what is left is negative then, which means no limit).
    _asked: Queue[Callable[[], Any]] = attrs.field(factory=Queue, init=False)
    _answers: Queue[Any] = attrs.field(factory=Queue, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    def read_mb(self) -> float:
        """The figure now, in MB.

        Raises:
            PluginError: it did not come in time, now or before.
            Exception: whatever the probe raises.
        """
        if not isinstance(self.probe, Probe):
            raise PluginError("it reads no memory figure")
        return self._read(self.probe.read_mb)

    def read_free_mb(self) -> float | None:
        """The memory still free now, in MB; ``None`` where the probe does not tell.

        Raises:
            PluginError: it did not come in time, now or before.
            Exception: whatever the probe raises.
        """
        return self._read(self.probe.free_mb) if isinstance(self.probe, TellsFree) else None

    def read_pressure(self) -> float | None:
        """The memory pressure now, in percent; ``None`` where the probe does not tell. Raises the same."""
        return self._read(self.probe.pressure_percent) if isinstance(self.probe, TellsPressure) else None

    def _read(self, question: Callable[[], Any]) -> float:
        if self._hangs:
            raise PluginError("it hung before and is not asked again")
        with self._lock:
            self._asked.put(question)
            if self._thread is None:  # kept for the next readings: to start one costs more than most readings do
                self._thread = threading.Thread(target=self._answer, name="runq-probe", daemon=True)
                self._thread.start()
        try:
            answer = self._answers.get(timeout=self.limit_s)
        except Empty:
            self._hangs = True
            raise PluginError(f"it gave no reading within {self.limit_s:g} s") from None
        if isinstance(answer, BaseException):
            raise answer
        return float(answer)

    def _answer(self) -> None:
        while True:
            try:
                question = self._asked.get(timeout=IDLE_S)
            except Empty:
                with self._lock:
                    if self._asked.empty():
                        self._thread = None
                        return
                continue
            try:
                self._answers.put(question())
            except BaseException as error:  # handed over to the caller's thread
                self._answers.put(error)
