"""What a queue file says, as frozen values.

Two layers, so that a default is told apart from a choice:

* *as written*: `QueueFile`, `Defaults`, `EntryFields`. A field is ``None`` where the file is silent. The JSON
  Schema is generated from these classes.
* *resolved*: `QueueSpec`, `EntrySpec`. Every setting has its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

Json = Any
"""A JSON value: null, boolean, number, string, list or mapping with string keys."""

OnDirty = Literal["warn", "retry", "skip", "stop"]

DEFAULT_STEP_TIMEOUT_S: float = 14_400.0
"""Of every step but the judge; touchstone's default for its eval."""

DEFAULT_STEP_TIMEOUTS_S: Mapping[str, float] = {"judge": 21_600.0}
"""Steps with a default of their own; touchstone's default for its judge."""

LMS_RESET_COMMAND = "lms unload --all"
"""The one reset command that means the `lms` backend, so that its effect can be verified."""


def described(text: str, *, identity: bool = False) -> dict[str, Any]:
    """Metadata of a queue key: its description, and whether a step's identity depends on it."""
    return {"description": text, "identity": identity}


@attrs.frozen(kw_only=True)
class SettleSpec:
    """When memory counts as back. The defaults are touchstone's."""

    timeout_s: float = attrs.field(
        default=120.0, metadata=described("Give up after so many seconds without proof.")
    )
    plateau_polls: int = attrs.field(
        default=3, metadata=described("Flat intervals between readings that make a plateau.")
    )
    poll_interval_s: float = attrs.field(default=2.0, metadata=described("Seconds between two readings."))
    epsilon_mb: float = attrs.field(
        default=200.0, metadata=described("Readings within so many MB (2**20 bytes) count as the same.")
    )


@attrs.frozen(kw_only=True)
class ModelSpec:
    """One model as touchstone describes it; ``extra`` holds fields that touchstone may know and runq does not."""

    id: str = attrs.field(metadata=described("The model's id, exactly as the server spells it.", identity=True))
    quant: str = attrs.field(default="", metadata=described("Quantisation, for the record.", identity=True))
    max_tokens_default: int = attrs.field(
        default=400, metadata=described("Tokens an answer may have where the prompt does not say.", identity=True)
    )
    reasoning_headroom_tokens: int = attrs.field(
        default=0, metadata=described("Tokens added for a thinking model's reasoning.", identity=True)
    )
    extra_body: Mapping[str, Json] = attrs.field(
        factory=dict, metadata=described("Sent to the server with every request, JSON types kept.", identity=True)
    )
    extra: Mapping[str, Json] = attrs.field(factory=dict, metadata={"schema": "additional", "identity": True})

    def canonical(self) -> dict[str, Json]:
        """Every field with its value, defaults included: what a step's identity is computed from."""
        known = attrs.asdict(self, recurse=False)
        extra = known.pop("extra")
        return {**extra, **known}

    def as_written(self) -> dict[str, Json]:
        """The fields that differ from their defaults, and ``id``: what travels to a harness."""
        full = self.canonical()
        defaults = ModelSpec(id=self.id).canonical()
        return {key: value for key, value in full.items() if key == "id" or value != defaults.get(key, _ABSENT)}


_ABSENT = object()


