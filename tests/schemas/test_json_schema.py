"""The JSON Schema for editors says what the parser says."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest

from runq_schemas.document import read_document
from runq_schemas.errors import QueueFileError
from runq_schemas.json_schema import SCHEMA_FILE, queue_json_schema, schema_text, write_schema
from runq_schemas.parse import parse_queue
from runq_schemas.queue import Defaults, EntryFields, Matrix, ModelSpec, QueueFile, SettleSpec
from runq_schemas.scalar import to_json


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = queue_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_file_is_current() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run python -m runq_schemas.json_schema"


def test_the_module_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_schema(tmp_path / "queue.schema.json")
    assert (tmp_path / "queue.schema.json").read_text(encoding="utf-8") == schema_text()
    written: list[Path] = []
    monkeypatch.setattr(Path, "write_text", lambda path, *_, **__: written.append(path))
    runpy.run_path(str(SCHEMA_FILE.with_name("json_schema.py")), run_name="__main__")
    assert written == [SCHEMA_FILE]


def test_every_key_is_described_with_its_default() -> None:
    schema = queue_json_schema()
    for cls in (Defaults, EntryFields, Matrix, ModelSpec, SettleSpec):
        properties = schema["$defs"][cls.__name__]["properties"]
        assert set(properties) == {field.name for field in attrs.fields(cls)} - {"extra"}
        assert all(rule["description"] for rule in properties.values())
    assert set(schema["properties"]) == set(attrs.fields_dict(QueueFile))
    assert schema["$defs"]["SettleSpec"]["properties"]["timeout_s"] == {
        "description": "Give up after so many seconds without proof.",
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 120.0,
    }
    defaults = schema["$defs"]["Defaults"]["properties"]
    assert [defaults[key]["default"] for key in ("reset", "probes", "harness", "retries", "on_dirty")] == [
        "lms", ["system"], "touchstone", 0, "warn",
    ]  # fmt: skip
    assert "default" not in defaults["reset_before"]


ACCEPTED = [
    "entries: [{model: m}]",
    "entries: [{model: 7, pack: null, config: 1, judge_config: true, judge_model: ''}]",
    "defaults:\nentries: [{model: {id: m, zz: [1, {a: null}], extra_body: {a: false}}}]",
    "entries: [{model: m, reset: {backend: ollama, host: x, deep: {a: [1]}}, probes: [a, {probe: b, c: 1}]}]",
    "entries: [{model: m, reset_command: ''}]",
    "matrix: {models: [a, {id: b}]}",
    "matrix: {models: [a], packs: [p, 1], configs: [c], judge_config: j, harness: {harness: h, x: 1}}",
    "matrix: {models: [a], pack: p, config: ~}\nentries: [{model: m}]",
    "entries: [{model: m, reset_command: [a, 1]}]",
    "entries: [{model: m, stall_timeout_s: 0.5, step_timeout_s: {eval_s: 1, judge: 2}, retries: 0}]",
    "entries: [{model: m, stall_timeout_s: {a: 1}, env: {A: 1, B: ~, C: true, D: x}, reset_before: [a]}]",
    "entries: [{model: m, settle: {timeout_s: 1, plateau_polls: 1}, harness: command, on_dirty: stop}]",
]
REFUSED = [
    "{}",
    "entries: []",
    "entries: [m]",
    "entries: [{model: m}]\nmatrix: {}",
    "entries: [{}]",
    "entries: [{model: ''}]",
    "entries: [{model: ' '}]",
    "entries: [{model: ~}]",
    "entries: [{model: {quant: x}}]",
    "entries: [{model: {id: m, max_tokens_default: x}}]",
    "entries: [{model: {id: m, extra_body: [1]}}]",
    "entries: [{model: m, zz: 1}]",
    "matrix: {packs: [p]}",
    "matrix: {models: []}",
    "matrix: {models: m}",
    "matrix: {models: [m], packs: []}",
    "matrix: {models: [m], packs: [[a]]}",
    "matrix: {models: [m], model: m}",
    "matrix: {models: [m], pack: p, packs: [q]}",
    "matrix: {models: [m], config: p, configs: [q]}",
    "matrix: {models: [m]}\nentries: []",
    "matrix:",
    "entries: [{model: m, pack: [a]}]",
    "entries: [{model: m, reset: lms, reset_command: x}]",
    "entries: [{model: m, reset: {host: x}}]",
    "entries: [{model: m, reset: ''}]",
    "entries: [{model: m, reset_command: []}]",
    "entries: [{model: m, probes: []}]",
    "entries: [{model: m, probes: a}]",
    "entries: [{model: m, settle: {timeout_s: 0}}]",
    "entries: [{model: m, settle: {plateau_polls: 0}}]",
    "entries: [{model: m, settle: {plateau_polls: 1.5}}]",
    "entries: [{model: m, settle: {epsilon_mb: '3'}}]",
    "entries: [{model: m, settle: {x: 3}}]",
    "entries: [{model: m, settle: ~}]",
    "entries: [{model: m, step_timeout_s: {eval: 1, eval_s: 1}}]",
    "entries: [{model: m, step_timeout_s: {eval: 0}}]",
    "entries: [{model: m, step_timeout_s: 3}]",
    "entries: [{model: m, stall_timeout_s: {a: 0}}]",
    "entries: [{model: m, stall_timeout_s: 0}]",
    "entries: [{model: m, retries: -1}]",
    "entries: [{model: m, cooldown_s: -1}]",
    "entries: [{model: m, env: {A: [1]}}]",
    "entries: [{model: m, on_dirty: no}]",
    "defaults: {pack: p}\nentries: [{model: m}]",
    "defaults: {reset: a, reset_command: b}\nentries: [{model: m}]",
]


def as_editors_see_it(text: str) -> Any:
    return to_json(read_document(text, "q").data)


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted_by_both(text: str, validator: jsonschema.Draft202012Validator) -> None:
    parse_queue(text, Path("q"))
    validator.validate(as_editors_see_it(text))


@pytest.mark.parametrize("text", REFUSED)
def test_refused_by_both(text: str, validator: jsonschema.Draft202012Validator) -> None:
    with pytest.raises(QueueFileError):
        parse_queue(text, Path("q"))
    assert not validator.is_valid(as_editors_see_it(text))
