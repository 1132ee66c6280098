"""Keeps secrets out of the journal, and so out of everything that is derived from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

HIDDEN = "***"

_SECRET_NAME = re.compile(
    r"(?:^|[-_.])(?:api[-_]?key|key|token|secret|password|passwd|authorization|bearer)$", re.IGNORECASE
)

MIN_SECRET_CHARS = 6
"""A shorter value is too common in ordinary text to be replaced everywhere (``true``, ``1234``)."""

_NOT_SECRET = frozenset({"not-needed"})  # touchstone's default for a server without keys


def is_secret_name(name: str) -> bool:
    """Whether a variable, option or mapping key of this name holds a secret.

    True for ``OPENAI_API_KEY``, ``HF_TOKEN``, ``api_key``, ``Authorization``, ``--api-key``; False for
    ``api_key_file`` (a path) and ``max_tokens``.
    """
    return bool(_SECRET_NAME.search(name.lstrip("-")))


def secret_values(*mappings: Mapping[str, Any]) -> frozenset[str]:
    """The values of all secret-looking names in environments or (nested) option mappings."""
    found: set[str] = set()

    def walk(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk(str(key), inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                walk(name, inner)
        elif (
            isinstance(value, str)
            and is_secret_name(name)
            and len(value) >= MIN_SECRET_CHARS
            and value not in _NOT_SECRET
        ):
            found.add(str(value))

    for mapping in mappings:
        walk("", mapping)
    return frozenset(found)


@attrs.frozen
class Redactor:
    """Replaces secrets in JSON data: by the name of a key, by the option before a word, and by value."""

    values: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *mappings: Mapping[str, Any]) -> Redactor:
        """A redactor that knows the secrets of these environments and options."""
        return cls(secret_values(*mappings))

    def text(self, text: str) -> str:
        """The text with every known secret value replaced."""
        for value in self.values:
            if value in text:
                text = text.replace(value, HIDDEN)
        return text

    def __call__(self, data: Any) -> Any:
        """The data with secrets replaced; the input is not changed."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, Mapping):
            return {
                key: HIDDEN if is_secret_name(str(key)) and isinstance(value, str) and value else self(value)
                for key, value in data.items()
            }
        if isinstance(data, list | tuple):
            return self._words(data)
        return data

    def _words(self, words: Iterable[Any]) -> list[Any]:
        result: list[Any] = []
        hide_next = False
        for word in words:
            if isinstance(word, str) and word.startswith("-"):
                option, equals, value = word.partition("=")
                secret = is_secret_name(option)
                result.append(f"{option}={HIDDEN}" if secret and equals and value else self.text(word))
                hide_next = secret and not equals
                continue
            result.append(HIDDEN if hide_next and isinstance(word, str) else self(word))
            hide_next = False
        return result
