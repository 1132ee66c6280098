"""The JSON Schema of a queue file, for editors, generated from the classes that the parser fills.

``python -m runq_schemas.json_schema`` writes ``queue.schema.json`` beside this module. It describes a file as a
reader of YAML 1.2 sees it, and accepts what the parser accepts. What JSON Schema cannot see stays with the parser:
quotes (``"3"`` and 3 are told apart, an unquoted 3 for text is not), ``3.0`` for a whole number, repeated entries.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import attrs

from runq_schemas.queue import STEP_ALIASES, EntryFields, Matrix, ModelSpec, PluginUse, QueueFile

Schema = dict[str, Any]

SCHEMA_FILE = Path(__file__).with_name("queue.schema.json")

# The parser takes any scalar's text, so 7 is text where text is wanted.
_TEXT: Schema = {"type": ["string", "number", "boolean"]}
# A name must have a character that is seen.
_NAME: Schema = {**_TEXT, "pattern": r"\S"}
_ANY_TEXT: Schema = {"type": ["string", "number", "boolean", "null"]}


def queue_json_schema() -> Schema:
    """The schema of a whole queue file (JSON Schema, draft 2020-12)."""
    definitions: dict[str, Schema] = {}
    root = _class(QueueFile, definitions)
    root["anyOf"] = [{"required": ["entries"]}, {"required": ["matrix"]}]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "runq queue file",
        **root,
        "$defs": dict(sorted(definitions.items())),
    }


def schema_text() -> str:
    """The schema as the file holds it."""
    return json.dumps(queue_json_schema(), indent=2, ensure_ascii=False) + "\n"


def write_schema(path: Path = SCHEMA_FILE) -> None:
    """Write the schema file."""
    path.write_text(schema_text(), encoding="utf-8")


def _class(cls: type, definitions: dict[str, Schema]) -> Schema:
    attrs.resolve_types(cls)
    fields = [field for field in attrs.fields(cls) if field.metadata.get("schema") != "additional"]
    schema: Schema = {
        "type": "object",
        "properties": {field.name: _field(field, definitions) for field in fields},
        "required": [field.name for field in fields if field.default is attrs.NOTHING],
        "additionalProperties": len(fields) < len(attrs.fields(cls)),
    }
    if "reset_command" in schema["properties"]:
        # Two spellings of one key.
        schema["not"] = {"required": ["reset", "reset_command"]}
    if cls is Matrix:
        schema["allOf"] = [{"not": {"required": [one, f"{one}s"]}} for one in ("pack", "config")]
    return {key: value for key, value in schema.items() if value != []}


def _field(field: attrs.Attribute[Any], definitions: dict[str, Schema]) -> Schema:
    rules = field.metadata
    if field.name == "step_timeout_s":
        schema = {**_type(field.type, rules, definitions), "allOf": _one_spelling()}
    else:
        schema = _type(field.type, rules, definitions)
    if rules.get("nullable"):
        schema = _nullable(schema)
    default = _default(field)
    return {
        "description": rules["description"],
        **schema,
        **({} if default is None else {"default": default}),
    }


def _one_spelling() -> list[Schema]:
    return [{"not": {"required": [alias, step]}} for alias, step in STEP_ALIASES.items()]


def _nullable(schema: Schema) -> Schema:
    if "type" in schema:
        return {**schema, "type": [*schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _default(field: attrs.Attribute[Any]) -> Any:
    value = field.metadata.get("built_in", field.default)
    if value is attrs.NOTHING or not isinstance(value, tuple | PluginUse | str | int | float):
        # Factories make empty mappings, and a whole class states the defaults of its own fields.
        return None
    if isinstance(value, tuple):
        return [item.name if isinstance(item, PluginUse) else item for item in value]
    return value.name if isinstance(value, PluginUse) else value


def _type(tp: Any, rules: Mapping[str, Any], definitions: dict[str, Schema]) -> Schema:
    origin, args = get_origin(tp), get_args(tp)
    if tp is str:
        return _NAME if "min_length" in rules else _TEXT
    if tp is bool:
        return {"type": "boolean"}
    if tp in (int, float):
        bounds = {"minimum": rules.get("minimum"), "exclusiveMinimum": rules.get("above")}
        return {
            "type": "integer" if tp is int else "number",
            **{key: bound for key, bound in bounds.items() if bound is not None},
        }
    if tp is PluginUse:
        return _plugin(rules["plugin"])
    if attrs.has(tp):
        return _reference(tp, definitions)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        # None stands for a key that is not there.
        members = [_type(arg, rules, definitions) for arg in args if arg is not types.NoneType]
        return members[0] if len(members) == 1 else {"anyOf": members}
    if origin is tuple:
        items = {"type": "array", "items": _type(args[0], rules, definitions)}
        return {**items, **({"minItems": rules["min_items"]} if "min_items" in rules else {})}
    return {"type": "object", **_values(args[1], rules, definitions)}


def _values(tp: Any, rules: Mapping[str, Any], definitions: dict[str, Schema]) -> Schema:
    if tp is Any:
        return {}
    return {"additionalProperties": _ANY_TEXT if tp is str else _type(tp, rules, definitions)}


def _reference(cls: type, definitions: dict[str, Schema]) -> Schema:
    if cls.__name__ not in definitions:
        definitions[cls.__name__] = _class(cls, definitions)
    reference: Schema = {"$ref": f"#/$defs/{cls.__name__}"}
    if cls is ModelSpec:
        name = attrs.fields_dict(EntryFields)["model"].metadata["description"]
        return {"anyOf": [{**_NAME, "description": name}, reference]}
    return reference


def _plugin(key: str) -> Schema:
    return {"anyOf": [_NAME, {"type": "object", "properties": {key: _NAME}, "required": [key]}]}


if __name__ == "__main__":
    write_schema()
