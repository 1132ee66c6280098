"""Memory on AMD graphics cards, as the amdgpu driver counts it."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import attrs

from runq.plugin import PluginError

MB = 2**20

CARDS = Path("/sys/class/drm")


@attrs.frozen(kw_only=True)
class AmdProbe:
    """Video memory, and the system's memory lent to the card (GTT), of one AMD card or of all together.

    The driver's own files (Documentation/gpu/amdgpu/driver-misc.rst: mem_info_vram_used, mem_info_gtt_used) need no
    library. On an APU the models live in GTT for the most part.
    """

    card: str | None = attrs.field(
        default=None,
        metadata={"description": "The name under /sys/class/drm, such as `card0`; all cards together without it."},
    )

    formula: ClassVar[str] = "amdgpu mem_info_vram_used + mem_info_gtt_used, in MB (2**20 bytes)"

    def read_mb(self) -> float:
        """The figure now, in MB.

        Raises:
            PluginError: no card has these files, or they cannot be read.
        """
        return sum(_bytes(device / f"mem_info_{kind}_used") for device in self._devices() for kind in KINDS) / MB

    def free_mb(self) -> float:
        """What is free of the video memory, in MB. Raises the same."""
        return (
            sum(
                _bytes(device / "mem_info_vram_total") - _bytes(device / "mem_info_vram_used")
                for device in self._devices()
            )
            / MB
        )

    def _devices(self) -> list[Path]:
        found = sorted(file.parent for file in CARDS.glob("card*/device/mem_info_vram_used"))
        names = [device.parent.name for device in found]
        if self.card is not None:
            found = [device for device in found if device.parent.name == self.card]
        if not found:
            have = f"only {', '.join(names)}" if names else "none"
            wanted = f"no AMD card named {self.card}" if self.card else "no AMD card"
            raise PluginError(
                f"{wanted} tells its memory under {CARDS}: {have} does",
                remedy="the amdgpu driver has to be loaded; or use the probe `system`",
            )
        return found


KINDS = ("vram", "gtt")


def _bytes(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise PluginError(f"{file} cannot be read: {error}", remedy="use the probe `system`") from error
