"""Writes the parts of these pages that the code knows better:  python docs/generate.py

A page holds a block between ``<!-- generated: NAME -->`` and ``<!-- end of NAME -->``; this script replaces what stands
between the two by what the classes, the commands, the plugins and the views say now. ``--check`` writes nothing and
ends with 1 when a page is not current; a test does the same.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import attrs
import click

DOCS = Path(__file__).resolve().parent
BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)

WORDS = {str: "text", int: "integer", float: "number", bool: "boolean", Any: "any JSON", type(None): "null"}


# --- words ------------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def type_words(tp: Any) -> str:
    """A type in the words of somebody who writes YAML or reads JSON."""
    origin, args = get_origin(tp), get_args(tp)
    if tp in WORDS:
        return WORDS[tp]
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in args)
    if origin in (Union, types.UnionType):
        return " or ".join(type_words(arg) for arg in args)
    if origin is tuple:
        return f"list of {type_words(args[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"mapping to {type_words(args[1])}"
    return f"[{tp.__name__}](#{tp.__name__.lower()})" if attrs.has(tp) else str(getattr(tp, "__name__", tp))


def inner_classes(tp: Any) -> Iterator[type[Any]]:
    """The attrs classes that a type mentions."""
    if isinstance(tp, type) and attrs.has(tp):
        yield tp
    for arg in get_args(tp):
        yield from inner_classes(arg)


def paragraph(text: str | None) -> str:
    """A docstring as Markdown: double backticks become single ones."""
    return re.sub(r"``(.+?)``", r"`\1`", inspect.cleandoc(text or ""))


def default_words(value: Any) -> str:
    """A default value as one would write it."""
    if value is attrs.NOTHING:
        return "required"
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]
        value = value.factory()
    if value is None or value in ({}, ()):
        return "none"
    if isinstance(value, tuple):
        return "[" + ", ".join(default_words(item) for item in value) + "]"
    if isinstance(value, float):
        return f"{value:g}"
    return str(getattr(value, "name", value)) or '""'


# --- queue file -------------------------------------------------------------------------------------------------


def queue_keys() -> str:
    """Every key of a queue file, by the class that holds it."""
    from runq_schemas.queue import Defaults, EntryFields, HeartbeatSpec, Matrix, ModelSpec, QueueFile, SettleSpec

    shared = {field.name for field in attrs.fields(Defaults)}
    parts = [
        ("Top level", _queue_rows(QueueFile)),
        ("Of an entry", _queue_rows(EntryFields, without=shared)),
        ("Of `matrix`, besides the keys of an entry", _queue_rows(Matrix, without=attrs.fields_dict(EntryFields))),
        ("Of `defaults` and of an entry", _queue_rows(Defaults)),
        ("`model`", _queue_rows(ModelSpec)),
        ("`settle`", _queue_rows(SettleSpec)),
        ("`heartbeat`", _queue_rows(HeartbeatSpec)),
    ]
    head = ("key", "value", "default", "meaning", "identity")
    return "\n\n".join(f"### {title}\n\n{table(head, rows)}" for title, rows in parts)


def _queue_rows(cls: type[Any], *, without: Iterable[str] = ()) -> list[list[str]]:
    attrs.resolve_types(cls)
    rows = []
    for field in attrs.fields(cls):
        if field.name in without:
            continue
        rules = field.metadata
        if rules.get("schema") == "additional":
            about = "Any other key: sent along as it is."
            rows.append(["...", "any JSON", "none", about, _yes(rules.get("identity"))])
            continue
        default = rules.get("built_in", field.default)
        words = "see below" if attrs.has(type(default)) and not hasattr(default, "name") else default_words(default)
        if isinstance(field.default, attrs.Factory) and attrs.has(field.type):  # type: ignore[arg-type]
            words = "none"
        row = [f"`{field.name}`", _queue_type(field), words, f"{rules['description']}{_bounds(rules)}"]
        rows.append([*row, _yes(rules.get("identity"))])
    return rows


def _queue_type(field: attrs.Attribute[Any]) -> str:
    """The type without the None that stands for a key that is not there, plugins and classes in plain words."""
    from runq_schemas.queue import ModelSpec, PluginUse

    def one(tp: Any) -> str:
        if tp is PluginUse:
            return "name or mapping"
        if tp is ModelSpec:
            return "text or mapping"
        if get_origin(tp) is tuple:
            return "list of " + ("names or mappings" if get_args(tp)[0] is PluginUse else one(get_args(tp)[0]))
        return "mapping" if attrs.has(tp) else type_words(tp)

    members = get_args(field.type) if get_origin(field.type) in (Union, types.UnionType) else (field.type,)
    return " or ".join(one(member) for member in members if member is not types.NoneType).replace(
        "list of mapping", "list of mappings"
    )


def _bounds(rules: Mapping[str, Any]) -> str:
    if "above" in rules:
        return f" Above {rules['above']}."
    return f" At least {rules['minimum']}." if "minimum" in rules else ""


def _yes(value: object) -> str:
    return "yes" if value else ""


# --- journal ----------------------------------------------------------------------------------------------------


def event_kinds() -> str:
    """Every kind of event with its fields, and the values inside them."""
    from runq_schemas.events import EVENT_CLASSES

    parts: list[str] = []
    inner: dict[str, type[Any]] = {}
    for kind, cls in EVENT_CLASSES.items():
        rows = _field_rows(cls, inner)
        fields = table(("field", "value"), rows) if rows else "No fields."
        parts.append(f"### `{kind}`\n\n{paragraph(cls.__doc__)}\n\n{fields}")
    parts += [
        f"### {name}\n\n{paragraph(cls.__doc__)}\n\n{table(('field', 'value'), _field_rows(cls, inner))}"
        for name, cls in _growing(inner)
    ]
    return "\n\n".join(parts)


def _growing(found: dict[str, type[Any]]) -> Iterator[tuple[str, type[Any]]]:
    """The classes found so far, and those found in them while this is read."""
    done: set[str] = set()
    while todo := [name for name in found if name not in done]:
        done.add(todo[0])
        yield todo[0], found[todo[0]]


def _field_rows(cls: type[Any], inner: dict[str, type[Any]]) -> list[list[str]]:
    attrs.resolve_types(cls)
    rows = []
    for field in attrs.fields(cls):
        inner.update((found.__name__, found) for found in inner_classes(field.type))
        rows.append([f"`{field.name}`", type_words(field.type)])
    return rows


def view_columns() -> str:
    """Every view with its columns."""
    from runq_journal.view_files import views

    return "\n\n".join(
        f"### `{view.name}`\n\n{view.about}\n\n"
        + table(("column", "meaning"), [[f"`{name}`", about] for name, about in view.columns.items()])
        for view in views()
    )


def event_columns() -> str:
    """The columns of the two tables, as the journal declares them."""
    from runq_journal.schema import EVENT_TABLE, SAMPLE_TABLE

    return f"```sql\n{EVENT_TABLE};\n\n{SAMPLE_TABLE};\n```"


# --- commands ---------------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command with its arguments and options, from the live commands."""
    from runq.cli import COMMANDS, cli

    # With the group's settings: click keeps a command's help option as it first made it, in this process for good.
    context = click.Context(cli, info_name="runq", **cli.context_settings)
    parts = [f"### `runq`\n\n{_help(cli)}\n\n{_options(cli, context)}"]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        if command is None:
            raise LookupError(name)
        parts += _command(command, name, context)
    return "\n\n".join(parts)


