"""What makes a step the same step."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runq.identity import IDENTITY_VERSION, difference, file_digest, identity_of, step_parts
from runq.plugin import ModelSpec, Step
from runq.redact import Redactor

HELLO = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
"""`printf 'hello\\n' | sha256sum`"""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(-10, 10) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text(max_size=4), json_values, max_size=3)


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    path = tmp_path / "pack.yaml"
    path.write_bytes(b"hello\n")
    return path


def parts_of(pack: Path, **changes: Any) -> dict[str, Any]:
    step = Step(
        name=changes.get("step", "eval"),
        artifacts=changes.get("artifacts", ("responses.jsonl",)),
        reads=changes.get("reads", (pack,)),
        settings=changes.get("settings", {}),
    )
    return step_parts(
        harness=changes.get("harness", "touchstone"),
        step=step,
        model=changes.get("model", ModelSpec(id="m")),
        predecessor=changes.get("predecessor"),
    )


def by_hand(parts: Mapping[str, Any]) -> str:
    """The documented encoding once more: compact JSON, keys sorted, files by digest alone."""
    data = {key: parts[key] for key in ("artifacts", "harness", "model", "predecessor", "settings", "step", "version")}
    data["files"] = [digest for _, digest in parts["files"]]
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return "v1:sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def test_the_golden_identity_never_changes(pack: Path) -> None:
    # printf '%s' '{"artifacts":["responses.jsonl"],"files":["5891…be03"],"harness":"touchstone","model":{"extra_body":
    # {},"id":"m","max_tokens_default":400,"quant":"","reasoning_headroom_tokens":0},"predecessor":null,"settings":{},
    # "step":"eval","version":1}' | sha256sum
    golden = "v1:sha256:ba0039b477a5e0c5528d74e58ba23831716aad432a31573f7df2b7406dc97a83"
    assert identity_of(parts_of(pack)) == golden
    assert by_hand(parts_of(pack)) == golden


@given(body=objects, extra=objects, chosen=objects, before=st.none() | st.text(max_size=5))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_what_an_independent_implementation_says(
    pack: Path, body: dict[str, Any], extra: dict[str, Any], chosen: dict[str, Any], before: str | None
) -> None:
    parts = parts_of(pack, model=ModelSpec(id="m", extra_body=body, extra=extra), settings=chosen, predecessor=before)
    assert identity_of(parts) == by_hand(parts)


@given(
    body=st.dictionaries(st.text(max_size=4), objects, min_size=2, max_size=4), order=st.randoms(use_true_random=False)
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_keys_does_not_matter(pack: Path, body: dict[str, Any], order: Any) -> None:
    def shuffled(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key]) for key in keys}

    first = parts_of(pack, model=ModelSpec(id="m", extra_body=body), settings=body)
    second = parts_of(pack, model=ModelSpec(id="m", extra_body=shuffled(body)), settings=shuffled(body))
    assert identity_of(first) == identity_of(second)


@given(parts=objects)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_journal_gives_back_the_same_identity(pack: Path, parts: dict[str, Any]) -> None:
    now = parts_of(pack, model=ModelSpec(id="m", extra_body=parts), settings=parts)
    stored = json.loads(json.dumps(now))
    assert identity_of(stored) == identity_of(now)
    assert difference(stored, now) == ""


def test_paths_and_names_of_files_do_not_matter(tmp_path: Path) -> None:
    for name in ("a/pack.yaml", "elsewhere/office.yaml"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"hello\n")
    one, other = (parts_of(tmp_path / name) for name in ("a/pack.yaml", "elsewhere/office.yaml"))
    assert one["files"] == [["pack.yaml", HELLO]]
    assert identity_of(one) == identity_of(other)
    assert str(tmp_path) not in json.dumps(one)


CHANGES: dict[str, dict[str, Any]] = {
    "model id": {"model": ModelSpec(id="n")},
    "quant": {"model": ModelSpec(id="m", quant="q4")},
    "max_tokens_default": {"model": ModelSpec(id="m", max_tokens_default=401)},
    "headroom": {"model": ModelSpec(id="m", reasoning_headroom_tokens=1)},
    "extra_body": {"model": ModelSpec(id="m", extra_body={"think": False})},
    "extra_body as a string": {"model": ModelSpec(id="m", extra_body={"think": "false"})},
    "extra_body as a number": {"model": ModelSpec(id="m", extra_body={"think": 0})},
    "extra_body as a float": {"model": ModelSpec(id="m", extra_body={"think": 0.0})},
    "extra_body as null": {"model": ModelSpec(id="m", extra_body={"think": None})},
    "an unknown field": {"model": ModelSpec(id="m", extra={"seed": 1})},
    "an unknown field as a string": {"model": ModelSpec(id="m", extra={"seed": "1"})},
    "settings": {"settings": {"judge_model": None}},
    "a setting's value": {"settings": {"judge_model": "j"}},
    "harness": {"harness": "command"},
    "step": {"step": "judge"},
    "predecessor": {"predecessor": "v1:sha256:00"},
    "artifacts": {"artifacts": ("responses.jsonl", "more.csv")},
    "no file": {"reads": ()},
}


def test_every_part_makes_another_identity(pack: Path) -> None:
    assert {field.name for field in attrs.fields(ModelSpec)} == {
        "id",
        "quant",
        "max_tokens_default",
        "reasoning_headroom_tokens",
        "extra_body",
        "extra",
    }, "a new field of ModelSpec needs a line in CHANGES"
    identities = [identity_of(parts_of(pack))] + [identity_of(parts_of(pack, **change)) for change in CHANGES.values()]
    assert len(set(identities)) == len(identities)


def test_one_byte_of_a_file_makes_another_identity(pack: Path) -> None:
    before = identity_of(parts_of(pack))
    pack.write_bytes(b"hello\r\n")
    assert identity_of(parts_of(pack)) != before


def test_the_order_of_files_matters(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("1")
    two.write_text("2")
    assert identity_of(parts_of(one, reads=(one, two))) != identity_of(parts_of(one, reads=(two, one)))


def test_the_version_stands_in_front_and_in_the_hash(pack: Path) -> None:
    parts = parts_of(pack)
    newer = {**parts, "version": IDENTITY_VERSION + 1}
    assert identity_of(parts).startswith(f"v{IDENTITY_VERSION}:sha256:")
    assert identity_of(newer).startswith(f"v{IDENTITY_VERSION + 1}:sha256:")
    assert identity_of(parts).rpartition(":")[2] != identity_of(newer).rpartition(":")[2]


def test_what_is_no_number_has_no_identity(pack: Path) -> None:
    with pytest.raises(ValueError):
        identity_of(parts_of(pack, settings={"temperature": float("nan")}))


# --- files and folders ------------------------------------------------------------------------------------------


def test_a_file_is_its_bytes(pack: Path) -> None:
    assert file_digest(pack) == HELLO


def test_a_folder_is_the_names_and_bytes_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    (folder / "b").mkdir(parents=True)
    (folder / "b" / "two.txt").write_bytes(b"hello\n")
    (folder / "one.txt").write_bytes(b"")
    empty = hashlib.sha256(b"").hexdigest()
    by_hand = hashlib.sha256(f"b/two.txt\0{HELLO}\none.txt\0{empty}\n".encode()).hexdigest()
    assert file_digest(folder) == by_hand

    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"made by running it")
    assert file_digest(folder) == by_hand

    (folder / "one.txt").rename(folder / "uno.txt")
    assert file_digest(folder) != by_hand


def test_a_folder_may_hold_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    try:
        (folder / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"hello\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert file_digest(folder) == hashlib.sha256(b"caf\xe9.txt\0" + HELLO.encode() + b"\n").hexdigest()


def test_a_missing_file_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        parts_of(tmp_path / "gone.yaml")


# --- the difference in words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": ModelSpec(id="m", quant="q8")}, "the model's settings changed"),
        ({"model": ModelSpec(id="m", extra_body={"think": False})}, "the model's settings changed"),
        ({"harness": "command"}, "the harness is now command"),
        ({"settings": {"judge_model": "j"}}, "the harness's settings changed"),
        ({"artifacts": ("other.jsonl",)}, "the harness's settings changed"),
        ({"predecessor": "v1:sha256:00"}, "the step before it changed"),
        ({"reads": ()}, "the list of files it reads changed"),
        (
            {"harness": "command", "model": ModelSpec(id="n"), "predecessor": "x"},
            "the harness is now command; the model's settings changed",
        ),
    ],
)
def test_the_difference_is_told_in_words(pack: Path, change: dict[str, Any], words: str) -> None:
    before = json.loads(json.dumps(parts_of(pack)))
    assert difference(before, parts_of(pack, **change)) == words


def test_a_changed_file_is_named(tmp_path: Path) -> None:
    config, pack = tmp_path / "config.yaml", tmp_path / "packs.yaml"
    config.write_text("a")
    pack.write_text("b")
    before = parts_of(pack, reads=(config, pack))
    pack.write_text("c")
    assert difference(before, parts_of(pack, reads=(config, pack))) == "packs.yaml changed"
    config.write_text("d")
    assert difference(before, parts_of(pack, reads=(config, pack))) == "config.yaml, packs.yaml changed"


def test_true_is_not_one(pack: Path) -> None:
    before = parts_of(pack, settings={"think": True})
    assert difference(before, parts_of(pack, settings={"think": 1})) == "the harness's settings changed"


def test_another_version_is_all_there_is_to_say(pack: Path) -> None:
    now = parts_of(pack)
    assert difference({**now, "version": 0, "harness": "x"}, now) == "runq computes identities differently now"
    assert difference({}, now) == "runq computes identities differently now"


def test_a_secret_hidden_in_the_journal_is_no_change(pack: Path) -> None:
    secret = "sk-0123456789abcdef"
    chosen = {"argv": ["python", "eval.py", "--api-key", secret], "url": f"http://user:{secret}@box/"}
    now = parts_of(pack, settings=chosen, predecessor="new")
    stored = Redactor()(parts_of(pack, settings=chosen, predecessor="old"))
    assert secret not in json.dumps(stored)
    assert difference(stored, now) == "the step before it changed"
    elsewhere = parts_of(pack, settings={**chosen, "argv": ["python", "judge.py", "--api-key", secret]})
    assert difference(stored, elsewhere) == "the harness's settings changed"
