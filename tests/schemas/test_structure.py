"""Plugin options into their class, exactly: no coercion, every problem at its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs
import pytest

from runq_schemas.document import read_document
from runq_schemas.errors import PluginError
from runq_schemas.queue import described
from runq_schemas.structure import OptionError, OptionErrors, structure_options


@attrs.frozen(kw_only=True)
class Server:
    command: tuple[str, ...]
    port: int = 8080


def _even(_: object, attribute: attrs.Attribute[Any], value: int) -> None:
    if value % 2:
        raise ValueError(f"{attribute.name} must be even, not {value}")


def _local(_: object, __: object, value: str) -> None:
    if value != "localhost":
        raise PluginError("only localhost can be seen", remedy="Write localhost.")


@attrs.frozen(kw_only=True)
class Plugin:
    name: str = "x"
    count: int = 0
    wait_s: float = attrs.field(default=1.0, metadata=described("Seconds.", above=0))
    verbose: bool = False
    args: tuple[str, ...] = ()
    more: list[int] = attrs.field(factory=list)
    headers: Mapping[str, str] = attrs.field(factory=dict)
    mode: Literal["fast", "slow"] = "fast"
    server: Server | None = None
    models: Mapping[str, Server] = attrs.field(factory=dict)
    host: str | None = None
    limit: int | None = None
    command: str | tuple[str, ...] = ""
    level: bool | int | float | str = "x"
    choice: Literal["auto"] | float = "auto"
    body: Mapping[str, Any] = attrs.field(factory=dict)
    anything: Any = None
    steps: int = attrs.field(default=0, validator=_even)
    where: str = attrs.field(default="localhost", validator=_local)
    private: int = attrs.field(init=False, default=7)


@attrs.frozen
class Bare:
    pass


@attrs.frozen
class Needs:
    url: str


def options(yaml: str) -> Mapping[str, Any]:
    return read_document(yaml, "queue.yaml").data


def problems(cls: type, given: Mapping[str, Any]) -> list[tuple[tuple[str | int, ...], str, str]]:
    with pytest.raises(OptionErrors) as caught:
        structure_options(cls, given)
    assert isinstance(caught.value, OptionError) and isinstance(caught.value, PluginError)
    assert caught.value.message == caught.value.problems[0].message
    return [(problem.path, problem.message, problem.remedy) for problem in caught.value.problems]


def test_options_of_every_kind() -> None:
    plugin = structure_options(
        Plugin,
        options(
            """
            name: 12
            count: 3
            wait_s: 2
            verbose: yes
            args: [-c, 1, "null"]
            more: [1, 2]
            headers: {A: true, B: , C: ~, D: "x"}
            mode: slow
            server: {command: [llama-server], port: 1}
            models: {"google/gemma": {command: [a, b]}}
            host: null
            limit: 4
            command: [a, b]
            level: 8
            choice: 1.5
            body: {a: false, b: "false", c: 1e-3, d: [~]}
            anything: 0.5
            """
        ),
    )
    assert plugin == Plugin(
        name="12",
        count=3,
        wait_s=2.0,
        verbose=True,
        args=("-c", "1", "null"),
        more=[1, 2],
        headers={"A": "true", "B": "", "C": "~", "D": "x"},
        mode="slow",
        server=Server(command=("llama-server",), port=1),
        models={"google/gemma": Server(command=("a", "b"))},
        host=None,
        limit=4,
        command=("a", "b"),
        level=8,
        choice=1.5,
        body={"a": False, "b": "false", "c": 0.001, "d": [None]},
        anything=0.5,
    )
    assert type(plugin.name) is str
    assert type(plugin.wait_s) is float
    assert all(type(arg) is str for arg in plugin.args)
    assert all(type(key) is str for key in plugin.headers)


def test_python_values_are_options_too() -> None:
    server = Server(command=("a",))
    given = {
        "name": "x", "count": 5, "wait_s": 2, "verbose": True, "args": ("a",), "server": server, "host": None,
        "body": {"a": None, "b": 1.5}, "level": True,
    }  # fmt: skip
    assert structure_options(Plugin, given) == Plugin(
        name="x", count=5, wait_s=2.0, verbose=True, args=("a",), server=server, body={"a": None, "b": 1.5}, level=True
    )
    assert structure_options(Bare, {}) == Bare()


@pytest.mark.parametrize(
    ("yaml", "kept"),
    [("level: 8", 8), ("level: 8.5", 8.5), ("level: on", True), ("level: '8'", "8"), ("level: x", "x"),
     ("choice: auto", "auto"), ("command: '3'", "3"), ("host: '~'", "~"), ("host: x", "x"), ("limit: ~", None)],
)  # fmt: skip
def test_unions_choose_by_what_is_written(yaml: str, kept: object) -> None:
    value = getattr(structure_options(Plugin, options(yaml)), yaml.partition(":")[0])
    assert value == kept
    assert type(value) is type(kept)


@pytest.mark.parametrize(
    ("yaml", "path", "message", "remedy"),
    [
        ("count: 3.9", ("count",), "`count` must be a whole number, not `3.9`", "digits only"),
        ("count: '3'", ("count",), '`count` must be a whole number, not the text "3"', "Remove the quotes"),
        ("count: true", ("count",), "`count` must be a whole number, not `true`", "digits only"),
        ("count: 010", ("count",), "`count` is 010, which readers", "Write 10"),
        ("count:", ("count",), "`count` has no value", "Write a value"),
        ("count: ~", ("count",), "`count` is ~, which is no value", "remove the key"),
        ("count: {a: 1}", ("count",), "not a mapping", "digits only"),
        ("wait_s: 3s", ("wait_s",), "`wait_s` must be a number, not `3s`", "without a unit"),
        ("wait_s: '3'", ("wait_s",), "`wait_s` must be a number", "Remove the quotes"),
        ("wait_s: ''", ("wait_s",), "`wait_s` must be a number", "without a unit"),
        ("wait_s: .inf", ("wait_s",), "not a finite number", "finite"),
        ("wait_s: 0", ("wait_s",), "`wait_s` must be more than 0, not 0", "above 0"),
        ("verbose: 'false'", ("verbose",), '`verbose` must be true or false, not the text "false"', "quotes"),
        ("verbose: 1", ("verbose",), "`verbose` must be true or false, not `1`", "Write true or false"),
        ("name:", ("name",), "`name` has no value", "Write a value"),
        ("name: null", ("name",), "`name` is null, which is no value", '"null" in quotes'),
        ("name: [a]", ("name",), "`name` must be text, not a list", "quotes"),
        ('name: "a\\0"', ("name",), "`name` holds a NUL character", "Remove"),
        ("args: x", ("args",), "`args` must be a list, not `x`", "Write `[x]`"),
        ("args: {a: b}", ("args",), "`args` must be a list, not a mapping", "Write a list"),
        ("args: [a, [b]]", ("args", 1), "`args[1]` must be text, not a list", "one value"),
        ("headers: x", ("headers",), "`headers` must be a mapping, not `x`", "key: value"),
        ("headers: {a: [b]}", ("headers", "a"), "`headers.a` must be text", "one value"),
        ("mode: fsat", ("mode",), "`mode` must be fast or slow, not `fsat`", "Did you mean `fast`?"),
        ("mode: x", ("mode",), "`mode` must be fast or slow, not `x`", "fast, slow"),
        ("server: x", ("server",), "`server` must be a mapping, not `x`", "key: value"),
        ("server: {port: 1}", ("server", "command"), "`server.command` is missing", "Add `command:`"),
        ("models: {a: {command: [a], prot: 1}}", ("models", "a", "prot"), "`prot` is not a key", "`port`"),
        ("limit: x", ("limit",), "`limit` must be a whole number", "digits"),
        ("limit:", ("limit",), "`limit` has no value", "Write a value"),
        ("command: {a: b}", ("command",), "`command` must be text or a list, not a mapping", "text or a list"),
        ("choice: x", ("choice",), "`choice` must be auto or a number, not `x`", "auto or a number"),
        ("body: {a: [1, .nan]}", ("body", "a", 1), "`body.a[1]` is .nan", "finite"),
        ("steps: 3", ("steps",), "steps must be even, not 3", "Correct"),
        ("where: x", (), "only localhost can be seen", "Write localhost."),
        ("private: 3", ("private",), "`private` is not a key", "Known here"),
        ("nmae: x", ("nmae",), "`nmae` is not a key", "Did you mean `name`?"),
    ],
)  # fmt: skip
def test_refusals(yaml: str, path: tuple[str | int, ...], message: str, remedy: str) -> None:
    ((found_path, found_message, found_remedy),) = problems(Plugin, options(yaml))
    assert found_path == path
    assert message in found_message
    assert remedy in found_remedy


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": "3"}, "`count` must be a whole number"),
        ({"count": 3.0}, "`count` must be a whole number, not `3.0`"),
        ({"count": True}, "`count` must be a whole number, not `True`"),
        ({"count": None}, "`count` has no value"),
        ({"wait_s": float("nan")}, "`wait_s` must be a finite number, not nan"),
        ({"wait_s": True}, "`wait_s` must be a number"),
        ({"verbose": "true"}, "`verbose` must be true or false"),
        ({"name": 5}, "`name` must be text, not `5`"),
        ({"headers": {"a": None}}, "`headers.a` must be text, not null"),
        ({"name": ["x" * 90]}, "`name` must be text, not a list"),
        ({"count": "x" * 90}, "x..."),
    ],
)
def test_refusals_of_python_values(given: Mapping[str, Any], message: str) -> None:
    ((_, found, _),) = problems(Plugin, given)
    assert message in found


def test_every_problem_is_found() -> None:
    found = problems(Plugin, options("count: x\nargs: [[a], b, {c: d}]\nzzz: 1\nserver: {prt: 1}\n"))
    assert {path for path, _, _ in found} == {
        ("count",), ("args", 0), ("args", 2), ("zzz",), ("server", "prt"), ("server", "command"),
    }  # fmt: skip


def test_a_class_without_options_and_one_that_needs_some() -> None:
    ((path, message, remedy),) = problems(Bare, {"host": "x"})
    assert (path, message) == (("host",), "`host` is not a key that is known here")
    assert "remove it" in remedy
    assert problems(Needs, {}) == [(("url",), "`url` is missing", "Add `url:` and a value.")]


def test_one_option_error_lists_itself() -> None:
    error = OptionError(("a",), "`a` is wrong", "Mend it.")
    assert error.problems == (error,)
    assert error.exit_code == 2
    assert str(error) == "`a` is wrong\n  Mend it."


def test_options_that_are_no_mapping() -> None:
    with pytest.raises(OptionErrors) as caught:
        structure_options(Plugin, "x")  # type: ignore[arg-type]
    assert "the options must be a mapping" in caught.value.message
