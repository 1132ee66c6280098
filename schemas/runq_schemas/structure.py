"""Plain data of a queue file, or of a plugin's options, into the attrs classes that say what it may be."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import attrs
import cattrs

from runq_schemas.converter import Hook, class_hook, exact_converter
from runq_schemas.document import Document
from runq_schemas.errors import PluginError
from runq_schemas.exact import invalid, list_of, mapping_of, number, refuse_null, text, whole_number
from runq_schemas.place import DocumentPath
from runq_schemas.queue import (
    STEP_ALIASES,
    Defaults,
    EntryFields,
    Matrix,
    ModelSpec,
    PluginUse,
    QueueFile,
)
from runq_schemas.scalar import InvalidValueError, Problem, is_null, to_json

T = TypeVar("T")

_ONLY_IN_ENTRIES = frozenset(attrs.fields_dict(EntryFields)) - frozenset(attrs.fields_dict(Defaults))


class OptionError(PluginError):
    """An option of a plugin is unknown or wrong.

    Args:
        path: where, within the options, for example ``("headers", "X-Key")``.
        message: one sentence without a trailing full stop.
        remedy: what to do next, in the imperative.
    """

    def __init__(self, path: DocumentPath, message: str, remedy: str) -> None:
        super().__init__(message, remedy=remedy)
        self.path = path

    @property
    def problems(self) -> tuple[OptionError, ...]:
        """Every problem found, this one first."""
        return (self,)


class OptionErrors(OptionError):
    """Everything that is wrong with a plugin's options; it reads like the first problem."""

    def __init__(self, problems: Sequence[OptionError]) -> None:
        super().__init__(problems[0].path, problems[0].message, problems[0].remedy)
        self._problems = tuple(problems)

    @property
    def problems(self) -> tuple[OptionError, ...]:
        """Every problem found."""
        return self._problems


def structure_options(cls: type[T], options: Mapping[str, Any]) -> T:
    """A plugin with its options.

    Args:
        cls: an attrs class; its fields are the options. The rules of `runq_schemas.queue.described` in a
            field's metadata are kept as well.
        options: scalars of a queue file, or ordinary Python values.

    Raises:
        OptionErrors: an option is unknown, missing or of a wrong type; it holds every problem.
        NameError: an annotation of the class cannot be resolved.
    """
    try:
        return _options_converter().structure(options, cls)
    except InvalidValueError as error:
        raise OptionErrors(
            [
                OptionError(problem.path, _sentence(problem, problem.path, "the options"), problem.remedy)
                for problem in error.problems
            ]
        ) from error


@functools.cache
def _options_converter() -> cattrs.Converter:
    return exact_converter()


def structure_queue(document: Document) -> QueueFile:
    """A queue file as written.

    Raises:
        QueueFileError: a key is unknown, missing or has a wrong value; it holds every problem.
    """
    try:
        return _queue_converter().structure(document.data, QueueFile)
    except InvalidValueError as error:
        document.refuse([_named(problem) for problem in error.problems])


@functools.cache
def _queue_converter() -> cattrs.Converter:
    converter = exact_converter()
    for cls in (Defaults, EntryFields, Matrix):
        converter.register_structure_hook(cls, _level_hook(converter, cls))
    converter.register_structure_hook(ModelSpec, _model_hook(converter))
    converter.register_structure_hook(QueueFile, _file_hook(converter))
    return converter


def _file_hook(converter: cattrs.Converter) -> Hook:
    """The whole file, which must say what to run."""
    # Where the type alone would take null for a key that is not there.
    hooks: dict[str, Hook] = {
        "defaults": _defaults,
        "matrix": lambda value, _: converter.structure(value, Matrix),
        "max_failures": lambda value, _: whole_number(value),
    }
    inner = class_hook(converter, QueueFile, hooks)

    def structured(value: Any, tp: Any) -> Any:
        problems: list[Problem] = []
        made = None
        try:
            made = inner(value, tp)
        except InvalidValueError as error:
            problems.extend(error.problems)
        if not {"entries", "matrix"} & set(value):
            problems.append(Problem(("entries",), "is missing", "Add `entries:` and a value."))
        if problems:
            raise InvalidValueError(*problems)
        return made

    return structured


def _defaults(value: Any, tp: Any) -> Any:
    # `defaults:` above keys that are all commented out is how a file looks while it is tried.
    return Defaults() if is_null(value) else _queue_converter().structure(value, tp)