@attrs.frozen(kw_only=True)
class PluginUse:
    """A plugin by name with the options the queue file gives it, not yet checked against the plugin's class.

    ``options`` holds scalars as `Scalar` (text that knows how it was written), because only the plugin's
    own field types say whether ``8080`` is a number or a string.
    """

    name: str
    options: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class _Shared:
    """The keys that may stand in ``defaults`` and in an entry. ``None``: not given."""

    reset: PluginUse | None = attrs.field(
        default=None,
        metadata=described("Reset backend: its name, or a mapping with `backend` and that backend's options."),
    )
    reset_command: str | tuple[str, ...] | None = attrs.field(
        default=None,
        metadata=described("touchstone's spelling: a command that evicts all models; \"\" switches the reset off."),
    )
    probes: tuple[PluginUse, ...] | None = attrs.field(
        default=None, metadata=described("Memory probes to settle on: names, or mappings with `probe` and options.")
    )
    settle: SettleSpec | None = attrs.field(default=None, metadata=described("When memory counts as back."))
    reset_before: tuple[str, ...] | None = attrs.field(
        default=None, metadata=described("Steps before which the endpoint is reset; by default the first step.")
    )
    harness: PluginUse | None = attrs.field(
        default=None, metadata=described("Harness: its name, or a mapping with `harness` and options.", identity=True)
    )
    step_timeout_s: Mapping[str, float] | None = attrs.field(
        default=None, metadata=described("Seconds each step may take, by step name.")
    )
    stall_timeout_s: float | Mapping[str, float] | None = attrs.field(
        default=None,
        metadata=described("End a step when neither its log nor its bundle grew for so many seconds; off if absent."),
    )
    retries: int | None = attrs.field(
        default=None, metadata=described("How often a step that failed, stalled or timed out is tried again.")
    )
    retry_wait_s: float | None = attrs.field(default=None, metadata=described("Seconds before such a retry."))
    cooldown_s: float | None = attrs.field(
        default=None, metadata=described("Seconds to wait after settling, before the first step.")
    )
    env: Mapping[str, str] | None = attrs.field(
        default=None,
        metadata=described("Extra environment of the steps; `${NAME}` is taken from the runner's environment."),
    )
    on_dirty: OnDirty | None = attrs.field(
        default=None, metadata=described("When the reset or the baseline is not proven: warn, retry, skip or stop.")
    )


@attrs.frozen(kw_only=True)
class Defaults(_Shared):
    """Settings for every entry that does not say otherwise."""


@attrs.frozen(kw_only=True)
class EntryFields(_Shared):
    """One model on one pack, as written."""

    model: ModelSpec = attrs.field(metadata=described("The model: its id, or a mapping.", identity=True))
    config: str | None = attrs.field(
        default=None, metadata=described("The harness's configuration file (touchstone: endpoint and models).", identity=True)
    )
    pack: str | None = attrs.field(default=None, metadata=described("The prompts to answer.", identity=True))
    judge_config: str | None = attrs.field(
        default=None, metadata=described("Configuration of the judge; without it touchstone's judge does not run.", identity=True)
    )
    judge_model: str | None = attrs.field(
        default=None, metadata=described("The judge's model id, in place of the judge configuration's.", identity=True)
    )


@attrs.frozen(kw_only=True)
class QueueFile:
    """A whole queue file, as written."""

    defaults: Defaults = attrs.field(factory=Defaults, metadata=described("Settings for every entry."))
    entries: tuple[EntryFields, ...] = attrs.field(metadata=described("What to run, in this order."))


@attrs.frozen(kw_only=True)
class Mark:
    """A place in the queue file; both count from 1."""

    line: int
    column: int


@attrs.frozen(kw_only=True)
class EntrySpec:
    """One entry with every setting resolved. Paths are as written; ``index`` is the position from 0."""

    index: int
    mark: Mark
    model: ModelSpec
    config: str | None
    pack: str | None
    judge_config: str | None
    judge_model: str | None
    reset: PluginUse
    probes: tuple[PluginUse, ...]
    settle: SettleSpec
    reset_before: tuple[str, ...] | None
    harness: PluginUse
    step_timeout_s: Mapping[str, float]
    stall_timeout_s: float | Mapping[str, float] | None
    retries: int
    retry_wait_s: float
    cooldown_s: float
    env: Mapping[str, str]
    on_dirty: OnDirty

    @property
    def key(self) -> tuple[str, str, str]:
        """What no two entries of a file may share: (config, pack, model id), as touchstone counts duplicates."""
        return (self.config or "", self.pack or "", self.model.id)


@attrs.frozen(kw_only=True)
class QueueSpec:
    """A resolved queue file with what is needed to report a problem at its line.

    ``marks`` maps a path in the document, for example ``("entries", 2, "reset", "host")``, to the place of that
    value; `mark_of` finds the nearest one.
    """

    path: Path
    sha256: str
    entries: tuple[EntrySpec, ...]
    marks: Mapping[tuple[str | int, ...], Mark] = attrs.field(factory=dict, repr=False)

    def mark_of(self, *path: str | int) -> Mark:
        """The place of a value, or of the nearest thing around it that the file has."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.marks:
                return self.marks[path[:end]]
        return Mark(line=1, column=1)
