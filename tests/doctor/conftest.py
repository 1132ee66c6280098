"""What the doctor's tests share with those of the commands and of nights."""

from __future__ import annotations

from ..commands.conftest import home, past, runq
from ..night.conftest import workshop, workshop_class
from ..stand_ins.model_hosts import host, lms

__all__ = ["home", "host", "lms", "past", "runq", "workshop", "workshop_class"]
