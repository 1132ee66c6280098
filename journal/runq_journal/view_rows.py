"""How a row of a view reads in Python: its order, and what its columns mean."""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any]

ORDERS = {
    "attempt": "night, entry, coalesce(started_event, finished_event)",
    "baseline": "event, probe",
    "check_result": "event",
    "deferred": 'night, "index", event',
    "duration_estimate": "model_id, pack, step, host",
    "entry_death": "night, entry",
    "entry_host": "night, entry",
    "entry_power": "night, entry",
    "entry_result": 'night, "index"',
    "failure": "event",
    "imported_step": "event, position, step",
    "lease": "lease",
    "metric": "imported DESC, CASE WHEN imported THEN at END, event, entry, position",
    "model_delta": "event, probe",
    "night": "first_event DESC",
    "night_plan": "night",
    "night_summary": "first_event DESC",
    "pack_disk": "pack",
    "planned_entry": 'night, "index"',
    "planned_step": 'night, "index", position',
    "server": "started_event",
    "span": "event",
    "step_evidence": "night, entry, started_event",
    "step_metric": 'night, "index", step_position, position',
    "step_result": 'night, "index", position',
    "step_state": "night, entry, event",
    "todo": 'night, "index", position',
    "unfinished": "started_event",
    "warning": "event",
}
"""Every view with the order its rows are given in; a view's own text has none, so that SQLite may look inside."""

# SQLite has neither booleans nor JSON values: these columns become what they mean.
_BOOLEANS = frozenset({"baseline_proven", "imported", "loaded", "memory_back", "newest", "on_battery", "run"})
_JSON = frozenset(
    {
        "argv",
        "artifacts",
        "facts",
        "identity_parts",
        "loaded_models",
        "metrics",
        "model",
        "outputs",
        "settings",
        "steps",
    }
)


def meant(name: str, value: Any) -> Any:
    """The value of a view's column.

    Raises:
        ValueError, TypeError, RecursionError: it should be JSON, and is not.
    """
    if value is None:
        return None
    if name in _BOOLEANS:
        return bool(value)
    return json.loads(value) if name in _JSON else value
