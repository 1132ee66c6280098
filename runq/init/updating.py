"""A queue file that is there already: new entries behind the old ones, every other line as it is.

The text is changed, not a parsed copy written anew: comments, quotes and layout are the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from runq.init.offers import Candidate, same_server
from runq.init.writing import KNOWN_HEAD, KNOWN_LINE, KNOWN_NEXT, Harness, entry_lines, keys_of, known_lines
from runq.looking import FoundServer
from runq_schemas.document import read_document
from runq_schemas.errors import UsageError
from runq_schemas.parse import parse_queue
from runq_schemas.queue import EntrySpec, QueueSpec
from runq_schemas.scalar import to_json

GONE = "# runq init: its server does not list this model any more"

_BREAK = re.compile(r"\r\n|\r|\n")
"""What ends a line in YAML; `str.splitlines` knows more, which may stand in a text."""

_ITEM = re.compile(r"\s*-(\s|$)")


@attrs.define
class QueueText:
    """The text of a queue file, by lines.

    Raises:
        QueueFileError: it is wrong; a file with faults is not touched.
    """

    path: Path
    text: str
    spec: QueueSpec = attrs.field(init=False)
    data: Mapping[str, Any] = attrs.field(init=False)
    lines: list[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Parse it."""
        self.spec = parse_queue(self.text, self.path)
        data = read_document(self.text, self.path.name).data
        self.data = {key: to_json(data[key]) for key in ("defaults", "entries") if key in data}
        self.lines = _BREAK.split(self.text.removesuffix("\n").removesuffix("\r"))

    def joined(self) -> str:
        """The text as it is now, with the line ends it came with."""
        end = "\r\n" if "\r\n" in self.text else "\n"
        return end.join(self.lines) + end

    def known(self) -> set[str]:
        """The models that an earlier `runq init` has seen, and those that have an entry."""
        block = self._known_block()
        noted = [match[1] for line in self.lines[block] if (match := KNOWN_LINE.fullmatch(line))] if block else []
        return {*noted, *(entry.model.id for entry in self.spec.entries)}

    def entries_of(self, candidate: Candidate) -> list[EntrySpec]:
        """The entries that a model on a server has already."""
        mine = [entry for entry in self.spec.entries if same_server(candidate.server.reset, reset_of(entry))]
        return [entry for entry in mine if entry.model.id == candidate.model.id]

    def gone(self, servers: Iterable[FoundServer]) -> list[EntrySpec]:
        """The entries whose server answers and does not list their model."""
        found = list(servers)
        missing = []
        for entry in self.spec.entries:
            mine = [server for server in found if same_server(server.reset, reset_of(entry))]
            names = {model.id for server in mine for model in server.models}
            if mine and not {entry.model.id, f"{entry.model.id}:latest"} & names:
                missing.append(entry)
        return missing

    def mark(self, gone: Sequence[EntrySpec]) -> None:
        """Put a comment above each entry that is gone, and take it away from those that are not."""
        wanted = {self._item_line(entry) for entry in gone} - {None}
        kept: list[str] = []
        for number, line in enumerate(self.lines):
            if line.strip() == GONE:
                continue
            if number in wanted:
                kept.append(" " * _indent(line) + GONE)
            kept.append(line)
        self.lines = kept

    def add(self, added: Sequence[Candidate], keys: Sequence[Mapping[str, Any]], *, timed: bool) -> None:
        """Put entries behind the last one.

        Raises:
            UsageError: the entries stand in brackets, where no line can be added.
        """
        if not added:
            return
        indent, at = self._end_of_entries()
        pad, new = " " * indent, []
        if at is None:
            indent, at, pad, new = 2, self._end_of_text(), "  ", ["", "entries:"]
        for candidate, own in zip(added, keys, strict=True):
            head, *rest = entry_lines(candidate, own, timed=timed)
            new += [f"{pad}- {head}", *[f"{pad}  {line}" for line in rest]]
        self.lines[at:at] = new

    def remember(self, models: Iterable[str]) -> None:
        """Note in the comment at the end which models were seen."""
        block = self._known_block()
        noted = [m[1] for line in self.lines[block] if (m := KNOWN_LINE.fullmatch(line))] if block else []
        new = known_lines(list(dict.fromkeys([*noted, *models])))
        if block is None:
            self.lines += ["", *new]
        else:
            self.lines[block] = new

    def keys_for(self, candidate: Candidate, harness: Harness | None) -> dict[str, Any]:
        """The keys of a new entry: as those of its neighbours, or of a harness that was asked for."""
        defaults = self.data.get("defaults") or {}
        shared = {"reset": _as_mapping(defaults.get("reset"), "backend"), "harness": defaults.get("harness")}
        if harness is not None:
            return keys_of(candidate, harness, shared)
        theirs = [entry for entry in self.spec.entries if same_server(candidate.server.reset, reset_of(entry))]
        written = self.data.get("entries") or []
        by_hand = [entry for entry in theirs if entry.index < len(written)]  # the others are the matrix's
        pattern = (by_hand or theirs or list(self.spec.entries))[-1]
        keys: dict[str, Any] = {
            name: getattr(pattern, name) for name in ("config", "pack", "judge_config", "judge_model")
        }
        own = written[pattern.index] if pattern.index < len(written) else {}
        if theirs:
            keys |= {name: own.get(name) for name in ("reset", "reset_command", "harness")}
            return keys
        keys["reset"] = dict(candidate.server.reset)
        keys["harness"] = _moved(own.get("harness") or defaults.get("harness"), candidate.server)
        if keys["harness"] in (None, "touchstone"):
            keys["config"] = Harness(name="touchstone", pack=None).config(candidate.server)
            keys["harness"] = None
        return keys

    def _item_line(self, entry: EntrySpec) -> int | None:
        """The line of an entry's dash, from 0; ``None`` where it stands in brackets."""
        number = entry.mark.line - 1
        while number > 0 and not self.lines[number].strip():
            number -= 1
        for at in (number, number - 1):
            if at >= 0 and _ITEM.match(self.lines[at]) and _indent(self.lines[at]) < entry.mark.column:
                return at
        return None

    def _end_of_entries(self) -> tuple[int, int | None]:
        """The column of the entries' dashes, and the line behind the last entry; no line where there is none."""
        written = self.data.get("entries") or []
        if not written:
            return 0, None
        last = self._item_line(self.spec.entries[len(written) - 1])
        if last is None:
            raise UsageError(
                f"the entries of {self.path.name} stand in brackets, so no line can be added",
                remedy="write each entry on lines of its own, after `- `; `runq plan` shows them resolved",
            )
        indent = _indent(self.lines[last])
        end = last + 1
        for number in range(last + 1, len(self.lines)):
            line = self.lines[number]
            if not line.strip():
                continue
            if _indent(line) <= indent:
                if not line.lstrip().startswith("#"):
                    break
                continue
            end = number + 1
        return indent, end

    def _end_of_text(self) -> int:
        block = self._known_block()
        end = block.start if block else len(self.lines)
        while end > 0 and not self.lines[end - 1].strip():
            end -= 1
        return end

    def _known_block(self) -> slice | None:
        if KNOWN_HEAD not in self.lines:
            return None
        start = self.lines.index(KNOWN_HEAD)
        end = start + 1
        while end < len(self.lines) and (self.lines[end] == KNOWN_NEXT or KNOWN_LINE.fullmatch(self.lines[end])):
            end += 1
        return slice(start, end)


def reset_of(entry: EntrySpec) -> dict[str, Any]:
    """An entry's `reset` as a queue file has it."""
    return {"backend": entry.reset.name, **entry.reset.options}


def _as_mapping(value: Any, key: str) -> Any:
    return {key: value} if isinstance(value, str) else value


def _moved(harness: Any, server: FoundServer) -> Any:
    """A harness's settings for another server: its `endpoint` is that one's."""
    if not isinstance(harness, Mapping) or "endpoint" not in harness:
        return harness
    endpoint = harness["endpoint"]
    if isinstance(endpoint, Mapping):
        kept = {key: value for key, value in endpoint.items() if not key.startswith("api_key")}
        moved: Any = {**kept, "base_url": server.base_url, "engine": server.engine}
        if server.key_env:
            moved["api_key_env"] = server.key_env
    else:
        moved = server.base_url
    return {**harness, "endpoint": moved}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