def _command(command: click.Command, name: str, context: click.Context) -> list[str]:
    """A command, and behind it those of a group."""
    inner = click.Context(command, info_name=name, parent=context)
    words = inner.command_path
    usage = " ".join([words, *(_usage(param) for param in command.params)]).strip()
    parts = [f"### `{words}`\n\n```text\n{usage}\n```\n\n{_help(command)}\n\n{_options(command, inner)}".rstrip()]
    if isinstance(command, click.Group):
        for part, one in command.commands.items():
            parts += _command(one, part, inner)
    return parts


def _usage(param: click.Parameter) -> str:
    if isinstance(param, click.Argument):
        metavar = (param.name or "").upper()
        return metavar if param.required else f"[{metavar}]"
    return f"[{_flag(param)}]"


def _flag(param: click.Parameter) -> str:
    longest = max(param.opts, key=len)
    if isinstance(param, click.Option) and not param.is_flag:
        return f"{longest} {param.metavar or (param.name or '').upper().replace('_', '-')}"
    return longest


def _help(command: click.Command) -> str:
    blocks = (command.help or "").strip().split("\n\n")
    return "\n\n".join(_block(block.splitlines()) for block in blocks)


def _block(lines: Sequence[str]) -> str:
    """A paragraph; after click's mark `\\b` the lines as they stand."""
    if lines[0].strip() == "\b":
        return "\n".join(["```text", *(line.strip() for line in lines[1:]), "```"])
    return " ".join(line.strip() for line in lines)


def _options(command: click.Command, context: click.Context) -> str:
    rows = []
    for param in command.get_params(context):
        record = param.get_help_record(context) if isinstance(param, click.Option) else None
        if record is None or not isinstance(param, click.Option) or "--help" in param.opts:
            continue  # the page says once that every command has --help
        shorter = [f"`{word}`" for word in param.opts if word != max(param.opts, key=len)]
        rows.append([", ".join([*shorter, f"`{_flag(param)}`"]), re.sub(r"\s+", " ", _option_help(param))])
    return table(("option", "meaning"), rows) if rows else "No options."


def _option_help(param: click.Option) -> str:
    default = f" [default: {param.default}]" if param.show_default and param.default is not None else ""
    return (param.help or "") + default


# --- plugins ----------------------------------------------------------------------------------------------------

TITLES = {"reset": "Reset backends", "probe": "Probes", "harness": "Harnesses"}


