"""The words of a command line: placeholders filled, and scripts told from settings."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from runq.plugin import Entry, PluginError
from runq_plugins.harness.interpreter import find_python
from runq_plugins.templates import fill


@attrs.frozen
class Filler:
    """Fills placeholders for one step of one entry; while planning there is no bundle yet, then a stand-in is used."""

    entry: Entry
    step: str
    bundle: Path | None
    endpoint: str | None = None

    def __call__(self, template: str) -> str:
        """The text with its placeholders filled.

        Raises:
            PluginError: one is unknown, or the entry has no value for it.
        """
        return fill(template, self._value)

    def _value(self, name: str) -> str:
        if name not in KNOWN:
            known = ", ".join(f"{{{known}}}" for known in KNOWN)
            raise PluginError(
                f"step {self.step!r}: {{{name}}} is not a placeholder",
                remedy=f"known are {known}; write a brace as {{{{ or }}}}",
            )
        value = KNOWN[name](self)
        if value is None:
            owner = "harness" if name == "endpoint" else "entry"
            raise PluginError(
                f"step {self.step!r} uses {{{name}}}, but the {owner} has no {name}",
                remedy=f"add `{name}: ...` to the {owner}, or drop the placeholder",
            )
        return str(value)


KNOWN: Mapping[str, Callable[[Filler], object]] = {
    "model": lambda of: of.entry.model.id,
    "model_json": lambda of: json.dumps(of.entry.model.as_written()),
    "config": lambda of: of.entry.config,
    "pack": lambda of: of.entry.pack,
    "judge_config": lambda of: of.entry.judge_config,
    "judge_model": lambda of: of.entry.judge_model,
    "bundle": lambda of: of.bundle or "<bundle>",
    "base_dir": lambda of: of.entry.base_dir,
    "entry": lambda of: of.entry.id,
    "endpoint": lambda of: of.endpoint,
    "python": lambda of: find_python(None, of.entry.base_dir),
}
"""The placeholders, each with what stands for it; worked out only where a word asks for it."""


def _parts(word: str) -> tuple[str, str]:
    """An option and its value: ``--rubric=r.md`` is ``--rubric=`` and ``r.md``; any other word is all value."""
    head, separator, tail = word.partition("=")
    return (head + separator, tail) if word.startswith("-") and separator else ("", word)


def _inside(word: str, base_dir: Path) -> Path | None:
    """The path a word names when it lies in the queue's folder; links are not followed, ``..`` is."""
    if not word or "\0" in word:
        return None
    path = Path(os.path.normpath(base_dir / word))
    return path if path.is_relative_to(base_dir) and path != base_dir else None


def script_files(argv: Sequence[str], fill_word: Callable[[str], str], base_dir: Path) -> Mapping[str, Path]:
    """The words that name existing files of the queue's folder: a changed script is another step.

    Words with placeholders other than ``{base_dir}`` are left out: config and pack are read anyway, and a bundle's
    files are results.
    """
    found: dict[str, Path] = {}
    for word in argv:
        value = _parts(word)[1]
        if "{" in value.replace("{base_dir}", "").replace("{{", ""):
            continue
        path = _inside(fill_word(value), base_dir)
        if path is not None and path.is_file():
            found[word] = path
    return found


def identity_words(argv: Sequence[str], scripts: Mapping[str, Path], base_dir: Path) -> list[str]:
    """The command line as part of a step's identity: no place in it, so that a moved folder keeps its results.

    A script becomes its role, since its content counts; a path inside the queue's folder becomes relative; another
    absolute path that exists becomes its last part. Every other word stays: ``/v1/chat`` is no file.
    """
    roles = {path: f"<file {number}>" for number, path in enumerate(dict.fromkeys(scripts.values()), start=1)}
    words: list[str] = []
    for word in argv:
        option, value = _parts(word)
        if word in scripts:
            words.append(option + roles[scripts[word]])
        elif value.startswith("/") and (inside := _inside(value, base_dir)) is not None:
            words.append(f"{option}{{base_dir}}/{inside.relative_to(base_dir).as_posix()}")
        elif value.startswith("/") and Path(value).exists():
            words.append(f"{option}<path>/{Path(value).name}")
        else:
            words.append(word)
    return words
