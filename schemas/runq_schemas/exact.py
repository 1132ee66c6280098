"""Readers of values that coerce nothing: ``"false"`` is no boolean, 3.9 no whole number, nothing no text.

Each takes scalars of a queue file (`Scalar`) as well as Python's own values, and raises `InvalidValueError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runq_schemas.scalar import InvalidValueError, Problem, Scalar, is_null, plain_value


def invalid(message: str, remedy: str = "", *path: str | int) -> InvalidValueError:
    """One problem with a value, as an exception."""
    return InvalidValueError(Problem(path, message, remedy))


def shown(value: object) -> str:
    """A value as messages name it."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, str):
        short = value if len(value) <= 40 else value[:37] + "..."
        return f"`{short}`" if isinstance(value, Scalar) and value.plain else f'the text "{short}"'
    return f"`{value}`"


def refuse_null(value: object) -> None:
    """Refuse a key with nothing behind it: forgotten, or meant as text.

    Raises:
        InvalidValueError: the value is a plain ``null``, ``~`` or nothing.
    """
    if not is_null(value):
        return
    if value is None or value == "":
        raise invalid("has no value", "Write a value, or remove the key.")
    raise invalid(f"is {value}, which is no value", f'Write a value, "{value}" in quotes, or remove the key.')


def any_text(value: Any, _: Any = str) -> str:
    """The text of any scalar, also of one that looks like a number, a boolean or nothing."""
    if isinstance(value, Mapping | list | tuple):
        raise invalid(f"must be text, not {shown(value)}", "Write one value; put it in quotes if it has brackets.")
    if not isinstance(value, str):
        raise invalid(f"must be text, not {shown(value)}", "Write it as text.")
    if "\0" in value:
        raise invalid("holds a NUL character", "Remove the `\\0`; no path, argument or variable can hold it.")
    return str(value)


def text(value: Any, _: Any = str) -> str:
    """The text of a scalar that is there."""
    refuse_null(value)
    return any_text(value)


def _plain(value: Any, wanted: str) -> Any:
    """What a plain scalar means; Python's own values as they are; quoted text never."""
    refuse_null(value)
    if isinstance(value, Scalar) and value.plain:
        return plain_value(value)
    if isinstance(value, str) and not isinstance(plain_value(value or "x"), str):
        raise invalid(f"must be {wanted}, not {shown(value)}", "Remove the quotes.")
    return value


def whole_number(value: Any, _: Any = int) -> int:
    """A whole number; never a rounded one."""
    found = _plain(value, "a whole number")
    if isinstance(found, bool) or not isinstance(found, int):
        raise invalid(f"must be a whole number, not {shown(value)}", "Write digits only, for example 3.")
    return found


def number(value: Any, _: Any = float) -> float:
    """A finite number."""
    found = _plain(value, "a number")
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise invalid(f"must be a number, not {shown(value)}", "Write a number without a unit, for example 120.")
    if not math.isfinite(found):
        raise invalid(f"must be a finite number, not {found}", "Write a finite number.")
    return float(found)


def truth(value: Any, _: Any = bool) -> bool:
    """A boolean."""
    found = _plain(value, "true or false")
    if not isinstance(found, bool):
        raise invalid(f"must be true or false, not {shown(value)}", "Write true or false, without quotes.")
    return found


def require_mapping(value: object) -> None:
    """Refuse what is no mapping.

    Raises:
        InvalidValueError: it is text or a list.
    """
    refuse_null(value)
    if not isinstance(value, Mapping):
        raise invalid(f"must be a mapping, not {shown(value)}", "Write `key: value` pairs, indented below it.")


def mapping_of(value: Any, hook: Callable[[Any], Any]) -> dict[str, Any]:
    """A mapping with every value structured; every problem is found."""
    require_mapping(value)
    return dict(_each(value.items(), hook))


def list_of(value: Any, hook: Callable[[Any], Any]) -> tuple[Any, ...]:
    """A list with every item structured; every problem is found."""
    refuse_null(value)
    if not isinstance(value, list | tuple):
        advice = "Write a list" if isinstance(value, Mapping) else f"Write `[{value}]`"
        raise invalid(f"must be a list, not {shown(value)}", f"{advice}.")
    return tuple(item for _, item in _each(enumerate(value), hook))


def _each(items: Iterable[tuple[Any, Any]], hook: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    done: list[tuple[Any, Any]] = []
    problems: list[Problem] = []
    for key, item in items:
        try:
            done.append((str(key) if isinstance(key, str) else key, hook(item)))
        except InvalidValueError as error:
            problems.extend(problem.below(key) for problem in error.problems)
    if problems:
        raise InvalidValueError(*problems)
    return done


def bounded(hook: Callable[[Any, Any], Any], tp: Any, rules: Mapping[str, Any]) -> Callable[[Any, Any], Any]:
    """A hook that also keeps a field's rules (see `runq_schemas.queue.described`)."""

    def structured(value: Any, _: Any) -> Any:
        made = hook(value, tp)
        problems = _broken(made, rules)
        if problems:
            raise InvalidValueError(*problems)
        return made

    return structured


def _broken(value: Any, rules: Mapping[str, Any]) -> list[Problem]:
    if isinstance(value, Mapping):
        return [problem.below(key) for key, item in value.items() for problem in _broken(item, rules)]
    if isinstance(value, int | float):
        least, above = rules.get("minimum"), rules.get("above")
        if least is not None and value < least:
            return [Problem((), f"must be at least {least}, not {value:g}", f"Write {least} or more.")]
        if above is not None and value <= above:
            return [Problem((), f"must be more than {above}, not {value:g}", f"Write a number above {above}.")]
    if isinstance(value, str) and len(value.strip()) < rules.get("min_length", 0):
        return [Problem((), "must not be empty", "Write its text.")]
    if isinstance(value, tuple) and len(value) < rules.get("min_items", 0):
        return [Problem((), "must not be empty", "Write at least one item.")]
    return []