def plugin_options() -> str:
    """Every plugin that runq brings, with its options.

    Raises:
        LookupError: the installation is older than pyproject.toml, or a plugin cannot be loaded.
    """
    from runq.discovery import load, offers

    declared = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    installed = {(f"runq.{offer.kind}", offer.name) for offer in offers() if offer.distribution == "runq"}
    if differing := installed ^ {(group, name) for group, names in declared.items() for name in names}:
        names = ", ".join(sorted(name for _, name in differing))
        raise LookupError(f"installed plugins differ from pyproject.toml ({names}): run `pip install -e .` again")
    parts: list[str] = []
    kind = ""
    for offer in offers():
        if offer.distribution != "runq":
            continue
        cls = load(offer).cls
        if cls is None:
            raise LookupError(offer.name)
        if offer.kind != kind:
            kind = offer.kind
            parts.append(f"### {TITLES[kind]}")
        parts.append(f"#### `{offer.name}`\n\n{paragraph(cls.__doc__)}{_formula(cls)}\n\n{_plugin_table(cls)}")
        for field in attrs.fields(cls):
            inner = inner_classes(field.type)
            parts.extend(f"Each value of `{field.alias}`:\n\n{_plugin_table(found)}" for found in inner)
    return "\n\n".join(parts)


def _formula(cls: type[Any]) -> str:
    formula = getattr(cls, "formula", None)
    if formula is None:
        return ""
    module = sys.modules[cls.__module__]
    by_platform: Callable[[str], str] | None = getattr(module, "formula_for", None)
    if by_platform is None:
        return f"\n\nReads: {formula}."
    return f"\n\nReads on Linux: {by_platform('linux')}. Elsewhere: {by_platform('darwin')}."


def _plugin_table(cls: type[Any]) -> str:
    attrs.resolve_types(cls)
    rows = [
        [f"`{field.alias}`", _plain(field.type), default_words(field.default), field.metadata["description"]]
        for field in attrs.fields(cls)
        if field.init
    ]
    return table(("option", "value", "default", "meaning"), rows) if rows else "No options."


def _plain(tp: Any) -> str:
    members = get_args(tp) if get_origin(tp) in (Union, types.UnionType) else (tp,)
    words = [
        re.sub(r"\[\w+\]\(#\w+\)", "mapping", type_words(member)) for member in members if member is not type(None)
    ]
    return " or ".join(words)


# --- memory -----------------------------------------------------------------------------------------------------


def settle_table() -> str:
    """What `python -m bench.settle` prints; its traces have a fixed seed."""
    argv = [sys.executable, "-m", "bench.settle"]
    done = subprocess.run(argv, cwd=DOCS.parent, capture_output=True, text=True, check=True)
    return f"```text\n{done.stdout.rstrip()}\n```"


# --- laws -------------------------------------------------------------------------------------------------------


def law_table() -> str:
    """Every law that the fault campaign checks, in the words of the function that does."""
    from bench.faults.one_run import OWN_LAWS
    from bench.laws import LAWS
    from bench.laws_of_files import LAWS_OF_FILES

    def rows(laws: Mapping[str, Any]) -> list[tuple[str, str]]:
        return [(name, " ".join(paragraph(law.__doc__).split())) for name, law in laws.items()]

    head = ("law", "what it says")
    parts = [
        ("Over the events alone", rows(LAWS)),
        ("Over the files beside the journal", rows(LAWS_OF_FILES)),
        ("Of a run", [(name, f"{text[0].upper()}{text[1:]}.") for name, text in OWN_LAWS.items()]),
    ]
    return "\n\n".join(f"### {title}\n\n{table(head, found)}" for title, found in parts)


# --- exports ----------------------------------------------------------------------------------------------------


def export_tables() -> str:
    """The tables that `runq export` writes."""
    from runq_journal.tables import TABLES

    return "\n\n".join(
        f"### `{one.name}`\n\n{one.about[0].upper()}{one.about[1:]}.\n\n"
        + table(("column", "type", "says"), [(f"`{c.name}`", c.type, c.about) for c in one.columns])
        for one in TABLES.values()
    )


GENERATORS: Mapping[str, Callable[[], str]] = {
    "queue-keys": queue_keys,
    "event-kinds": event_kinds,
    "tables": event_columns,
    "views": view_columns,
    "commands": commands,
    "plugin-options": plugin_options,
    "settle-table": settle_table,
    "laws": law_table,
    "export-tables": export_tables,
}


def current(text: str) -> str:
    """A page with every block as the code has it now.

    Raises:
        KeyError: a block's name is unknown.
    """
    return BLOCK.sub(lambda found: f"{found[1]}\n{GENERATORS[found[2]]()}\n\n{found[3]}", text)


def stale_pages() -> dict[Path, str]:
    """The pages that are not current, with what they should hold."""
    pages = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))}
    fresh = {page: current(text) for page, text in pages.items()}
    return {page: text for page, text in fresh.items() if text != pages[page]}


def main() -> int:
    """Write the pages, or check them."""
    stale = stale_pages()
    if "--check" in sys.argv[1:]:
        for page in stale:
            sys.stderr.write(f"{page} is not current: run `python docs/generate.py`\n")
        return 1 if stale else 0
    for page, text in stale.items():
        page.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{page}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
