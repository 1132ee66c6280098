"""Keeps secrets out of the journal, and so out of everything that is derived from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

import attrs

HIDDEN = "***"

_SECRET_NAME = re.compile(
    r"(?:(?:^|[-_.])(?:api[-_]?key|key|token|secret|authorization|bearer)|pass(?:word|wd|phrase))$", re.IGNORECASE
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

MIN_SECRET_CHARS = 6
"""A shorter value is too common in ordinary text to be replaced everywhere (``true``, ``1234``)."""

_NOT_SECRET = frozenset(
    {"not-needed", "ollama", "lm-studio", "lmstudio", "no-key", "sk-no-key-required", "placeholder"}
)
"""What the manuals of local servers tell people to write where a client insists on a key. Hidden by value, ``ollama``
would vanish from the name of the backend and from every path that has it."""

# Secrets inside a text: `--api-key X`, `HF_TOKEN=X`, `Authorization: Bearer X`, `http://user:X@host`. A value ends at
# white space, or at the quote it begins with. The last group is the secret.
_VALUE = r"(\"[^\"]*\"|'[^']*'|[^\s\"'&]+)"
_OPTION = re.compile(rf"(?<!\S)(--?[A-Za-z][\w.-]*)([ \t]+|=){_VALUE}")
_ASSIGNED = re.compile(rf"(?<![\w.-])([A-Za-z_][\w.-]*)(=){_VALUE}")
_HEADER = re.compile(
    r"(?<![\w-])((?:proxy-)?authorization|x-api-key|api-key)"
    r"([ \t]*:[ \t]*(?:(?:bearer|basic|token)[ \t]+)?)([^\s\"']+)",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"(://)([^/\s:@]*:)([^/\s@]+)(?=@)")
_NAME_PARTS = ("key", "token", "secret", "authorization", "bearer", "pass")
"""Without one of these in it, in small letters, no name is a secret's and no header holds one."""

# Each with a text it cannot match without: a look for that costs a fiftieth of a search by the pattern.
_NAMED = ((_OPTION, "-"), (_ASSIGNED, "="), (_HEADER, ":"), (_USER_INFO, "://"))
_SCHEME = re.compile(r"(?:bearer|basic|token)\s+(\S+)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a variable, option or mapping key of this name holds a secret.

    True for ``OPENAI_API_KEY``, ``HF_TOKEN``, ``api_key``, ``apiKey``, ``PGPASSWORD``, ``Authorization``,
    ``--api-key``; False for ``api_key_file`` (a path) and ``max_tokens``.
    """
    return bool(_SECRET_NAME.search(_CAMEL.sub("_", name.lstrip("-"))))


def secret_values(*mappings: Mapping[str, Any]) -> frozenset[str]:
    """The values of all secret-looking names in environments or (nested) option mappings, command lines included."""
    return frozenset(
        value
        for mapping in mappings
        for found in _found(mapping, secret=False)
        for value in _forms(found)
        if len(value) >= MIN_SECRET_CHARS and value not in _NOT_SECRET
    )


def _found(value: Any, *, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _found(inner, secret=secret or is_secret_name(str(name)))
    elif isinstance(value, list | tuple):
        for word, follows in _after_options(value):
            yield from _found(word, secret=secret or follows)
    elif secret and _is_scalar(value):
        yield str(value)
    elif isinstance(value, str):
        for pattern, _ in _NAMED:
            yield from (match[3].strip("\"'") for match in pattern.finditer(value) if _names_secret(match))


def _forms(value: str) -> Iterator[str]:
    """A secret as it may turn up: whole, without its scheme, inside JSON, and line by line (logs are read so)."""
    yield value
    yield from (json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False))
    scheme = _SCHEME.fullmatch(value)
    if scheme:
        yield scheme[1]
    if "\n" in value:
        yield from (line.strip() for line in value.splitlines())


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""


def _after_options(words: Iterable[Any]) -> Iterator[tuple[Any, bool]]:
    """Each word of a command line, and whether it is the value of a secret option before it."""
    follows = False
    for word in words:
        option = isinstance(word, str) and word.startswith("-")
        yield word, follows and not option
        follows = option and "=" not in word and is_secret_name(word)


def _names_secret(match: re.Match[str]) -> bool:
    # A bare `key=` is an argument's name in half of all tracebacks.
    return match.re in (_HEADER, _USER_INFO) or (match[1].lower() != "key" and is_secret_name(match[1]))


def _hidden(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{HIDDEN}" if _names_secret(match) else match[0]


@attrs.frozen(slots=False)
class Redactor:
    """Replaces secrets in JSON data: by the name of a key, by the option before a word, and by value."""

    values: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *mappings: Mapping[str, Any], plain: Iterable[str] = ()) -> Redactor:
        """A redactor that knows the secrets of these environments and options.

        Args:
            plain: texts that must stay as they are: paths that a resume needs, names of models. A value that is part of
                one (``OPENAI_API_KEY=local-llm`` in a folder ``local-llm``) is no secret.
        """
        texts = tuple(plain)
        return cls(frozenset(v for v in secret_values(*mappings) if not any(v in text for text in texts)))

    @cached_property
    def _known(self) -> re.Pattern[str] | None:
        # The longest first: of a secret that begins with another one nothing may be left over.
        longest_first = sorted(self.values, key=lambda value: (-len(value), value))
        return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        """The text with every known secret value replaced, and whatever a name in it says is one."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for pattern, part in _NAMED:
            if part in text:
                text = pattern.sub(_hidden, text)
        return text

    def suspects(self, json_text: str) -> bool:
        """Whether data of this ASCII JSON text might hold a secret; where not, the data would come back unchanged.

        Most events hold nothing that even looks like one, and this costs a tenth of going through their data.
        """
        small = json_text.lower().replace(
            "tokens", ""
        )  # a count (`max_tokens`) is in every model's settings, no secret
        return (
            any(part in small for part in _NAME_PARTS)
            or "\\u" in small  # another script's letter may count as one of ours
            or _USER_INFO.search(json_text) is not None
            or (self._known is not None and self._known.search(json_text) is not None)
        )

    def __call__(self, data: Any) -> Any:
        """The data with secrets replaced; the input is not changed."""
        return self._redacted(data, secret=False)

    def _redacted(self, data: Any, *, secret: bool) -> Any:
        if isinstance(data, str):  # the most common by far
            return HIDDEN if secret and data != "" else self.text(data)
        if data is None or isinstance(data, bool):
            return data
        if isinstance(data, Mapping):
            return {
                self.text(key) if isinstance(key, str) else key: self._redacted(
                    value, secret=secret or is_secret_name(str(key))
                )
                for key, value in data.items()
            }
        if isinstance(data, list | tuple):
            return [self._redacted(word, secret=secret or follows) for word, follows in _after_options(data)]
        return HIDDEN if secret and _is_scalar(data) else data
