"""The pages against the code: nothing that a user can write, call or read is left out, and nothing is promised."""

from __future__ import annotations

import ast
import configparser
import importlib.util
import inspect
import plistlib
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import get_args

import attrs
import click
import pytest

from runq import plugin
from runq.cli import COMMANDS, EPILOG, cli
from runq_journal.view_files import views
from runq_schemas.errors import RunqError
from runq_schemas.events import EVENT_CLASSES
from runq_schemas.parse import parse_queue
from runq_schemas.queue import Defaults, EntryFields, ModelSpec, QueueFile, SettleSpec

REPO = Path(__file__).parents[2]
DOCS = REPO / "docs"
PAGES = sorted(
    [*DOCS.rglob("*.md"), *(REPO / "examples").rglob("*.md"), *(REPO / f"{n}.md" for n in ("README", "CONTRIBUTING"))]
)


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """The part of a page below a heading, up to the next heading of the same level or a higher one."""
    level = heading.count("#", 0, heading.index(" "))
    start = text.index(f"\n{heading}\n") + len(heading) + 2
    rest = text[start:]
    following = re.search(rf"^#{{1,{level}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


@pytest.fixture(scope="session")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_generated_parts_are_current(generate):
    stale = [str(path.relative_to(REPO)) for path in generate.stale_pages()]
    assert not stale, f"run `python docs/generate.py`: {stale}"


def test_every_generator_has_a_place(generate):
    written = {name for path in DOCS.glob("*.md") for _, name, _ in generate.BLOCK.findall(path.read_text())}
    assert written == set(generate.GENERATORS)


# --- nothing is left out ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_and_option_is_documented(name):
    context = click.Context(cli, info_name="runq")
    command = cli.get_command(context, name)
    assert command is not None
    assert command.help, name
    text = section(page("commands.md"), f"### `runq {name}`")
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, param.name
            for word in param.opts:
                assert f"`{word}" in text, word
        else:
            assert (param.name or "").upper() in text


def test_the_groups_own_options_are_documented():
    text = section(page("commands.md"), "### `runq`")
    for param in cli.params:
        assert all(f"`{word}`" in text for word in param.opts)


def test_every_exit_code_is_documented_and_no_other():
    documented = {
        int(n) for n in re.findall(r"^\| (\d+) \|", section(page("commands.md"), "## Exit codes"), re.MULTILINE)
    }
    in_help = {int(number) for number in re.findall(r"(?:^|[\s,])(\d+) [a-z]", EPILOG.partition("Exit codes:")[2])}
    assert documented == in_help

    def of(cls):
        yield cls.exit_code
        for inner in cls.__subclasses__():
            yield from of(inner)

    assert documented == {0, 130, *of(RunqError)}


@pytest.mark.parametrize("kind", list(EVENT_CLASSES))
def test_every_event_kind_and_field_is_documented(kind):
    text = section(section(page("journal.md"), "## Events"), f"### `{kind}`")
    for field in attrs.fields(EVENT_CLASSES[kind]):
        assert f"`{field.name}`" in text


def test_every_nested_value_of_an_event_is_documented():
    text = page("journal.md")
    for cls in EVENT_CLASSES.values():
        attrs.resolve_types(cls)
        for field in attrs.fields(cls):
            for inner in (field.type, *get_args(field.type)):
                if isinstance(inner, type) and attrs.has(inner):
                    fields = section(text, f"### {inner.__name__}")
                    assert all(f"`{name}`" in fields for name in attrs.fields_dict(inner))


@pytest.mark.parametrize("view", views(), ids=lambda view: view.name)
def test_every_view_and_column_is_documented(view):
    text = section(section(page("journal.md"), "## Views"), f"### `{view.name}`")
    assert view.about in text
    assert view.columns
    assert all(f"| `{column}` | " in text for column in view.columns)


@pytest.mark.parametrize("cls", [QueueFile, Defaults, EntryFields, ModelSpec, SettleSpec])
def test_every_queue_key_is_documented(cls):
    text = section(page("queue-file.md"), "## Keys")
    for field in attrs.fields(cls):
        if field.metadata.get("schema") != "additional":
            assert f"| `{field.name}` | " in text


TITLES = {"runq.reset": "### Reset backends", "runq.probe": "### Probes", "runq.harness": "### Harnesses"}


@pytest.mark.parametrize(
    "point",
    [p for kind in ("reset", "probe", "harness") for p in entry_points(group=f"runq.{kind}") if p.dist.name == "runq"],
    ids=lambda point: f"{point.group}-{point.name}",
)
def test_every_plugin_and_option_is_documented(point):
    text = section(section(page("plugins.md"), TITLES[point.group]), f"#### `{point.name}`")
    classes = [point.load()]
    for cls in classes:
        attrs.resolve_types(cls)
        for field in attrs.fields(cls):
            assert f"| `{field.alias}` | " in text
            assert field.metadata["description"] in text
            classes += [inner for inner in get_args(field.type) if isinstance(inner, type) and attrs.has(inner)]


@pytest.mark.parametrize("name", plugin.__all__)
def test_every_name_for_plugins_is_documented(name):
    assert re.search(rf"^\\|[^|]*`{name}`", page("plugins.md"), re.MULTILINE)


@pytest.mark.parametrize(
    "cls",
    [
        c
        for c in vars(plugin).values()
        if isinstance(c, type) and getattr(c, "_is_protocol", False) and c.__module__ == plugin.__name__
    ],
)
def test_every_method_of_a_plugin_is_documented(cls):
    """With its arguments, so that a changed interface changes the page."""
    for name, member in vars(cls).items():
        if inspect.isfunction(member) and not name.startswith("_") and cls.__name__ not in ("Server", "Supervisor"):
            words = [word for word in inspect.signature(member).parameters if word != "self"]
            assert f"`{name}({', '.join(words)})`" in page("plugins.md")


def test_every_environment_variable_that_is_read_is_documented():
    named: set[str] = set()
    for folder in ("runq", "plugins", "journal", "schemas"):
        for path in (REPO / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    named |= set(re.findall(r"\bRUNQ_[A-Z_]+\b|\bNO_COLOR\b|\bOLLAMA_HOST\b", node.value))
    text = page("commands.md")
    assert not [name for name in named if f"`{name}`" not in text]


# --- nothing is promised ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_a_page_names_no_command_that_does_not_exist(path):
    text = path.read_text(encoding="utf-8")
    code = re.findall(r"`([^`\n]+)`", text) + [line for line in text.splitlines() if line.startswith("    ")]
    for block in re.findall(r"```(?:console|text|sh)\n(.*?)```", text, re.DOTALL):
        code += block.splitlines()
    words = {word for line in code for word in re.findall(r"(?:^|[\s/$])runq ([a-z]+)\b", line)}
    assert words <= set(COMMANDS), words - set(COMMANDS)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_every_link_leads_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {slug(heading) for heading in headings}, target


def slug(heading: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def queues() -> list[tuple[str, str]]:
    found = []
    for path in PAGES:
        blocks = re.findall(r"```yaml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        found += [(f"{path.relative_to(REPO)}-{number}", block) for number, block in enumerate(blocks)]
    return found


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in queues()])
def test_every_queue_file_on_a_page_is_one(text):
    from runq.discovery import Plugins

    spec = parse_queue(text, path=Path("queue.yaml"))
    for entry in spec.entries:
        third_party = [use.name for use in entry.probes if use.name == "process_rss"]
        for kind, uses in (("reset", [entry.reset]), ("probe", entry.probes), ("harness", [entry.harness])):
            for use in uses:
                if use.name not in third_party:
                    Plugins().make(kind, use.name, use.options)


# --- the recipes that other programs read -----------------------------------------------------------------------


def test_the_launchd_recipe_is_a_property_list():
    job = plistlib.loads(re.findall(r"```xml\n(.*?)```", page("recipes.md"), re.DOTALL)[0].encode())
    assert job["ProgramArguments"][-2:] == ["night", "queue.yaml"]
    assert "/.lmstudio/bin" in job["EnvironmentVariables"]["PATH"]
    assert job["StartCalendarInterval"] == {"Hour": 23, "Minute": 0}


def systemd_files() -> dict[str, str]:
    """The two unit files, by the name that stands above each."""
    text = section(page("recipes.md"), "## systemd")
    found = re.findall(r"^`\S+/(runq\.\w+)`\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    return {name: re.sub(r"^    ", "", body, flags=re.MULTILINE).partition("systemctl")[0] for name, body in found}


def test_the_systemd_recipe_is_made_of_unit_files(tmp_path):
    files = systemd_files()
    assert set(files) == {"runq.service", "runq.timer"}
    for name, text in files.items():
        parsed = configparser.ConfigParser(interpolation=None)
        parsed.optionxform = str  # type: ignore[assignment, method-assign]
        parsed.read_string(text)
        if name == "runq.service":
            assert parsed["Service"]["ExecStart"].endswith("runq night queue.yaml")
            assert "/.lmstudio/bin" in parsed["Service"]["Environment"]
        else:
            assert "OnCalendar" in parsed["Timer"]
            assert parsed["Install"]["WantedBy"] == "timers.target"


def test_the_cron_recipe_names_the_folder_of_lms():
    assert re.search(r"^    PATH=\S*/\.lmstudio/bin:", section(page("recipes.md"), "## cron"), re.MULTILINE)


def test_the_examples_in_python_run():
    for block in re.findall(r"```python\n(.*?)```", page("plugins.md"), re.DOTALL):
        if "runq_process_rss import" not in block:  # its test is run where the plugin is installed
            exec(compile(block, "plugins.md", "exec"), {"__name__": "example"})


def test_the_change_log_begins_with_this_version():
    from importlib.metadata import version

    text = (REPO / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version('runq'))}\b", text, re.MULTILINE)
