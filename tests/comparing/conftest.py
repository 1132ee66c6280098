"""Nights with known scores, an answer at a time."""

from __future__ import annotations

from ..night.conftest import workshop, workshop_class

__all__ = ["workshop", "workshop_class"]
