"""Reading YAML: data, exact places, and what is refused. Places are counted by hand."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import strictyaml
from hypothesis import given
from hypothesis import strategies as st

from runq_schemas.document import MAX_DEPTH, Document, _StrictLoader, read_document
from runq_schemas.errors import QueueFileError
from runq_schemas.place import Mark
from runq_schemas.scalar import InvalidValueError, Scalar, to_json


def read(content: str | bytes) -> Document:
    return read_document(content, "queue.yaml")


def refusal(content: str | bytes) -> QueueFileError:
    with pytest.raises(QueueFileError) as caught:
        read(content)
    return caught.value


def at(line: int, column: int) -> Mark:
    return Mark(line=line, column=column)


def test_scalars_know_how_they_were_written() -> None:
    data = read("a: 1\nb: '1'\nc: \"1\"\nd: |\n  1\ne: >-\n  x\n  y\nf: x\n  y\n").data
    assert data == {"a": "1", "b": "1", "c": "1", "d": "1\n", "e": "x y", "f": "x y"}
    assert [value.plain for value in data.values()] == [True, False, False, False, False, True]


def test_places_of_keys_and_values() -> None:
    document = read("---\n# note\na:\n  - x\n  - {b: 1,\n     c: 'two'}\nd: |\n  t\n")
    assert document.marks == {
        (): at(3, 1),
        ("a",): at(4, 3),
        ("a", 0): at(4, 5),
        ("a", 1): at(5, 5),
        ("a", 1, "b"): at(5, 9),
        ("a", 1, "c"): at(6, 9),
        ("d",): at(7, 4),
    }
    assert document.key_marks == {
        ("a",): at(3, 1),
        ("a", 1, "b"): at(5, 6),
        ("a", 1, "c"): at(6, 6),
        ("d",): at(7, 1),
    }


def test_places_after_what_misleads_line_counters() -> None:
    long = "word " * 60
    assert read(f'a: "{long}\n  {long}\n\n  end"\nb: 1\n').marks[("b",)] == at(5, 4)
    assert read("a: [1,\n\n  2,\n\n  3]\nb: 1\n").marks[("b",)] == at(6, 4)
    assert read("%YAML 1.2\n---\n\nb: 1\n").marks[("b",)] == at(4, 4)
    assert read("a: x\u2028y\nb: 1\n").marks[("b",)] == at(2, 4)
    assert read("a: \U0001f600\nb: {\U0001f600: 1}\n").marks[("b", "\U0001f600")] == at(2, 8)
    assert read("a: |\n  x\n\n# note\n\nb: 1\n").marks[("b",)] == at(6, 4)


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_byte_order_mark(start: str, end: str) -> None:
    document = read((start + f"a:{end}  b: 1{end}c: 2{end}").encode())
    assert document.data == {"a": {"b": "1"}, "c": "2"}
    assert document.marks[("a", "b")] == at(2, 6)
    assert document.key_marks[("c",)] == at(3, 1)
    assert document.key_marks[("a",)] == at(1, 1)


def test_an_absent_value_is_at_its_key() -> None:
    document = read("a:\n\n# note\nb:\n  c:\n")
    assert document.marks[("a",)] == at(1, 1)
    assert document.marks[("b", "c")] == at(5, 3)
    assert document.data["a"] == "" and document.data["a"].plain


def test_escape_pairs_become_one_character() -> None:
    assert read('a: "\\ud83d\\ude00 \\u00e4"').data == {"a": "\U0001f600 \u00e4"}


REFUSED: list[tuple[str, str | bytes, str, str, str]] = [
    ("empty", "", "line 1, column 1", "the file is empty", "at least one entry"),
    ("only comments", "# a\n# b\n", "line 1, column 1", "the file is empty", "at least one entry"),
    ("a list", "# a\n- b\n", "line 2, column 1", "not a list", "`entries:`"),
    ("text", "a:b\n", "line 1, column 1", "not text", "`entries:`"),
    ("NUL", "a: 1\nb: x\x00y\n", "line 2, column 5", "U+0000", "Remove it"),
    ("control character", "a: 1 # \x07\n", "line 1, column 8", "U+0007", "Remove it"),
    ("lone surrogate", "a: \ud800\n", "line 1, column 4", "U+D800", "Remove it"),
    ("half an escape pair", 'a:\n  "\\ud800"\n', "line 2, column 3", "half a character", "whole character"),
    ("bad UTF-8", b"a: 1\nb: \xc3\xa4\xff\n", "line 2, column 5", "byte 0xff is not UTF-8", "UTF-8"),
    ("UTF-16", "a: 1\n".encode("utf-16"), "line 1, column 1", "UTF-16", "UTF-8"),
    ("tab", "a:\n\tb: 1\n", "line 2, column 1", "a tab", "spaces"),
    ("tab after spaces", "a:\n  \tb: 1\n  c: 2\n", "line 2, column 3", "a tab", "spaces"),
    ("two documents", "---\na: 1\n---\nb: 1\n", "line 3, column 1", "second document", "Remove the `---`"),
    ("key twice", "a: 1\nb: 2\na: 3\n", "line 3, column 1", "`a` stands here twice; the first is on line 1", "one"),
    ("key twice in flow", "a: {b: 1,\n c: 2, 'b': 3}\n", "line 2, column 8", "`b` stands here twice", "Remove"),
    ("anchor", "a: &x 1\n", "line 1, column 4", "anchors", "`defaults`"),
    ("alias", "a: 1\nb: [*x]\n", "line 2, column 5", "aliases", "in quotes"),
    ("tag", "a: 1\nb: !!int 3\n", "line 2, column 4", "tags", "Remove the tag"),
    ("tag on a mapping", "a: !x {b: 1}\n", "line 1, column 4", "tags", "Remove the tag"),
    ("merge key", "a:\n  <<: {b: 1}\n", "line 2, column 3", "merge keys", "Write the keys out"),
    ("list as key", "? [x]\n: y\n", "line 1, column 3", "a key must be text", "plain name"),
    ("mapping as key", "a: {{b: c}: d}\n", "line 1, column 5", "a key must be text", "plain name"),
    ("no key", "a: 1\n: 2\n", "line 2, column 1", "a key is missing", "Write the key"),
    ("open list", "a: 1\nb: [1, 2\n", "line 2, column 4", "never closed", "`]`"),
    ("open mapping", "b: {c: 1\n\n\n", "line 1, column 4", "never closed", "`}`"),
    ("open at the end", "b: [", "line 1, column 4", "the file ends in the middle", "closing bracket"),
    ("bracket too many", "a: {b: 1}}\n", "line 1, column 10", "`}` closes nothing", "Remove it"),
    ("list goes on", "a: [1\nb: 2\n", "line 2, column 2", "`,` or `]` is missing", "Close the bracket"),
    ("open quote", "a: 1\nb: 'x\nc: 2\n", "line 2, column 4", "never closed", "closing quote"),
    ("two colons", "a: b: c\n", "line 1, column 5", "a `:` stands where no key can be", "quotes"),
    ("at sign", "a: @x\n", "line 1, column 4", "cannot begin with `@`", "quotes"),
    ("bad indentation", "a:\n  b: 1\n c: 2\n", "line 3, column 2", "does not fit the indentation", "Indent it"),
    ("list item astray", "a: - b\n", "line 1, column 4", "a list item", "line of its own"),
    ("no colon", "a: 1\nb\nc: 3\n", "line 2, column 1", "no `key: value`", "colon"),
    ("Windows path", 'a: "C:\\q"\n', "line 1, column 8", "backslash", "single quotes"),
    ("half an escape", 'a: "\\x1"\n', "line 1, column 7", "incomplete", "single quotes"),
    ("no value", "a: {b: 1}\nc: [1, , 2]\n", "line 2, column 8", "a value is missing", "Write the value"),
    ("question mark", "a: ? b\n", "line 1, column 4", "a `?` stands", "quotes"),
    ("unknown tag handle", "a: !x!y 1\n", "line 1, column 4", "tags", "Remove the tag"),
    ("no such character", 'a:\n  "x\\UFFFFFFFF"\n', "line 2, column 7", "this is not YAML", "Correct"),
    ("unknown YAML", "%YAML 9.9\n---\na: 1\n", "line 1, column 1", "this is not YAML", "Correct"),
    ("too deep", "a: " + "[" * 100, "line 1, column 43", "more than 40 levels", "brackets"),
    ("much too deep", "a:\n  b: " + "[" * 100_000, "line 2, column 44", "more than 40 levels", "brackets"),
]


@pytest.mark.parametrize(
    ("content", "where", "message", "remedy"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_refusals_name_place_fault_and_remedy(content: str | bytes, where: str, message: str, remedy: str) -> None:
    error = refusal(content)
    assert error.where == f"queue.yaml, {where}"
    assert message in error.message
    assert remedy in error.remedy
    assert error.exit_code == 2


def test_all_double_keys_are_reported_in_order_with_their_entry() -> None:
    error = refusal("entries:\n  - a: 1\n    a: 2\ndefaults: {b: 1, b: 2}\n")
    assert [problem.where for problem in error.problems] == [
        "queue.yaml, entry 0, line 3, column 5",
        "queue.yaml, defaults, line 4, column 18",
    ]


def test_nesting_up_to_the_limit_is_read() -> None:
    # The root is the first level, the scalar the last.
    brackets = MAX_DEPTH - 2
    value = read("a: " + "[" * brackets + "x" + "]" * brackets).data["a"]
    for _ in range(brackets):
        (value,) = value
    assert value == "x"


def test_quoted_special_keys_are_keys() -> None:
    assert read("'<<': 1\n'': 2\n").data == {"<<": "1", "": "2"}


@pytest.mark.parametrize(
    "failure",
    [AttributeError("odd"), strictyaml.YAMLError("odd"), RecursionError()],
    ids=["bug", "refusal", "stack"],
)
def test_whatever_strictyaml_raises_is_a_queue_file_error(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(strictyaml.ruamel, "load", broken)
    error = refusal("a: 1\n")
    assert error.where == "queue.yaml, line 1, column 1"
    assert error.remedy


@given(
    st.text("[]{}:,- \n\t\"'&*!|>%#?ax0", max_size=40)
    | st.lists(st.sampled_from(["a: 1\n", "a: 2\n", "- x\n", "b:\n", "  c: &d 1\n", "  - !t 1\n", "e: {f: [1, 2]}\n"]))
    .map("".join)
)  # fmt: skip
def test_strictyaml_refuses_while_it_loads_and_never_afterwards(text: str) -> None:
    def refuses(load: Callable[[], object]) -> bool:
        try:
            load()
        except (strictyaml.YAMLError, AttributeError, AssertionError, TypeError, ValueError, NotImplementedError):
            return True
        return False

    def dirty(schema: Any) -> bool:
        return refuses(lambda: strictyaml.dirty_load(text, schema, allow_flow_style=True))

    assert refuses(lambda: strictyaml.ruamel.load(text, Loader=_StrictLoader)) == dirty(lambda chunk: chunk)
    # The schema `Any` also trips over keys that are no text; here these are refused before strictyaml is asked.
    if dirty(strictyaml.Any()) and not dirty(lambda chunk: chunk):
        with pytest.raises(QueueFileError):
            read(text)


def test_reading_twice_the_entries_takes_twice_the_calls() -> None:
    """Counted, not timed: what copies a list for each of its items makes four times as many of twice the entries."""

    def calls(entries: int) -> int:
        count = 0

        def event(_frame: object, what: str, _argument: object) -> None:
            nonlocal count
            count += what in ("call", "c_call")

        text = "entries:\n" + "  - model: {id: m, quant: Q4}\n    pack: p.yaml\n" * entries
        sys.setprofile(event)
        try:
            read(text)
        finally:
            sys.setprofile(None)
        return count

    assert calls(400) <= 2.05 * calls(200)


def test_strictyaml_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(strictyaml.ruamel, "load", lambda text, **_: asked.append(text))
    read("\ufeffa: 1\n")
    assert asked == ["a: 1\n"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", None), ("~", None), ("null", None), ("Null", None), ("nULL", "nULL"),
        ("true", True), ("Yes", True), ("ON", True), ("false", False), ("no", False), ("off", False), ("y", "y"),
        ("0", 0), ("-0", 0), ("+12", 12), ("0x1F", 31), ("0o17", 15), ("9" * 200, int("9" * 200)),
        ("1e-3", 0.001), (".5", 0.5), ("5.", 5.0), ("-2.5E+2", -250.0), ("0.0", 0.0), ("01.5", 1.5),
        (".", "."), ("-", "-"), ("1.2.3", "1.2.3"), ("2026-01-02", "2026-01-02"), ("12:30", "12:30"),
        ("inf", "inf"), ("nan", "nan"), ("0xZ", "0xZ"), ("1_000_x", "1_000_x"), ("0b1", "0b1"), ("4bit", "4bit"),
    ],
)  # fmt: skip
def test_plain_scalars_as_json(written: str, meant: object) -> None:
    value = to_json(Scalar(written))
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize("written", ["false", "null", "3", ".inf", "010", ""])
def test_quoted_scalars_are_strings(written: str) -> None:
    value = to_json(Scalar(written, plain=False))
    assert value == written
    assert type(value) is str


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        (".inf", '".inf"'), ("-.Inf", '"-.Inf"'), (".NaN", '".NaN"'), ("1e999", '"1e999"'), ("-1e999", "finite"),
        ("010", "Write 10 if"), ("-007", "Write -7 if"), ("00", "Write 0 if"), ("1_000", "Write 1000 if"),
        ("9" * 5000, "shorter"), ("0x" + "f" * 5000, "shorter"),
    ],
)  # fmt: skip
def test_numbers_that_json_or_readers_do_not_agree_on(written: str, remedy: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        to_json({"a": [Scalar("x"), Scalar(written)]})
    (problem,) = caught.value.problems
    assert problem.path == ("a", 1)
    assert remedy in problem.remedy


def test_to_json_takes_python_values_and_finds_every_problem() -> None:
    assert to_json({"a": [1, 2.5, True, None, "3", ("x",)]}) == {"a": [1, 2.5, True, None, "3", ["x"]]}
    with pytest.raises(InvalidValueError) as caught:
        to_json({"a": float("inf"), "b": [Scalar("010")], "c": Path("x"), "d": b"x"})
    assert [problem.path for problem in caught.value.problems] == [("a",), ("b", 0), ("c",), ("d",)]


def test_scalars_survive_copies() -> None:
    for scalar in (Scalar("x"), Scalar("x", plain=False)):
        for twin in (copy.deepcopy(scalar), pickle.loads(pickle.dumps(scalar))):
            assert twin == "x"
            assert twin.plain is scalar.plain
