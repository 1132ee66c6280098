"""Text with `{name}` placeholders, `{{` and `}}` for braces, and nothing else of `str.format`.

`str.format` itself would let a queue file reach into attributes (`{model.__class__}`).
"""

from __future__ import annotations

import string
from collections.abc import Callable


def names_in(template: str) -> tuple[str, ...]:
    """The placeholders of a template, in order.

    Raises:
        ValueError: a brace is alone, or a placeholder is not a plain name.
    """
    found: list[str] = []
    for _, name, form, conversion in _parse(template):
        if name is None:
            continue
        if not name.isidentifier() or form or conversion:
            raise ValueError(f"{template!r}: write a placeholder as {{name}} and a brace as {{{{ or }}}}")
        found.append(name)
    return tuple(found)


def fill(template: str, value: Callable[[str], str]) -> str:
    """The text with every placeholder replaced.

    Raises:
        ValueError: as `names_in`; and whatever ``value`` raises for a name.
    """
    names_in(template)
    return "".join(text + ("" if name is None else value(name)) for text, name, _, _ in _parse(template))


def _parse(template: str) -> list[tuple[str, str | None, str | None, str | None]]:
    try:
        return list(string.Formatter().parse(template))
    except ValueError:
        raise ValueError(f"{template!r}: write a placeholder as {{name}} and a brace as {{{{ or }}}}") from None
