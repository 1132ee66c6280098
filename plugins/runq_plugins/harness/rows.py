"""Reads a file of JSON lines, one row at a time, for what it proves.

A file that exists proves little: touchstone's eval writes a row per answer also when every answer is an error, and
its judge writes an `_error` row when its last call fails; both exit 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

ERROR_KEY = "_error"

_TEXT_LIMIT = 500


@attrs.define(kw_only=True)
class Rows:
    """What a file of JSON lines holds.

    Args:
        rows: lines that are JSON objects.
        torn: 1 when the last line has no end and is not JSON: the writer was cut off, everything before counts.
        unreadable: the number of the first other line that is not a JSON object, from 1; ``None`` when all are.
        judged: rows with a boolean ``ok``.
        passed: rows whose ``ok`` is true.
        first_error: what the first row without ``ok: true`` says under ``error``.
        error_rows: rows that hold a key `_error`, at any depth, or are named so.
        error_text: what the first of them says.
        tokens_per_second: what each answer that is ok says under ``decode_tps``.
    """

    rows: int = 0
    torn: int = 0
    unreadable: int | None = None
    judged: int = 0
    passed: int = 0
    first_error: str = ""
    error_rows: int = 0
    error_text: str = ""
    tokens_per_second: list[float] = attrs.field(factory=list)

    @property
    def failed(self) -> int:
        """Rows whose ``ok`` is not true."""
        return self.rows - self.passed

    def problem(self, name: str) -> str:
        """Why the file proves nothing at all, in one sentence; nothing when it may."""
        if self.unreadable is not None:
            return f"line {self.unreadable} of {name} is not a JSON object"
        if self.rows == 0:
            return f"{name} holds no complete row"
        if self.error_rows:
            return f"{name} holds an error instead of a result: {self.error_text}"
        return ""

    def no_answer(self) -> str:
        """That no row is ok, with the share and the first error."""
        first = f"; the first error: {self.first_error}" if self.first_error else ""
        return f"{self.failed} of {self.rows} answers failed, none is ok{first}"

    def answer_facts(self) -> Mapping[str, Any]:
        """``answers``, ``answers_failed``, and where there are any ``first_error``, ``torn_rows`` and
        ``tokens_per_second``: the median over the answers, so that one that waited for the model to load counts as one.
        """
        facts: dict[str, Any] = {"answers": self.rows, "answers_failed": self.failed}
        if self.failed and self.first_error:
            facts["first_error"] = self.first_error
        if self.torn:
            facts["torn_rows"] = self.torn
        if self.tokens_per_second:
            import statistics  # with fractions and decimal, and a plan counts no rows

            facts["tokens_per_second"] = round(statistics.median(self.tokens_per_second), 2)
        return facts


def scan(path: Path) -> Rows:
    """Read a whole file of JSON lines, holding one line at a time.

    Raises:
        OSError: it cannot be read.
    """
    found = Rows()
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            row = _object(line)
            if row is not None:
                _count(found, row)
            elif not line.endswith(b"\n"):
                found.torn = 1
            elif found.unreadable is None:
                found.unreadable = number
    return found


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _count(found: Rows, row: dict[str, Any]) -> None:
    found.rows += 1
    ok = row.get("ok")
    found.judged += isinstance(ok, bool)
    if ok is True:
        found.passed += 1
        if (speed := _speed(row.get("decode_tps"))) is not None:
            found.tokens_per_second.append(speed)
    elif not found.first_error:
        found.first_error = _text(row.get("error"))
    error = next(_errors(row), None)
    if error is not None:
        found.error_rows += 1
        found.error_text = found.error_text or _text(error) or "no text"


def _speed(value: Any) -> float | None:
    """Tokens per second; ``None`` for what is no such figure."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    return number if math.isfinite(number) and number > 0 else None


def _errors(row: dict[str, Any]) -> Iterator[Any]:
    """Every `_error` in a row: as a key at any depth with something under it, or as the name of the row itself."""
    for key, value in row.items():
        if value == ERROR_KEY and key != "text":
            yield row.get("error") or row.get("message") or "the row is an _error row"
    waiting: list[Any] = [row]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get(ERROR_KEY):
                yield node[ERROR_KEY]
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _text(value: Any) -> str:
    if value is None or value == "":
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())[:_TEXT_LIMIT]
