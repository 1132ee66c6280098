"""What keys ask for: one key, or a question and its answer where something would be lost. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

if TYPE_CHECKING:
    from runq.control.wire import What

Choice = Literal["leave", "log"]
"""What concerns the screen alone."""

LEAVE_KEYS = ("q", "escape", "end")
"""``end`` is what a terminal sends that closed (Ctrl-D)."""

_STOPS: dict[str, What] = {"n": "stop", "s": "stop_after_step", "e": "stop_after_entry"}

NO_KEYS = "no keys: standard input is no terminal; Ctrl-C leaves, and the night goes on"


@attrs.define
class Chooser:
    """Takes keys one by one. ``asking`` is the question that stands open."""

    asking: Literal["", "stop", "skip"] = attrs.field(default="", init=False)

    def press(self, key: str, data: Mapping[str, Any]) -> Choice | What | None:
        """What a key asks for; ``None`` for nothing, or for a question first.

        Args:
            data: the night's status.
        """
        if self.asking:
            asked, self.asking = self.asking, ""
            if asked == "stop":
                return _STOPS.get(key)
            return "skip" if key == "y" else None
        match key:
            case "p":
                return "unpause" if data["state"] == "paused" or "pause" in data["asked"] else "pause"
            case "s":
                self.asking = "stop"
            case "k":
                self.asking = "skip"
            case "l":
                return "log"
            case _ if key in LEAVE_KEYS:
                return "leave"
        return None

    def words(self, data: Mapping[str, Any]) -> str:
        """What the keys do now."""
        if self.asking == "stop":
            return "stop the night: n now, s after this step, e after this entry; any other key: no"
        if self.asking == "skip":
            entry = (data["now"] or {}).get("entry")
            return f"skip the rest of {'the entry' if entry is None else f'e{entry}'}: y yes; any other key: no"
        paused = data["state"] == "paused" or "pause" in data["asked"]
        return f"q leave  p {'go on' if paused else 'pause'}  s stop  k skip  l log"
