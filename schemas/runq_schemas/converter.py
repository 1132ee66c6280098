"""A cattrs converter that coerces nothing and reports everything.

cattrs alone turns ``"false"`` into True and 3.9 into 3; the hooks here are exact instead. What is wrong in a
class comes out of cattrs as an exception group whose notes name the fields; it is turned into one
`InvalidValueError` with every problem at its path, so that a user mends a file in one go.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from runq_schemas.errors import RunqError
from runq_schemas.exact import (
    any_text,
    bounded,
    invalid,
    list_of,
    mapping_of,
    number,
    require_mapping,
    shown,
    text,
    truth,
    whole_number,
)
from runq_schemas.scalar import InvalidValueError, Problem, is_null, to_json

Hook = Callable[[Any, Any], Any]

_MAPPINGS = (dict, Mapping, MutableMapping)
_SEQUENCES = (tuple, list, Sequence)
_SCALARS: Mapping[Any, tuple[Hook, str]] = {
    bool: (truth, "true or false"),
    int: (whole_number, "a whole number"),
    float: (number, "a number"),
    str: (text, "text"),
}
"""In the order in which the members of a union are tried: ``8080`` is a number before it is text."""


def _origin(tp: Any) -> Any:
    return get_origin(tp)


def exact_converter() -> cattrs.Converter:
    """A converter for attrs classes.

    Their fields may be text, numbers, booleans, ``Literal``, lists, mappings, attrs classes, unions of these,
    and free-form JSON (``Any``). A plain ``null`` is None where None is allowed.
    """
    converter = cattrs.Converter(detailed_validation=True, forbid_extra_keys=True)
    for scalar, (hook, _) in _SCALARS.items():
        converter.register_structure_hook(scalar, hook)
    converter.register_structure_hook_func(lambda tp: tp is Any, lambda value, _: to_json(value))
    converter.register_structure_hook_factory(
        lambda tp: isinstance(tp, type) and attrs.has(tp), lambda cls: class_hook(converter, cls)
    )
    converter.register_structure_hook_factory(
        lambda tp: _origin(tp) in _SEQUENCES, lambda tp: _sequence_hook(converter, tp)
    )
    converter.register_structure_hook_factory(
        lambda tp: _origin(tp) in _MAPPINGS, lambda tp: _mapping_hook(converter, tp)
    )
    converter.register_structure_hook_factory(lambda tp: _origin(tp) is Literal, _literal_hook)
    converter.register_structure_hook_factory(
        lambda tp: _origin(tp) in (Union, types.UnionType), lambda tp: _union_hook(converter, tp)
    )
    return converter


def class_hook(converter: cattrs.Converter, cls: type, hooks: Mapping[str, Hook] | None = None) -> Hook:
    """Structures an attrs class from a mapping; unknown keys are an error, an instance is taken as it is.

    Args:
        converter: structures the fields.
        cls: the class.
        hooks: fields with a hook of their own, in place of their type's.
    """
    attrs.resolve_types(cls)
    overrides = {
        field.name: override(
            struct_hook=bounded((hooks or {}).get(field.name, converter.structure), field.type, field.metadata)
        )
        for field in attrs.fields(cls)
        if field.init
    }
    options: dict[str, Any] = {"_cattrs_forbid_extra_keys": True, "_cattrs_use_alias": True, **overrides}
    inner: Any = make_dict_structure_fn(cls, converter, **options)

    def structured(value: Any, _: Any = cls) -> Any:
        if isinstance(value, cls):
            return value
        require_mapping(value)
        try:
            return inner(value, cls)
        except ClassValidationError as group:
            raise InvalidValueError(*_problems(group, cls)) from group

    return structured


def _problems(group: ClassValidationError, cls: type) -> list[Problem]:
    # The key of a field is its alias: a plugin may need the option's own name for a method.
    aliases = {field.name: field.alias or field.name for field in attrs.fields(cls) if field.init}
    names = list(aliases.values())
    noted, others = group.group_exceptions()
    problems: list[Problem] = []
    for error, note in noted:
        if isinstance(error, InvalidValueError):
            problems.extend(problem.below(aliases[note.name]) for problem in error.problems)
        else:  # cattrs looks a field up that the mapping does not have
            key = aliases[note.name]
            problems.append(Problem((key,), "is missing", f"Add `{key}:` and a value."))
    for error in others:
        if isinstance(error, ForbiddenExtraKeysError):
            problems.extend(unknown_key(str(key), names) for key in error.extra_fields)
        else:
            problems.append(_refused(error, names))
    return problems


def unknown_key(key: str, known: Sequence[str]) -> Problem:
    """The problem of a key that nobody knows, with the nearest that somebody does."""
    near = get_close_matches(key, known, n=1)
    if near:
        remedy = f"Did you mean `{near[0]}`?"
    elif known:
        remedy = f"Known here: {', '.join(known)}."
    else:
        remedy = "There is none to give here; remove it."
    return Problem((key,), f"`{key}` is not a key that is known here", remedy, at_key=True, whole=True)


def _refused(error: Exception, names: Sequence[str]) -> Problem:
    """What a class itself refuses: attrs validators, whose message by custom begins with the field's name."""
    message = error.message if isinstance(error, RunqError) else str(error.args[0] if error.args else error)
    remedy = error.remedy if isinstance(error, RunqError) else "Correct the value."
    first = message.partition(" ")[0].strip("'`\":,")
    return Problem((first,) if first in names else (), message, remedy, whole=True)


