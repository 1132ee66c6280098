"""Memory on NVIDIA graphics cards, as the driver counts it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import attrs

from runq.plugin import PluginError

MB = 2**20


@attrs.frozen(kw_only=True)
class NvidiaProbe:
    """Memory in use on one NVIDIA card, or on all of them together, whatever program holds it.

    The driver gives a process's memory back some seconds after its end, when it has torn its context down. On
    machines whose card uses the system's memory (DGX Spark) the driver has no such figure: use `system` there.
    """

    device: int | None = attrs.field(
        default=None,
        metadata={"description": "The card's index as `nvidia-smi` counts; all cards together without it."},
    )

    formula: ClassVar[str] = "NVML nvmlDeviceGetMemoryInfo: used without what the driver reserves, in MB (2**20 bytes)"

    @device.validator
    def _device(self, _attribute: object, value: int | None) -> None:
        if value is not None and value < 0:
            raise ValueError(f"device must be at least 0, not {value}")

    def read_mb(self) -> float:
        """The figure now, in MB.

        Raises:
            PluginError: there is no driver, no such card, or the card has no memory of its own.
        """
        with _nvml() as nvml:
            return sum(float(memory.used) for memory in self._memories(nvml)) / MB

    def free_mb(self) -> float:
        """What is free on the card, or on all cards together, in MB. Raises the same."""
        with _nvml() as nvml:
            return sum(float(memory.free) for memory in self._memories(nvml)) / MB

    def _memories(self, nvml: Any) -> Iterator[Any]:
        count = nvml.nvmlDeviceGetCount()
        if not count or (self.device is not None and self.device >= count):
            have = "no NVIDIA card" if not count else f"{count} NVIDIA card(s), the last with index {count - 1}"
            raise PluginError(f"this machine has {have}", remedy="correct `device`, or use the probe `system`")
        for index in range(count) if self.device is None else (self.device,):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            yield nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)


@contextmanager
def _nvml() -> Iterator[Any]:
    """The driver's library, opened and closed again: it must not keep a card awake through the night."""
    try:
        import pynvml
    except ImportError as error:
        raise PluginError(
            "nvidia-ml-py is not installed, so the driver cannot be asked", remedy="pip install 'runq[nvidia]'"
        ) from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise PluginError(
            f"the NVIDIA driver cannot be asked: {error}",
            remedy="look at what `nvidia-smi` says, or use the probe `system`",
        ) from error
    try:
        yield pynvml
    except pynvml.NVMLError as error:
        raise PluginError(
            f"the NVIDIA driver does not tell the memory in use: {error}",
            remedy="a card that shares the system's memory has no figure of its own: use the probe `system`",
        ) from error
    finally:
        pynvml.nvmlShutdown()
