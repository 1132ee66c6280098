"""The text of a queue file as plain data, with the exact place of every key and value.

strictyaml decides what is refused; but the lines of its messages are counted in a document it has written
anew, and are wrong after ``---``, a long quoted text or a flow collection over several lines. So the nodes
that its bundled ruamel composes from the file itself give the places, and every refusal is met there first.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NoReturn

import attrs
from strictyaml import ruamel
from strictyaml.parser import StrictYAMLLoader
from strictyaml.ruamel.error import MarkedYAMLError, YAMLError
from strictyaml.ruamel.events import AliasEvent
from strictyaml.ruamel.nodes import MappingNode, ScalarNode

from runq_schemas.errors import QueueFileError
from runq_schemas.place import DocumentPath, Mark, nearest_mark, place
from runq_schemas.scalar import Problem, Scalar
from runq_schemas.syntax import explain

MAX_DEPTH = 40
"""Levels of nesting. A JSON schema inside ``extra_body`` needs about twenty; strictyaml uses some ten of
Python's thousand stack frames for each."""

_LINE_BREAK = re.compile(r"\r\n|\r|\n")


@attrs.frozen(kw_only=True)
class Document:
    """A queue file's data: mappings are dicts, sequences lists, everything else a `Scalar`.

    Args:
        name: the file's name, for messages.
        data: the root; always a mapping.
        marks: the place of every value. One that is not there (``key:`` and nothing behind) is at its key.
        key_marks: the place of every key of a mapping.
    """

    name: str
    data: Mapping[str, Any]
    marks: Mapping[DocumentPath, Mark]
    key_marks: Mapping[DocumentPath, Mark]

    def mark_of(self, problem: Problem) -> Mark:
        """The place of a problem: of its key, its value, or the nearest thing around it."""
        if problem.at_key and problem.path in self.key_marks:
            return self.key_marks[problem.path]
        return nearest_mark(self.marks, problem.path)

    def refuse(self, problems: list[Problem]) -> NoReturn:
        """Raise one error that holds every problem, in the order of the file.

        Raises:
            QueueFileError: always.
        """
        refuse(self.name, [(self.mark_of(problem), problem) for problem in problems])


def refuse(name: str, found: list[tuple[Mark, Problem]]) -> NoReturn:
    """Raise one error that holds every problem found, in the order of the file.

    Raises:
        QueueFileError: always.
    """
    found.sort(key=lambda one: (one[0].line, one[0].column))
    errors = [
        QueueFileError(problem.message, where=place(name, problem.path, mark), remedy=problem.remedy)
        for mark, problem in found
    ]
    raise QueueFileError(errors[0].message, where=errors[0].where, remedy=errors[0].remedy, others=tuple(errors[1:]))


def read_document(content: str | bytes, name: str) -> Document:
    """Read the text of a queue file.

    Args:
        content: the file's content; bytes must be UTF-8.
        name: the file's name, for messages.

    Raises:
        QueueFileError: it is not one YAML mapping, or uses what strictyaml refuses: duplicate keys, anchors
            and aliases, tags.
    """
    text = content if isinstance(content, str) else _decoded(content, name)
    reading = _Reading(name, text.removeprefix("\ufeff"))
    try:
        return reading.document()
    except RecursionError:
        reading.stop(0, "the file is nested too deeply to be read", "Remove brackets that nest without need.")


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            message = "the file is UTF-16, not UTF-8"
        else:
            message = f"byte 0x{content[error.start]:02x} is not UTF-8"
        before = content[: error.start].decode("utf-8").removeprefix("\ufeff")
        # What comes after the bad byte cannot change its line.
        _Reading(name, before).stop(len(before), message, "Save the file in the encoding UTF-8.")


class _Composer(ruamel.SafeLoader):  # type: ignore[misc]  # strictyaml has no types
    """Composes nodes, and refuses at their exact place what strictyaml would refuse later."""

    def __init__(self, reading: _Reading) -> None:
        self.reading = reading
        self.depth = 0
        super().__init__(reading.text)

    def compose_node(self, parent: Any, index: Any) -> Any:
        """The next node."""
        event = self.peek_event()
        at = event.start_mark.index
        if isinstance(event, AliasEvent) or event.anchor is not None:
            sign = "*" if isinstance(event, AliasEvent) else "&"
            self.reading.stop(
                at,
                f"`{sign}{event.anchor}`: anchors and aliases are not allowed in a queue file",
                f"Write the value out, or put it in quotes if the text really begins with `{sign}`; settings"
                " that entries share belong in `defaults`.",
            )
        if getattr(event, "tag", None) is not None:
            self.reading.stop(
                at,
                "tags (`!...`) are not allowed in a queue file",
                "Remove the tag, or put the value in quotes if the text really begins with `!`.",
            )
        if self.depth == MAX_DEPTH:
            self.reading.stop(
                at,
                f"the file is nested more than {MAX_DEPTH} levels deep here",
                "Remove brackets that nest without need.",
            )
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


class _StrictLoader(StrictYAMLLoader):  # type: ignore[misc]  # strictyaml has no types
    """strictyaml's loader as `strictyaml.dirty_load` makes it, flow style allowed."""

    label = "queue file"
    allow_flow_style = True


