"""What a queue file says, as frozen values.

Two layers, so that a default is told apart from a choice:

* *as written*: `QueueFile`, `Defaults`, `EntryFields`, `Matrix`. A field is ``None`` where the file is silent. The JSON
  Schema is generated from these classes.
* *resolved*: `QueueSpec`, `EntrySpec`. Every setting has its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from runq_schemas.place import DocumentPath, Mark, nearest_mark, place
from runq_schemas.queue_parts import HeartbeatSpec, Json, ModelSpec, SettleSpec, described

__all__ = [
    "DEFAULT_STEP_TIMEOUTS_S",
    "DEFAULT_STEP_TIMEOUT_S",
    "LMS_RESET_COMMAND",
    "STEP_ALIASES",
    "Defaults",
    "EntryFields",
    "EntrySpec",
    "HeartbeatSpec",
    "Json",
    "Matrix",
    "ModelSpec",
    "OnDirty",
    "PluginUse",
    "QueueFile",
    "QueueSpec",
    "RetryOn",
    "RetryWhen",
    "SettleSpec",
    "described",
]

Order = Literal["entries", "phases"]

OnDirty = Literal["warn", "retry", "skip", "stop"]

RetryOn = Literal["failed", "timeout", "stalled"]
"""How an attempt may end that is tried again."""

RetryWhen = Literal["now", "end"]

DEFAULT_STEP_TIMEOUT_S: float = 14_400.0
"""Of every step but the judge; touchstone's default for its eval."""

DEFAULT_STEP_TIMEOUTS_S: Mapping[str, float] = {"judge": 21_600.0}
"""Steps with a default of their own; touchstone's default for its judge."""

LMS_RESET_COMMAND = "lms unload --all"
"""The one reset command that means the `lms` backend, so that its effect can be verified."""


STEP_ALIASES: Mapping[str, str] = {"eval_s": "eval", "judge_s": "judge"}
"""touchstone's second spelling of two keys of ``step_timeout_s``."""


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
        metadata=described(
            "Reset backend: its name, or a mapping with `backend` and that backend's options.",
            plugin="backend",
            built_in=PluginUse(name="lms"),
        ),
    )
    reset_command: str | tuple[str, ...] | None = attrs.field(
        default=None,
        metadata=described(
            'touchstone\'s spelling: a command that evicts all models; "" switches the reset off.',
            min_items=1,
        ),
    )
    probes: tuple[PluginUse, ...] | None = attrs.field(
        default=None,
        metadata=described(
            "Memory probes to settle on: names, or mappings with `probe` and options.",
            plugin="probe",
            min_items=1,
            built_in=(PluginUse(name="system"),),
        ),
    )
    settle: SettleSpec | None = attrs.field(
        default=None, metadata=described("When memory counts as back.", built_in=SettleSpec())
    )
    reset_before: tuple[str, ...] | None = attrs.field(
        default=None,
        metadata=described(
            "Steps before which the endpoint is reset, besides the first that runs; by default only that one.",
            built_in=None,
            min_items=1,
        ),
    )
    harness: PluginUse | None = attrs.field(
        default=None,
        metadata=described(
            "Harness: its name, or a mapping with `harness` and options.",
            identity=True,
            plugin="harness",
            built_in=PluginUse(name="touchstone"),
        ),
    )
    step_timeout_s: Mapping[str, float] | None = attrs.field(
        default=None,
        metadata=described(
            "Seconds each step may take, by step name; 14400 where not given, 21600 for `judge`.",
            above=0,
            built_in={},
        ),
    )
    stall_timeout_s: float | Mapping[str, float] | None = attrs.field(
        default=None,
        metadata=described(
            "End a step when neither its log nor its bundle grew for so many seconds; off if absent.",
            above=0,
            built_in=None,
        ),
    )
    heartbeat: HeartbeatSpec | None = attrs.field(
        default=None,
        metadata=described(
            "Ask the endpoint for one token before each step, and while a step is silent; `{}` for the usual figures,"
            " off if absent.",
            built_in=None,
        ),
    )
    restart_command: str | tuple[str, ...] | None = attrs.field(
        default=None,
        metadata=described(
            "Restarts an endpoint whose heartbeat fails, once per entry: one string, split like a shell would but run"
            " without one, or a list.",
            min_items=1,
            built_in=None,
        ),
    )
    retries: int | None = attrs.field(
        default=None,
        metadata=described("How often a step that failed, stalled or timed out is tried again.", minimum=0, built_in=0),
    )
    retry_wait_s: float | None = attrs.field(
        default=None, metadata=described("Seconds before the first retry.", minimum=0, built_in=0.0)
    )
    retry_backoff: float | None = attrs.field(
        default=None,
        metadata=described(
            "Every further retry waits so many times as long as the one before; never more than an hour.",
            minimum=1,
            built_in=1.0,
        ),
    )
    retry_on: tuple[RetryOn, ...] | None = attrs.field(
        default=None,
        metadata=described(
            "What is tried again: `failed`, `timeout`, `stalled`.",
            min_items=1,
            built_in=("failed", "timeout", "stalled"),
        ),
    )
    retry_when: RetryWhen | None = attrs.field(
        default=None,
        metadata=described(
            "Retry right away (`now`), or once every other entry had its turn (`end`).",
            built_in="now",
        ),
    )
    cooldown_s: float | None = attrs.field(
        default=None,
        metadata=described("Seconds to wait after settling, before the first step.", minimum=0, built_in=0.0),
    )
    env: Mapping[str, str] | None = attrs.field(
        default=None,
        metadata=described(
            "Extra environment of the steps; `${NAME}` is taken from the runner's environment.", built_in={}
        ),
    )
    on_dirty: OnDirty | None = attrs.field(
        default=None,
        metadata=described("When the reset or the baseline is not proven: warn, retry, skip or stop.", built_in="warn"),
    )
    min_free_mb: float | None = attrs.field(
        default=None,
        metadata=described(
            "Skip the entry when less memory is free after settling, in MB, by the first probe that can tell.",
            minimum=0,
            built_in=None,
        ),
    )
    min_free_disk_mb: float | None = attrs.field(
        default=None,
        metadata=described(
            "Skip the entry when fewer MB are free on the disk of the runs folder before it begins, besides what the"
            " largest earlier bundle of its pack took.",
            minimum=0,
            built_in=None,
        ),
    )
    require_ac: bool | None = attrs.field(
        default=None,
        metadata=described("Skip the entry when the machine runs on battery as it begins.", built_in=False),
    )


