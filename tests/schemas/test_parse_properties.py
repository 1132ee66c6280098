"""Random queue files mean what they say, and random text is refused at a line of the file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runq_schemas.document import read_document
from runq_schemas.errors import QueueFileError
from runq_schemas.json_schema import queue_json_schema
from runq_schemas.parse import parse_queue
from runq_schemas.queue import ModelSpec, PluginUse, SettleSpec
from runq_schemas.scalar import to_json

VALIDATOR = jsonschema.Draft202012Validator(queue_json_schema())

# What a double-quoted scalar can hold by escapes; NUL is refused in text that becomes an argument.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
names = texts.filter(str.strip)
seconds = st.floats(0.001, 1e9) | st.integers(1, 10**9)
waits = st.floats(0, 1e9) | st.integers(0, 10**9)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
settles = st.fixed_dictionaries(
    {},
    optional={
        "timeout_s": seconds,
        "plateau_polls": st.integers(1, 99),
        "poll_interval_s": seconds,
        "epsilon_mb": seconds,
    },
)
shared: dict[str, Any] = {
    "probes": st.lists(names, min_size=1, max_size=3),
    "settle": settles,
    "reset_before": st.lists(names, min_size=1, max_size=2),
    "harness": names,
    "step_timeout_s": st.dictionaries(st.sampled_from(["eval", "judge", "x"]), seconds, max_size=3),
    "stall_timeout_s": seconds | st.dictionaries(names, seconds, max_size=2),
    "retries": st.integers(0, 9),
    "retry_wait_s": waits,
    "cooldown_s": waits,
    "env": st.dictionaries(names, texts, max_size=3),
    "on_dirty": st.sampled_from(["warn", "retry", "skip", "stop"]),
    "min_free_disk_mb": waits,
    "require_ac": st.booleans(),
}
models = st.fixed_dictionaries(
    {"id": names},
    optional={
        "quant": texts,
        "max_tokens_default": st.integers(),
        "extra_body": st.dictionaries(texts, json_values, max_size=3),
        "seed": json_values,
    },
)
entries = st.fixed_dictionaries(
    {"model": names | models},
    optional={**shared, "config": names, "pack": names, "judge_config": names, "judge_model": names, "reset": names},
)
files = st.fixed_dictionaries(
    {
        "entries": st.lists(
            entries, min_size=1, max_size=3, unique_by=lambda e: (e.get("config"), e.get("pack"), model_id(e))
        )
    },
    optional={"defaults": st.fixed_dictionaries({}, optional={**shared, "reset": names})},
)


def model_id(entry: dict[str, Any]) -> str:
    model = entry["model"]
    return str(model["id"] if isinstance(model, dict) else model)


def flow(value: Any, ascii_only: bool) -> str:
    """JSON, which is YAML in flow style, with spaces behind colons and commas.

    JSON may hold as they are some characters that YAML refuses, or folds as line breaks (U+0085, U+2028, U+2029).
    """
    text = json.dumps(value, ensure_ascii=ascii_only)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def block(value: Any, indent: int = 0) -> str:
    """The same in block style; scalars and empty collections as JSON."""
    pad = " " * indent
    if isinstance(value, dict) and value:
        return "".join(f"\n{pad}{flow(key, True)}:{block(item, indent + 2)}" for key, item in value.items())
    if isinstance(value, list) and value:
        return "".join(f"\n{pad}-{block(item, indent + 2)}" for item in value)
    return f" {flow(value, True)}"


def resolved(file: dict[str, Any], index: int, key: str, default: Any) -> Any:
    return file["entries"][index].get(key, file.get("defaults", {}).get(key, default))


def check(text: str, file: dict[str, Any]) -> None:
    queue = parse_queue(text, Path("queue.yaml"))
    assert len(queue.entries) == len(file["entries"])
    for index, (entry, written) in enumerate(zip(queue.entries, file["entries"], strict=True)):
        model = written["model"]
        if isinstance(model, dict):
            known = {key: item for key, item in model.items() if key != "seed"}
            extra = {key: item for key, item in model.items() if key == "seed"}
            assert entry.model == ModelSpec(**known, extra=extra)
        else:
            assert entry.model == ModelSpec(id=model)
        for key in ("config", "pack", "judge_config", "judge_model"):
            assert getattr(entry, key) == written.get(key)
        assert entry.reset == PluginUse(name=resolved(file, index, "reset", "lms"))
        assert entry.harness == PluginUse(name=resolved(file, index, "harness", "touchstone"))
        assert entry.probes == tuple(PluginUse(name=name) for name in resolved(file, index, "probes", ["system"]))
        assert entry.settle == SettleSpec(**resolved(file, index, "settle", {}))
        before = resolved(file, index, "reset_before", None)
        assert entry.reset_before == (None if before is None else tuple(before))
        for key, default in (("step_timeout_s", {}), ("stall_timeout_s", None), ("retries", 0), ("retry_wait_s", 0),
                             ("cooldown_s", 0), ("env", {}), ("on_dirty", "warn")):  # fmt: skip
            assert getattr(entry, key) == resolved(file, index, key, default)
    VALIDATOR.validate(file)


# A key longer than this is no simple key in YAML, and JSON's first level needs none.
@settings(max_examples=150, deadline=None)
@given(file=files, style=st.sampled_from(["block", "flow", "unicode"]), start=st.sampled_from(["", "---\n", "# x\n"]))
def test_files_mean_what_they_say(file: dict[str, Any], style: str, start: str) -> None:
    check(start + (block(file).lstrip() if style == "block" else flow(file, style == "flow")) + "\n", file)


def lines_of(text: str) -> int:
    return len(re.split(r"\r\n|\r|\n", text))


def refused_at_a_line(content: str | bytes) -> None:
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    lines = re.split(r"\r\n|\r|\n", text)
    try:
        parse_queue(content, Path("queue.yaml"))
    except QueueFileError as error:
        for problem in error.problems:
            match = re.fullmatch(r"queue\.yaml, (?:entry \d+, |defaults, )?line (\d+), column (\d+)", problem.where)
            assert match, problem.where
            line, column = int(match[1]), int(match[2])
            assert 1 <= line <= len(lines)
            assert 1 <= column <= len(lines[line - 1]) + 1
            assert problem.message and problem.remedy


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=60) | st.text(max_size=60) | st.text("[]{}:,- \n\t\"'&*!|>%#?@\\ax0\r\ufeff\u2028", max_size=40)
)
@example('a: "\\U')
@example("%YAML 1")
@example("a: |9\n x\n")
@example("\n\n- ")
@example("\u2028")
def test_anything_is_read_or_refused_at_a_line(content: str | bytes) -> None:
    refused_at_a_line(content)


SAMPLE = """\
---
defaults: {retries: 1, settle: {timeout_s: 5}}
entries:
  - model: "a"   # note
    env:
      A: 'b'
    reset: {backend: x, y: [1,
      2]}
  - model: {id: b, extra_body: {c: .5}}
"""


@settings(max_examples=300, deadline=None)
@given(
    where=st.integers(0, len(SAMPLE)),
    cut=st.integers(0, 12),
    put=st.text("[]{}:,- \n\t\"'&*!|>%#?ax0", max_size=3),
)
def test_damaged_files_are_read_or_refused_at_a_line(where: int, cut: int, put: str) -> None:
    refused_at_a_line(SAMPLE[:where] + put + SAMPLE[where + cut :])


@settings(max_examples=150, deadline=None)
@given(json_values)
def test_json_survives(value: Any) -> None:
    assert to_json(read_document(json.dumps({"a": value}), "q").data) == {"a": value}
