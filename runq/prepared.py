"""A queue file ready to run: entries with their plugins, paths and settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runq.bounded_probe import BoundedProbe
from runq.plugin import Entry, Harness, ResetBackend, Step
from runq.redact import Redactor
from runq_schemas.queue import EntrySpec, QueueSpec

if TYPE_CHECKING:
    from runq.discovery import Offer
    from runq.heartbeat import Beat
    from runq_schemas.event_parts import UsedPlugin


@attrs.frozen(kw_only=True)
class PreparedEntry:
    """An entry with its plugins. ``entry.id`` is the position until the night gives it its number."""

    spec: EntrySpec
    entry: Entry
    harness: Harness
    reset: ResetBackend
    endpoint: str | None
    probes: Mapping[str, BoundedProbe]
    steps: tuple[Step, ...]
    timeouts_s: Mapping[str, float]
    stalls_s: Mapping[str, float | None]
    reset_before: frozenset[str]
    pack_id: str
    env: Mapping[str, str] = attrs.field(repr=False)
    beats: Mapping[str, Beat] = attrs.field(factory=dict)
    restart: tuple[str, ...] = ()
    pressure: Mapping[str, BoundedProbe] = attrs.field(factory=dict)

    def settings(self) -> dict[str, Any]:
        """Every resolved setting as JSON data, plugin options included; may hold secrets."""
        return {
            "reset": _plugin_settings(self.spec.reset.name, self.reset),
            "probes": [_plugin_settings(name, one.probe) for name, one in {**self.probes, **self.pressure}.items()],
            "harness": _plugin_settings(self.spec.harness.name, self.harness),
            "settle": attrs.asdict(self.spec.settle),
            "reset_before": sorted(self.reset_before),
            "step_timeout_s": dict(self.timeouts_s),
            "stall_timeout_s": dict(self.stalls_s),
            "heartbeat": attrs.asdict(self.spec.heartbeat) if self.spec.heartbeat else None,
            "restart_command": list(self.restart),
            "retries": self.spec.retries,
            "retry_wait_s": self.spec.retry_wait_s,
            "retry_backoff": self.spec.retry_backoff,
            "retry_on": list(self.spec.retry_on),
            "retry_when": self.spec.retry_when,
            "cooldown_s": self.spec.cooldown_s,
            "env": {str(name): str(value) for name, value in self.env.items()},
            "on_dirty": self.spec.on_dirty,
            "min_free_mb": self.spec.min_free_mb,
            "min_free_disk_mb": self.spec.min_free_disk_mb,
            "require_ac": self.spec.require_ac,
        }

    def endpoints(self) -> tuple[str, ...]:
        """The endpoints the entry uses, for the locks."""
        asked = [target.base_url for target in self.harness.targets(self.entry)]
        return tuple(dict.fromkeys([*([self.endpoint] if self.endpoint else []), *asked]))


@attrs.frozen(kw_only=True)
class PreparedQueue:
    """A queue file ready to run."""

    spec: QueueSpec
    base_dir: Path
    entries: tuple[PreparedEntry, ...]
    offers: tuple[Offer, ...]

    @property
    def plugins(self) -> tuple[UsedPlugin, ...]:
        """The plugins that are used, as the journal records them."""
        return tuple(offer.used() for offer in self.offers)

    def redactor(self, runs: Path, environ: Mapping[str, str]) -> Redactor:
        """Knows the secrets of the environment, of plugin options, of models, and of the endpoints' configurations."""
        keys = [target.api_key for entry in self.entries for target in entry.harness.targets(entry.entry)]
        options = [(entry.settings(), entry.spec.model.canonical()) for entry in self.entries]
        plain = [str(self.spec.path), str(self.base_dir), str(runs), *(e.spec.model.id for e in self.entries)]
        plain += [text for entry in self.entries for text in (*entry.spec.key, entry.spec.judge_config or "")]
        return Redactor.of(dict(environ), {"entries": options}, {"api_key": [key for key in keys if key]}, plain=plain)


def _plugin_settings(name: str, plugin: Any) -> dict[str, Any]:
    fields = {field.alias: getattr(plugin, field.name) for field in attrs.fields(type(plugin)) if field.init}
    return {"name": name, **_plain(fields)}


def _plain(value: Any) -> Any:
    if attrs.has(type(value)):
        return _plain(attrs.asdict(value, recurse=False))
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)
