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

Json = Any
"""A JSON value: null, boolean, number, string, list or mapping with string keys."""

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


def described(text: str, *, identity: bool = False, **rules: Any) -> dict[str, Any]:
    """Metadata of a queue key or a plugin option.

    Args:
        text: what the key means, with its unit.
        identity: whether a step's identity depends on it.
        rules: what the parser enforces and the JSON Schema states: ``minimum`` (at least), ``above`` (more
            than), ``min_length`` (characters), ``min_items``, ``nullable`` (``null`` means not given),
            ``plugin`` (the key that names the plugin in a mapping), ``built_in`` (the value where neither the
            entry nor ``defaults`` has the key).
    """
    return {"description": text, "identity": identity, **rules}


@attrs.frozen(kw_only=True)
class SettleSpec:
    """When memory counts as back. The defaults are touchstone's."""

    timeout_s: float = attrs.field(
        default=120.0, metadata=described("Give up after so many seconds without proof.", above=0)
    )
    plateau_polls: int = attrs.field(
        default=3, metadata=described("Flat intervals between readings that make a plateau.", minimum=1)
    )
    poll_interval_s: float = attrs.field(default=2.0, metadata=described("Seconds between two readings.", above=0))
    epsilon_mb: float = attrs.field(
        default=200.0,
        metadata=described("Readings within so many MB (2**20 bytes) count as the same.", above=0),
    )


@attrs.frozen(kw_only=True)
class ModelSpec:
    """One model as touchstone describes it; ``extra`` holds fields that runq does not know."""

    id: str = attrs.field(
        metadata=described("The model's id, exactly as the server spells it.", identity=True, min_length=1)
    )
    quant: str = attrs.field(default="", metadata=described("Quantisation, for the record.", identity=True))
    max_tokens_default: int = attrs.field(
        default=400,
        metadata=described("Tokens an answer may have where the prompt does not say.", identity=True),
    )
    reasoning_headroom_tokens: int = attrs.field(
        default=0, metadata=described("Tokens added for a thinking model's reasoning.", identity=True)
    )
    extra_body: Mapping[str, Json] = attrs.field(
        factory=dict,
        metadata=described("Sent to the server with every request, JSON types kept.", identity=True),
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
    retries: int
    retry_wait_s: float
    retry_backoff: float
    retry_on: tuple[RetryOn, ...]
    retry_when: RetryWhen
    cooldown_s: float
    env: Mapping[str, str]
    on_dirty: OnDirty

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
    max_failures: int | None = None
    marks: Mapping[DocumentPath, Mark] = attrs.field(factory=dict, repr=False)

    def mark_of(self, *path: str | int) -> Mark:
        """The place of a value, or of the nearest thing around it that the file has."""
        return nearest_mark(self.marks, path)

    def where(self, *path: str | int) -> str:
        """The same place in words: ``queue.yaml, entry 2, line 14, column 7``."""
        return place(self.path.name, path, self.mark_of(*path))