def _sequence_hook(converter: cattrs.Converter, tp: Any) -> Hook:
    item = get_args(tp)[0]
    build = list if _origin(tp) is list else tuple
    return lambda value, _: build(list_of(value, lambda one: converter.structure(one, item)))


def _mapping_hook(converter: cattrs.Converter, tp: Any) -> Hook:
    item = get_args(tp)[1]
    # A variable's or header's value is text whatever it looks like: `DEBUG: true`, `FLAG:`.
    hook = any_text if item is str else lambda one: converter.structure(one, item)
    return lambda value, _: mapping_of(value, hook)


def _literal_hook(tp: Any) -> Hook:
    words = [word for word in get_args(tp) if isinstance(word, str)]

    def structured(value: Any, _: Any) -> Any:
        chosen = text(value)
        if chosen in words:
            return chosen
        near = get_close_matches(chosen, words, n=1)
        remedy = f"Did you mean `{near[0]}`?" if near else f"Write one of them: {', '.join(words)}."
        raise invalid(f"must be {' or '.join(words)}, not {shown(value)}", remedy)

    return structured


def _union_hook(converter: cattrs.Converter, tp: Any) -> Hook:
    members = [member for member in get_args(tp) if member is not types.NoneType]
    optional = len(members) < len(get_args(tp))

    def structured(value: Any, _: Any) -> Any:
        # An empty value is not taken for None: it is as likely a forgotten one.
        if optional and is_null(value) and value != "":
            return None
        fitting = members if len(members) == 1 else _of_shape(members, value)
        errors: list[InvalidValueError] = []
        for member in fitting:
            try:
                return converter.structure(value, member)
            except InvalidValueError as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        wanted = " or ".join(dict.fromkeys(_in_words(member) for member in members))
        raise invalid(f"must be {wanted}, not {shown(value)}", f"Write {wanted}.")

    return structured


def _of_shape(members: Sequence[Any], value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return [member for member in members if _in_words(member) == "a mapping"]
    if isinstance(value, list | tuple):
        return [member for member in members if _in_words(member) == "a list"]
    ordered = [scalar for scalar in _SCALARS if scalar in members]
    literals = [member for member in members if _origin(member) is Literal]
    return [*literals, *ordered] + [m for m in members if attrs.has(m) and isinstance(value, m)]


def _in_words(member: Any) -> str:
    if member in _SCALARS:
        return _SCALARS[member][1]
    if _origin(member) is Literal:
        return " or ".join(str(word) for word in get_args(member))
    return "a list" if _origin(member) in _SEQUENCES else "a mapping"