class _Reading:
    """One file on its way from text to `Document`."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self.line_starts = [0, *(match.end() for match in _LINE_BREAK.finditer(text))]
        self.marks: dict[DocumentPath, Mark] = {}
        self.key_marks: dict[DocumentPath, Mark] = {}
        self.found: list[tuple[Mark, Problem]] = []

    def mark(self, index: int) -> Mark:
        """The place of a character; ruamel's own lines count U+2028 and the like, which editors do not.

        The end of a file that ends with a line break belongs to its last line.
        """
        last = len(self.text.rstrip("\r\n")) if index >= len(self.text) else index
        line = bisect_right(self.line_starts, last)
        return Mark(line=line, column=last - self.line_starts[line - 1] + 1)

    def stop(self, index: int, message: str, remedy: str) -> NoReturn:
        """Refuse the file for one problem that leaves nothing else to read."""
        refuse(self.name, [(self.mark(index), Problem((), message, remedy))])

    def document(self) -> Document:
        """Compose, convert, and ask strictyaml."""
        root = self._composed()
        if root is None:
            self.stop(0, "the file is empty", "Write at least one entry under `entries:`.")
        if not isinstance(root, MappingNode):
            kind = "text" if isinstance(root, ScalarNode) else "a list"
            self.stop(
                root.start_mark.index,
                f"the file must be a mapping with the key `entries`, not {kind}",
                "Write `entries:` at the left margin and the entries as a list below it.",
            )
        data = self._value(root, (), self.mark(root.start_mark.index))
        if self.found:
            refuse(self.name, self.found)
        self._gate()
        return Document(name=self.name, data=data, marks=self.marks, key_marks=self.key_marks)

    def _composed(self) -> Any:
        composer = None
        try:
            composer = _Composer(self)
            return composer.get_single_node()
        except YAMLError as error:
            self._syntax(error)
        # An escape such as \UFFFFFFFF is looked up without asking whether there is such a character.
        except (ValueError, OverflowError) as error:
            self.stop(
                0 if composer is None else composer.get_mark().index,
                f"this is not YAML: {error}",
                "Correct the YAML at this place.",
            )

    def _gate(self) -> None:
        try:
            # Whatever strictyaml refuses, it refuses while it loads. `strictyaml.dirty_load` goes on to copy and wrap
            # what was loaded, the copy in a time that grows with the square of a list; a test holds the two together.
            ruamel.load(self.text, Loader=_StrictLoader)
        except RecursionError:
            raise
        except MarkedYAMLError as error:
            self._syntax(error)
        # A bug of the library on some file must not reach the user as a traceback (it raises AttributeError
        # on characters that YAML refuses, AssertionError on keys that are lists; both are met earlier here).
        except Exception as error:
            self.stop(0, f"strictyaml cannot read the file: {error}", "Simplify its YAML and report this as a bug.")

    def _syntax(self, error: YAMLError) -> NoReturn:
        self.stop(*explain(error, self.text))

    def _value(self, node: Any, path: DocumentPath, mark: Mark) -> Any:
        self.marks[path] = mark
        if isinstance(node, ScalarNode):
            return Scalar(self._text(node, path), plain=not node.style)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        return [
            self._value(item, (*path, number), self.mark(item.start_mark.index))
            for number, item in enumerate(node.value)
        ]

    def _mapping(self, node: Any, path: DocumentPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            at = self.mark(key_node.start_mark.index)
            if not isinstance(key_node, ScalarNode):
                message, remedy = "a key must be text", "Write a plain name before the colon."
                self.found.append((at, Problem(path, message, remedy)))
                continue
            key = self._text(key_node, path)
            self._check_key(key, not key_node.style, at, path)
            self.key_marks[(*path, key)] = at
            missing = isinstance(value_node, ScalarNode) and not value_node.style and not value_node.value
            mark = at if missing else self.mark(value_node.start_mark.index)
            mapping[key] = self._value(value_node, (*path, key), mark)
        return mapping

    def _check_key(self, key: str, plain: bool, at: Mark, path: DocumentPath) -> None:
        if plain and key == "<<":
            message = "merge keys (`<<`) are not allowed in a queue file"
            remedy = "Write the keys out; settings that entries share belong in `defaults`."
        elif plain and not key:
            message, remedy = "a key is missing before the `:`", "Write the key, or remove the line."
        elif (*path, key) in self.key_marks:
            first = self.key_marks[(*path, key)].line
            message = f"the key `{key}` stands here twice; the first is on line {first}"
            remedy = "Remove one of the two."
        else:
            return
        self.found.append((at, Problem(path, message, remedy)))

    def _text(self, node: Any, path: DocumentPath) -> str:
        """A node's text; JSON's pairs of escapes (``\\ud83d\\ude00``) become the character they stand for."""
        text: str = node.value
        if text.isascii():
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            message, remedy = (
                "the text holds half a character (\\ud800 to \\udfff)",
                "Write the whole character.",
            )
            self.found.append((self.mark(node.start_mark.index), Problem(path, message, remedy)))
            return ""
