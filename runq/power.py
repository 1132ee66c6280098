"""Mains power or battery: what the machine runs on, and what is worth telling about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

LOW_PERCENT = 20.0
"""Below this a battery is low: the default of UPower, which desktops on Linux go by (PercentageLow in UPower.conf)."""


@attrs.frozen(kw_only=True)
class Battery:
    """A battery: its charge, and whether the machine runs on mains power; ``None`` where that cannot be told."""

    percent: float
    power_plugged: bool | None

    @property
    def discharges(self) -> bool:
        """Whether the machine is known to run on it."""
        return self.power_plugged is False

    @property
    def low(self) -> bool:
        """Whether little is left."""
        return self.percent < LOW_PERCENT


ReadsBattery = Callable[[], Battery | None]


def battery() -> Battery | None:
    """The battery as psutil tells it; ``None`` without one, or where it cannot be told."""
    import psutil

    read = getattr(psutil, "sensors_battery", None)
    try:
        found = read() if read is not None else None
    except Exception:  # psutil raises many kinds for odd /sys files; without a figure nothing is claimed
        return None
    return None if found is None else Battery(percent=float(found.percent), power_plugged=found.power_plugged)


def recorded(found: Battery | None) -> dict[str, Any]:
    """The fields of an event that say what the machine runs on; none where there is no battery."""
    return {} if found is None else {"on_battery": found.discharges, "battery_percent": round(found.percent, 1)}


def worth_telling(found: Battery | None) -> tuple[str, str]:
    """What is not as it should be with the power, and what to do; both empty where nothing is."""
    if found is None or not (found.discharges or found.low):
        return "", ""
    if found.discharges:
        return (
            f"the machine runs on battery, at {found.percent:.0f} %: it may be slower, and off before the morning",
            "plug the charger in; `require_ac: true` refuses entries without it",
        )
    return (
        f"the battery is low, at {found.percent:.0f} %, although the charger is plugged in",
        "see that the charger is strong enough for the load of a night",
    )