@attrs.frozen(kw_only=True)
class Defaults(_Shared):
    """Settings for every entry that does not say otherwise."""


@attrs.frozen(kw_only=True)
class _Files(_Shared):
    """The keys that an entry has and ``defaults`` has not, besides its model."""

    config: str | None = attrs.field(
        default=None,
        metadata=described(
            "The harness's configuration file (touchstone: endpoint and models).",
            identity=True,
            nullable=True,
        ),
    )
    pack: str | None = attrs.field(
        default=None, metadata=described("The prompts to answer.", identity=True, nullable=True)
    )
    judge_config: str | None = attrs.field(
        default=None,
        metadata=described(
            "Configuration of the judge; without it touchstone's judge does not run.",
            identity=True,
            nullable=True,
        ),
    )
    judge_model: str | None = attrs.field(
        default=None,
        metadata=described(
            "The judge's model id, in place of the judge configuration's.", identity=True, nullable=True
        ),
    )


@attrs.frozen(kw_only=True)
class EntryFields(_Files):
    """One model on one pack, as written."""

    model: ModelSpec = attrs.field(metadata=described("The model: its id, or a mapping.", identity=True))


@attrs.frozen(kw_only=True)
class Matrix(_Files):
    """Entries by rule: every model on every pack with every configuration. Any other key is each entry's."""

    models: tuple[ModelSpec, ...] = attrs.field(
        metadata=described("The models: ids, or mappings as `model` of an entry.", identity=True, min_items=1)
    )
    packs: tuple[str, ...] | None = attrs.field(
        default=None,
        metadata=described("Packs that every model answers; `pack` where it is one.", identity=True, min_items=1),
    )
    configs: tuple[str, ...] | None = attrs.field(
        default=None,
        metadata=described("Configurations for every pack; `config` where it is one.", identity=True, min_items=1),
    )


@attrs.frozen(kw_only=True)
class QueueFile:
    """A whole queue file, as written. It has ``entries``, ``matrix`` or both."""

    defaults: Defaults = attrs.field(factory=Defaults, metadata=described("Settings for every entry.", nullable=True))
    entries: tuple[EntryFields, ...] = attrs.field(
        default=(), metadata=described("What to run, in this order.", min_items=1)
    )
    matrix: Matrix | None = attrs.field(
        default=None,
        metadata=described(
            "More entries, behind `entries`: `models` on `packs` with `configs`; by model, then pack, then config."
        ),
    )
    order: Order = attrs.field(
        default="entries",
        metadata=described(
            "`entries`: one entry after the other. `phases`: every entry's first step, then the later ones grouped"
            " by the model that answers, so that a judge is loaded once."
        ),
    )
    max_failures: int | None = attrs.field(
        default=None,
        metadata=described("End the night when so many entries in a row were not complete; off if absent.", minimum=1),
    )


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
    heartbeat: HeartbeatSpec | None
    restart_command: str | tuple[str, ...] | None
    retries: int
    retry_wait_s: float
    retry_backoff: float
    retry_on: tuple[RetryOn, ...]
    retry_when: RetryWhen
    cooldown_s: float
    env: Mapping[str, str]
    on_dirty: OnDirty
    min_free_mb: float | None = None
    min_free_disk_mb: float | None = None
    require_ac: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """What no two entries may share: (config, pack, model id), as touchstone counts duplicates."""
        return (self.config or "", self.pack or "", self.model.id)


@attrs.frozen(kw_only=True)
class QueueSpec:
    """A resolved queue file with what is needed to report a problem at its line.

    ``marks`` maps a path in the document, for example ``("entries", 2, "reset", "host")``, to the place of
    that value; `mark_of` finds the nearest one. A key that an entry takes from ``defaults`` has its place
    there, one that it has from ``matrix`` in the matrix, and ``reset`` has that of ``reset_command`` where the file
    uses this spelling.
    """

    path: Path
    sha256: str
    entries: tuple[EntrySpec, ...]
    order: Order = "entries"
    max_failures: int | None = None
    marks: Mapping[DocumentPath, Mark] = attrs.field(factory=dict, repr=False)

    def mark_of(self, *path: str | int) -> Mark:
        """The place of a value, or of the nearest thing around it that the file has."""
        return nearest_mark(self.marks, path)

    def where(self, *path: str | int) -> str:
        """The same place in words: ``queue.yaml, entry 2, line 14, column 7``."""
        return place(self.path.name, path, self.mark_of(*path))