def _level_hook(converter: cattrs.Converter, cls: type) -> Hook:
    """``defaults`` or an entry. A key that is there must have a value, except where null means "not given"."""
    hooks: dict[str, Hook] = {"step_timeout_s": _step_timeouts}
    for field in attrs.fields(attrs.resolve_types(cls)):
        if field.name == "probes":
            hooks[field.name] = _probes
        elif "plugin" in field.metadata:
            hooks[field.name] = _plugin_hook(field.metadata["plugin"])
        elif field.metadata.get("nullable"):
            hooks[field.name] = _optional_text
        elif field.name != "step_timeout_s" and field.default is None:
            hooks[field.name] = _given_hook(converter)
    inner = class_hook(converter, cls, hooks)

    def structured(value: Any, tp: Any) -> Any:
        problems: list[Problem] = []
        made = None
        try:
            made = inner(value, tp)
        except InvalidValueError as error:
            problems.extend(error.problems)
        if isinstance(value, Mapping) and "reset" in value and "reset_command" in value:
            message = "`reset` and `reset_command` are two spellings of one key"
            problems.append(Problem(("reset_command",), message, "Remove one of the two.", at_key=True, whole=True))
        for one, several in (("pack", "packs"), ("config", "configs")) if cls is Matrix else ():
            if isinstance(value, Mapping) and one in value and several in value:
                message = f"`{one}` and `{several}` say the same thing"
                problems.append(Problem((one,), message, "Remove one of the two.", at_key=True, whole=True))
        if problems:
            raise InvalidValueError(*problems)
        return made

    return structured


def _given_hook(converter: cattrs.Converter) -> Hook:
    def structured(value: Any, tp: Any) -> Any:
        refuse_null(value)
        return converter.structure(value, tp)

    return structured


def _optional_text(value: Any, _: Any) -> str | None:
    """A path or name that an entry may lack: ``null`` and ``""`` say so, as in touchstone's files."""
    if is_null(value) and value != "":
        return None
    return text(value) or None


def _plugin_hook(key: str) -> Hook:
    def structured(value: Any, _: Any = PluginUse) -> PluginUse:
        if not isinstance(value, Mapping):
            return PluginUse(name=_plugin_name(value, key))
        if key not in value:
            raise invalid(f"does not say which {key}", f"Add `{key}: NAME` to the mapping.")
        try:
            name = _plugin_name(value[key], key)
        except InvalidValueError as error:
            raise InvalidValueError(*(problem.below(key) for problem in error.problems)) from error
        return PluginUse(name=name, options={option: item for option, item in value.items() if option != key})

    return structured


def _plugin_name(value: Any, key: str) -> str:
    if isinstance(value, list):
        raise invalid(f"must be one {key}, not a list", f"Write its name, or a mapping with `{key}`.")
    if is_null(value):
        raise invalid(f"names no {key}", "Write its name, or remove the key; `none` is the reset that does nothing.")
    name = text(value)
    if not name.strip():
        raise invalid(f"names no {key}", "Write its name, or remove the key.")
    return name


def _probes(value: Any, _: Any) -> tuple[PluginUse, ...]:
    one = _plugin_hook("probe")
    return cast("tuple[PluginUse, ...]", list_of(value, lambda item: one(item, PluginUse)))


def _step_timeouts(value: Any, _: Any) -> dict[str, float]:
    seconds = mapping_of(value, number)
    problems = [
        Problem(
            (alias,),
            f"`{alias}` and `{step}` are two spellings of one step",
            "Remove one of the two.",
            at_key=True,
            whole=True,
        )
        for alias, step in STEP_ALIASES.items()
        if alias in seconds and step in seconds
    ]
    if problems:
        raise InvalidValueError(*problems)
    return {STEP_ALIASES.get(step, step): item for step, item in seconds.items()}


def _model_hook(converter: cattrs.Converter) -> Hook:
    known = [field.name for field in attrs.fields(ModelSpec) if field.name != "extra"]
    inner = class_hook(converter, ModelSpec)

    def structured(value: Any, _: Any = ModelSpec) -> Any:
        if isinstance(value, list):
            raise invalid("must be one model, not a list", "Write an entry for each model.")
        if not isinstance(value, Mapping):
            refuse_null(value)
            if not text(value).strip():
                raise invalid("must not be empty", "Write the model's id as the server spells it.")
            return ModelSpec(id=text(value))
        problems: list[Problem] = []
        model: Any = None
        extra: Mapping[str, Any] = {}
        try:
            extra = to_json({key: item for key, item in value.items() if key not in known})
        except InvalidValueError as error:
            problems.extend(error.problems)
        try:
            model = inner({key: item for key, item in value.items() if key in known}, ModelSpec)
        except InvalidValueError as error:
            problems.extend(error.problems)
        if problems:
            raise InvalidValueError(*problems)
        return attrs.evolve(model, extra=extra)

    return structured


def _named(problem: Problem) -> Problem:
    """The problem with a whole sentence for its message; paths begin at the file's root."""
    path = problem.path
    if path[:1] == ("defaults",) and problem.at_key and path[1:] and path[1] in _ONLY_IN_ENTRIES:
        remedy = f"Move `{path[1]}` into the entries; each has its own."
        problem = attrs.evolve(problem, remedy=remedy)
    if path[:1] == ("entries",) and len(path) > 1:
        return attrs.evolve(problem, message=_sentence(problem, path[2:], "the entry"))
    if path[:1] in (("defaults",), ("matrix",)):
        return attrs.evolve(problem, message=_sentence(problem, path[1:], f"`{path[0]}`"))
    return attrs.evolve(problem, message=_sentence(problem, path, "the file"))


def _sentence(problem: Problem, path: DocumentPath, whole: str) -> str:
    if problem.whole:
        return problem.message
    dotted = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    return f"`{dotted}` {problem.message}" if dotted else f"{whole} {problem.message}"
