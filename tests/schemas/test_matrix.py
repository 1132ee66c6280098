"""The entries of a matrix: which, in which order, and where a message says they stand. Places are counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from runq_schemas.errors import QueueFileError
from runq_schemas.parse import parse_queue
from runq_schemas.place import Mark
from runq_schemas.queue import PluginUse, QueueSpec

MATRIX = """\
defaults: { retries: 1, cooldown_s: 5 }
matrix:
  models:
    - a
    - { id: b, quant: q4 }
  packs: [p.yaml, q.yaml]
  configs:
    - c.yaml
    - d.yaml
  judge_config: judge.yaml
  cooldown_s: 7
  reset: { backend: ollama, host: x }
"""


def parse(text: str) -> QueueSpec:
    return parse_queue(text, Path("queue.yaml"))


def refusal(text: str) -> str:
    with pytest.raises(QueueFileError) as caught:
        parse(text)
    return str(caught.value)


def test_by_model_then_pack_then_configuration() -> None:
    entries = parse(MATRIX).entries
    assert [entry.key for entry in entries] == [
        ("c.yaml", "p.yaml", "a"), ("d.yaml", "p.yaml", "a"), ("c.yaml", "q.yaml", "a"), ("d.yaml", "q.yaml", "a"),
        ("c.yaml", "p.yaml", "b"), ("d.yaml", "p.yaml", "b"), ("c.yaml", "q.yaml", "b"), ("d.yaml", "q.yaml", "b"),
    ]  # fmt: skip
    assert [entry.index for entry in entries] == list(range(8))
    assert [entry.model.quant for entry in entries] == [""] * 4 + ["q4"] * 4
    for entry in entries:  # every other key is each entry's; what the matrix has not comes from the defaults
        assert (entry.judge_config, entry.judge_model) == ("judge.yaml", None)
        assert (entry.cooldown_s, entry.retries) == (7.0, 1)
        assert entry.reset == PluginUse(name="ollama", options={"host": "x"})


def test_it_stands_behind_the_entries() -> None:
    queue = parse("matrix: { models: [a, b], pack: p }\nentries: [{ model: z }, { model: y, pack: p }]\n")
    assert [entry.key for entry in queue.entries] == [("", "", "z"), ("", "p", "y"), ("", "p", "a"), ("", "p", "b")]


def test_without_packs_and_configurations_there_is_one_entry_a_model() -> None:
    assert [entry.key for entry in parse("matrix: { models: [a, b] }\n").entries] == [("", "", "a"), ("", "", "b")]


def test_a_place_is_that_of_the_part_an_entry_was_made_from() -> None:
    queue = parse(MATRIX)
    assert queue.where("entries", 4) == "queue.yaml, entry 4, line 5, column 7"
    assert queue.mark_of("entries", 5, "model", "quant") == Mark(line=5, column=23)
    assert queue.mark_of("entries", 6, "pack") == Mark(line=6, column=19)
    assert queue.mark_of("entries", 7, "config") == Mark(line=9, column=7)
    assert queue.mark_of("entries", 7, "reset", "host") == Mark(line=12, column=35)
    assert queue.mark_of("entries", 7, "retries") == Mark(line=1, column=22)  # from the defaults


def test_the_place_of_a_reset_command() -> None:
    queue = parse('matrix:\n  models: [a]\n  reset_command: ""\n')
    assert queue.entries[0].reset.name == "none"
    assert queue.mark_of("entries", 0, "reset") == Mark(line=3, column=18)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "matrix:\n  models: [a, b, a]\n  pack: p\n",
            "queue.yaml, entry 2, line 2, column 18: entry 2 repeats entry 0 (line 2): the same config, pack and model"
            " id\n  Remove one of the two, or change its config, pack or model.",
        ),
        (
            "entries: [{ model: b, pack: p }]\nmatrix: { models: [a, b], packs: [p] }\n",
            "queue.yaml, entry 2, line 2, column 23: entry 2 repeats entry 0 (line 1): the same config, pack and model"
            " id\n  Remove one of the two, or change its config, pack or model.",
        ),
        (
            "matrix:\n  models: [a]\n  model: b\n",
            "queue.yaml, matrix, line 3, column 3: `model` is not a key that is known here\n  Did you mean `models`?",
        ),
        (
            "matrix:\n  models: [a]\n  packs: p.yaml\n",
            "queue.yaml, matrix, line 3, column 10: `packs` must be a list, not `p.yaml`\n  Write `[p.yaml]`.",
        ),
        (
            "matrix:\n  models: [a]\n  pack: p\n  packs: [q]\n",
            "queue.yaml, matrix, line 3, column 3: `pack` and `packs` say the same thing\n  Remove one of the two.",
        ),
        (
            "matrix:\n  models: [a, {quant: x}]\n",
            "queue.yaml, matrix, line 2, column 15: `models[1].id` is missing\n  Add `id:` and a value.",
        ),
        (
            "matrix:\n",
            "queue.yaml, matrix, line 1, column 1: `matrix` has no value\n  Write a value, or remove the key.",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    assert refusal(text) == message
