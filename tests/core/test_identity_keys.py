"""Every key of a queue file is part of a step's identity or not, and what is written down about it is true."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from runq.planning import fresh
from runq.prepared import PreparedQueue
from runq_schemas.queue import Defaults, EntryFields, HeartbeatSpec, Matrix, ModelSpec, QueueFile, SettleSpec

BASE = """\
defaults:
{defaults}
entries:
  - {{ config: config.yaml, pack: packs/office.yaml, judge_config: judge.yaml, model: m{entry} }}
"""

CHANGED: dict[str, str] = {
    # part of the identity
    "harness": """{ harness: command, steps: { eval: { argv: ["true"], artifacts: [a] } } }""",
    "config": "other.yaml",
    "pack": "packs/home.yaml",
    "judge_config": "other-judge.yaml",
    "judge_model": "k",
    "model": "n",
    # not
    "reset": "none",
    "reset_command": '"my-unload --all"',
    "probes": "[psutil_used]",
    "settle": "{ timeout_s: 7 }",
    "reset_before": "[eval, judge]",
    "step_timeout_s": "{ eval: 7, judge: 8 }",
    "stall_timeout_s": "9",
    "heartbeat": "{ url: http://127.0.0.1:9/v1 }",
    "restart_command": "my-restart --now",
    "retries": "3",
    "retry_wait_s": "5",
    "retry_backoff": "2",
    "retry_on": "[timeout]",
    "retry_when": "end",
    "cooldown_s": "6",
    "env": "{ OMP_NUM_THREADS: '1' }",
    "on_dirty": "skip",
    "min_free_mb": "1",
    "min_free_disk_mb": "1",
    "require_ac": "true",
}
"""A value for each key that differs from the default or from `BASE`."""

ALSO = {"restart_command": "heartbeat: { url: http://127.0.0.1:9/v1 }"}
"""What a key cannot be without."""

KEYS = {field.name: field for field in attrs.fields(EntryFields)}


def also(key: str, between: str) -> str:
    return between + ALSO[key] if key in ALSO else ""


def identities(queue: PreparedQueue) -> dict[str, str | None]:
    (work,) = fresh(queue)
    assert all(work.identities.values())
    return dict(work.identities)


@pytest.mark.parametrize("cls", [EntryFields, Defaults, Matrix, ModelSpec, SettleSpec, HeartbeatSpec, QueueFile])
def test_every_key_is_classified(cls: type[Any]) -> None:
    for field in attrs.fields(cls):
        assert isinstance(field.metadata.get("identity"), bool), (
            f"{cls.__name__}.{field.name}: say in its metadata whether a step's identity depends on it"
        )


def test_every_key_is_tried_here() -> None:
    assert set(CHANGED) == set(KEYS), "a new queue key needs a value in CHANGED that shows whether it is identity"
    assert {field.name for field in attrs.fields(Defaults)} <= set(KEYS)


@pytest.mark.parametrize("key", sorted(CHANGED))
def test_the_classification_is_true(key: str, prepared: Any) -> None:
    before = identities(prepared(BASE.format(defaults="  retries: 0", entry="")))
    text = BASE.format(defaults="  retries: 0", entry="")
    written = {"config": "config.yaml", "pack": "packs/office.yaml", "judge_config": "judge.yaml", "model": "m"}
    if key in written:
        text = text.replace(f"{key}: {written[key]}", f"{key}: {CHANGED[key]}")
    else:
        text = text.replace("model: m ", f"model: m, {key}: {CHANGED[key]}{also(key, ', ')} ")
    assert CHANGED[key] in text
    changed = identities(prepared(text)) != before
    assert changed == KEYS[key].metadata["identity"], f"{key} is classified wrongly"


@pytest.mark.parametrize("key", sorted(field.name for field in attrs.fields(Defaults)))
def test_a_default_counts_as_the_same_key_of_an_entry_does(key: str, prepared: Any) -> None:
    before = identities(prepared(BASE.format(defaults="  retries: 0", entry="")))
    defaults = f"  {key}: {CHANGED[key]}{also(key, chr(10) + '  ')}"
    changed = identities(prepared(BASE.format(defaults=defaults, entry=""))) != before
    assert changed == KEYS[key].metadata["identity"]
    assert {f.name: f for f in attrs.fields(Defaults)}[key].metadata["identity"] == KEYS[key].metadata["identity"]


MODELS = {
    "quant": "q4",
    "max_tokens_default": "100",
    "reasoning_headroom_tokens": "2000",
    "extra_body": "{ think: false }",
    "anything_else": "1",
}


@pytest.mark.parametrize("key", sorted(MODELS))
def test_every_field_of_a_model_counts(key: str, prepared: Any) -> None:
    known = {field.name for field in attrs.fields(ModelSpec)} - {"id", "extra"}
    assert known | {"anything_else"} == set(MODELS)
    before = identities(prepared(BASE.format(defaults="  retries: 0", entry="")))
    text = BASE.format(defaults="  retries: 0", entry="").replace(
        "model: m ", f"model: {{ id: m, {key}: {MODELS[key]} }} "
    )
    assert identities(prepared(text)) != before


def test_a_judge_hangs_on_its_eval(prepared: Any) -> None:
    before = identities(prepared(BASE.format(defaults="  retries: 0", entry="")))
    other = identities(prepared(BASE.format(defaults="  retries: 0", entry="").replace("office", "home")))
    assert before["eval"] != other["eval"]
    assert before["judge"] != other["judge"]
    judged = identities(
        prepared(BASE.format(defaults="  retries: 0", entry="").replace("judge.yaml", "other-judge.yaml"))
    )
    assert judged["eval"] == before["eval"]
    assert judged["judge"] != before["judge"]


def test_an_entry_of_the_matrix_is_the_entry_written_out(prepared: Any) -> None:
    written = prepared(
        "entries:\n"
        "  - { config: config.yaml, pack: packs/office.yaml, judge_config: judge.yaml, model: { id: m, quant: q4 } }\n"
        "  - { config: config.yaml, pack: packs/home.yaml, judge_config: judge.yaml, model: { id: m, quant: q4 } }\n"
    )
    made = prepared(
        "matrix: { models: [{ id: m, quant: q4 }], packs: [packs/office.yaml, packs/home.yaml],"
        " config: config.yaml, judge_config: judge.yaml }\n"
    )
    assert [work.identities for work in fresh(made)] == [work.identities for work in fresh(written)]


def test_the_same_folder_elsewhere_has_the_same_identities(prepared: Any, folder: Any) -> None:
    before = identities(prepared(BASE.format(defaults="  retries: 0", entry="")))
    elsewhere = folder.rename(folder.with_name("moved"))
    moved = prepared(BASE.format(defaults="  retries: 0", entry=""), base_dir=elsewhere, cwd=elsewhere)
    assert identities(moved) == before
