"""Nights to report on: told event by event, and real ones."""

from __future__ import annotations

from ..core.conftest import told
from ..night.conftest import workshop, workshop_class

__all__ = ["told", "workshop", "workshop_class"]
