"""Scalars of a queue file: text that knows how it was written, and what plain text means.

touchstone reads its files by YAML 1.1's rules (``yes`` is a boolean), editors by YAML 1.2's (``0o17`` is a
number). A scalar means what either says; where they disagree on a number (``010`` is eight in one and ten in
the other) the file is refused rather than guessed at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import attrs

from runq_schemas.place import DocumentPath
from runq_schemas.queue import Json

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
"""Plain spellings of "no value", the empty one included (YAML 1.1 and 1.2)."""

# YAML 1.1 as its common reader (PyYAML) has it: without the single letters y and n.
_BOOLS: Mapping[str, bool] = {
    spelling: value
    for words, value in ((("true", "yes", "on"), True), (("false", "no", "off"), False))
    for word in words
    for spelling in (word, word.capitalize(), word.upper())
}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9_]+")
_GROUPED = re.compile(r"[-+]?[1-9][0-9]*_[0-9_]*")
_BASED_INT = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_MAX_DIGITS = 300
"""Longer numbers are no setting of anything, and Python refuses to read whole ones beyond 4,300 digits."""


class Scalar(str):
    """A scalar's text. ``plain``: written neither in quotes nor as a block, so it may mean more than text."""

    __slots__ = ("plain",)
    plain: bool

    def __new__(cls, text: str, *, plain: bool = True) -> Scalar:
        """The text, and how it was written."""
        self = super().__new__(cls, text)
        self.plain = plain
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, bool]]:
        """What copies and pickles are made from."""
        return (str(self),), {"plain": self.plain}


@attrs.frozen
class Problem:
    """One thing wrong with a value.

    Args:
        path: where, relative to the value that was read.
        message: what; a predicate of the key ("must be ...") unless ``whole``.
        remedy: what to do about it, in the imperative.
        at_key: the key is at fault, not its value.
        whole: ``message`` is a whole sentence.
    """

    path: DocumentPath
    message: str
    remedy: str = ""
    at_key: bool = False
    whole: bool = False

    def below(self, *path: str | int) -> Problem:
        """The same problem as seen from further up."""
        return attrs.evolve(self, path=(*path, *self.path))


class InvalidValueError(ValueError):
    """A value that cannot be what its place asks for, with everything that is wrong with it."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


def is_null(value: object) -> bool:
    """Whether the value is a plain ``null``, ``~`` or nothing at all."""
    return value is None or (isinstance(value, Scalar) and value.plain and value in NULLS)


def to_json(value: object) -> Json:
    """A free-form value as JSON data: what a server is sent.

    Quoted and block scalars are strings. Of the plain ones ``null``, ``~`` and nothing are null; ``true``,
    ``yes``, ``on`` and their opposites are booleans; whole numbers (also ``0x`` and ``0o``) and finite
    decimal numbers (also ``1e-3`` and ``.5``) are numbers; everything else is a string. Mapping keys are
    text. Python's own JSON values are taken as they are.

    Raises:
        InvalidValueError: a number that JSON does not have, or that two readers would read differently; it
            holds every such problem.
    """
    problems: list[Problem] = []
    data = _json(value, (), problems)
    if problems:
        raise InvalidValueError(*problems)
    return data


def _json(value: object, path: DocumentPath, problems: list[Problem]) -> Json:
    if isinstance(value, Mapping):
        return {str(key): _json(item, (*path, str(key)), problems) for key, item in value.items()}
    if isinstance(value, Scalar):
        try:
            return plain_value(value) if value.plain else str(value)
        except InvalidValueError as error:
            problems.extend(problem.below(*path) for problem in error.problems)
            return None
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_json(item, (*path, index), problems) for index, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        problems.append(Problem(path, f"is {value}, which is not a finite number", "Write a finite number."))
    elif not (value is None or isinstance(value, str | int | float)):
        problems.append(Problem(path, f"is a {type(value).__name__}, which JSON does not have"))
    return value


def plain_value(text: str) -> bool | int | float | str | None:
    """What a plain scalar means.

    Raises:
        InvalidValueError: it is not a finite number, or readers of YAML disagree about which number it is.
    """
    if text in NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    # Nothing else begins a number, and most scalars are words.
    if text[0] not in "0123456789.+-":
        return str(text)
    if len(text) > _MAX_DIGITS and (_INT.fullmatch(text) or _FLOAT.fullmatch(text) or _BASED_INT.fullmatch(text)):
        raise InvalidValueError(
            Problem((), f"is a number of {len(text)} characters", "Write a shorter number, or put it in quotes.")
        )
    if _INT.fullmatch(text):
        return int(text)
    if _LEADING_ZERO.fullmatch(text) or _GROUPED.fullmatch(text):
        number = text.replace("_", "").lstrip("+-").lstrip("0") or "0"
        sign = "-" if text[0] == "-" else ""
        raise InvalidValueError(
            Problem(
                (),
                f"is {text}, which readers of YAML understand differently",
                f'Write {sign}{number} if a number is meant, or "{text}" in quotes if text is.',
            )
        )
    if _BASED_INT.fullmatch(text):
        return int(text, 0)
    if _NOT_FINITE.fullmatch(text):
        raise _not_finite(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if not math.isfinite(value):
            raise _not_finite(text)
        return value
    return str(text)


def _not_finite(text: str) -> InvalidValueError:
    return InvalidValueError(
        Problem(
            (),
            f"is {text}, which is not a finite number",
            f'Write a finite number, or "{text}" in quotes if text is meant.',
        )
    )
