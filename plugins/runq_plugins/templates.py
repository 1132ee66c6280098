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
    return tuple(name for _, name in _parse(template) if name is not None)


def fill(template: str, value: Callable[[str], str]) -> str:
    """The text with every placeholder replaced.

    Raises:
        ValueError: as `names_in`; and whatever ``value`` raises for a name.
    """
    return "".join(text + ("" if name is None else value(name)) for text, name in _parse(template))


def _parse(template: str) -> list[tuple[str, str | None]]:
    """Each text with the placeholder behind it; ``None`` where the template ends."""
    found: list[tuple[str, str | None]] = []
    wrong = f"{template!r}: write a placeholder as {{name}} and a brace as {{{{ or }}}}"
    try:
        for text, name, form, conversion in string.Formatter().parse(template):
            if name is not None and (not name.isidentifier() or form or conversion):
                raise ValueError(wrong)
            found.append((text, name))
    except ValueError:
        raise ValueError(wrong) from None
    return found
