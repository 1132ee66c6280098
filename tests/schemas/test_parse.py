"""Queue files as a whole: what they mean, and what is refused where. Places are counted by hand."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from runq_schemas.errors import QueueFileError
from runq_schemas.parse import load_queue, parse_queue
from runq_schemas.place import Mark
from runq_schemas.queue import EntrySpec, ModelSpec, PluginUse, QueueSpec, SettleSpec

TOUCHSTONE = """\
defaults:
  reset_command: "lms unload --all"    # touchstone's spelling; "" switches the reset off
  settle: { timeout_s: 120, plateau_polls: 3, poll_interval_s: 2, epsilon_mb: 200 }
  step_timeout_s: { eval: 14400, judge: 21600 }
  cooldown_s: 0
entries:
  - config: config.m5-lmstudio.yaml
    pack: packs/buero.yaml
    model: { id: "google/gemma-4-12b", reasoning_headroom_tokens: 2000 }   # or just a string
    judge_config: judge.yaml
    judge_model: "qwen/qwen3.6-27b"
"""


def parse(text: str | bytes) -> QueueSpec:
    return parse_queue(text, Path("nights/queue.yaml"))


def entry(text: str) -> EntrySpec:
    (only,) = parse(text).entries
    return only


def refusal(text: str | bytes) -> QueueFileError:
    with pytest.raises(QueueFileError) as caught:
        parse(text)
    return caught.value


def test_touchstone_file_runs_as_it_is() -> None:
    queue = parse(TOUCHSTONE)
    assert queue.path == Path("nights/queue.yaml")
    assert queue.sha256 == hashlib.sha256(TOUCHSTONE.encode()).hexdigest()
    assert queue.entries == (
        EntrySpec(
            index=0,
            mark=Mark(line=7, column=5),
            model=ModelSpec(id="google/gemma-4-12b", reasoning_headroom_tokens=2000),
            config="config.m5-lmstudio.yaml",
            pack="packs/buero.yaml",
            judge_config="judge.yaml",
            judge_model="qwen/qwen3.6-27b",
            reset=PluginUse(name="lms"),
            probes=(PluginUse(name="system"),),
            settle=SettleSpec(timeout_s=120.0, plateau_polls=3, poll_interval_s=2.0, epsilon_mb=200.0),
            reset_before=None,
            harness=PluginUse(name="touchstone"),
            step_timeout_s={"eval": 14400.0, "judge": 21600.0},
            stall_timeout_s=None,
            heartbeat=None,
            restart_command=None,
            retries=0,
            retry_wait_s=0.0,
            retry_backoff=1.0,
            retry_on=("failed", "timeout", "stalled"),
            retry_when="now",
            cooldown_s=0.0,
            env={},
            on_dirty="warn",
        ),
    )


def test_the_built_in_defaults() -> None:
    only = entry("entries: [{model: m}]\n")
    assert only == EntrySpec(
        index=0, mark=Mark(line=1, column=11), model=ModelSpec(id="m"), config=None, pack=None, judge_config=None,
        judge_model=None, reset=PluginUse(name="lms"), probes=(PluginUse(name="system"),), settle=SettleSpec(),
        reset_before=None, harness=PluginUse(name="touchstone"), step_timeout_s={}, stall_timeout_s=None,
        heartbeat=None, restart_command=None, retries=0,
        retry_wait_s=0.0, retry_backoff=1.0, retry_on=("failed", "timeout", "stalled"), retry_when="now",
        cooldown_s=0.0, env={}, on_dirty="warn",
    )  # fmt: skip


def test_every_key_of_an_entry() -> None:
    only = entry(
        """\
entries:
  - config: 12
    pack: p.yaml
    model: {id: m, quant: Q4_K_M, max_tokens_default: 9, extra_body: {chat_template_kwargs: {enable_thinking: false},
            a: "false", t: 1e-3}, seed: 7, extra: x}
    judge_config: j.yaml
    judge_model: 7
    reset: {backend: ollama, host: "http://x", keep: [1]}
    probes: [system, {probe: gpu, index: 0}]
    settle: {epsilon_mb: 0.5}
    reset_before: [eval, judge]
    harness: {harness: command, steps: {a: {argv: [x]}}}
    step_timeout_s: {eval_s: 10, judge: 20.5, other: 0x10}
    stall_timeout_s: {eval: 60}
    retries: 2
    retry_wait_s: .5
    cooldown_s: 3
    env: {A: "${HOME}/x", B: 1, C: yes, D: ~, E: , F: "q"}
    on_dirty: skip
"""
    )
    assert only.model == ModelSpec(
        id="m", quant="Q4_K_M", max_tokens_default=9, extra={"seed": 7, "extra": "x"},
        extra_body={"chat_template_kwargs": {"enable_thinking": False}, "a": "false", "t": 0.001},
    )  # fmt: skip
    assert (only.config, only.judge_model) == ("12", "7")
    assert only.reset == PluginUse(name="ollama", options={"host": "http://x", "keep": ["1"]})
    assert only.probes == (PluginUse(name="system"), PluginUse(name="gpu", options={"index": "0"}))
    assert only.settle == SettleSpec(epsilon_mb=0.5)
    assert only.reset_before == ("eval", "judge")
    assert only.harness == PluginUse(name="command", options={"steps": {"a": {"argv": ["x"]}}})
    assert only.step_timeout_s == {"eval": 10.0, "judge": 20.5, "other": 16.0}
    assert only.stall_timeout_s == {"eval": 60.0}
    assert (only.retries, only.retry_wait_s, only.cooldown_s, only.on_dirty) == (2, 0.5, 3.0, "skip")
    assert only.env == {"A": "${HOME}/x", "B": "1", "C": "yes", "D": "~", "E": "", "F": "q"}


def test_an_entry_key_replaces_that_of_defaults_as_a_whole() -> None:
    first, second = parse(
        """\
defaults:
  settle: {timeout_s: 9, plateau_polls: 7}
  step_timeout_s: {eval: 1, judge: 2}
  env: {A: a}
  retries: 3
  stall_timeout_s: 5
entries:
  - {model: a, settle: {plateau_polls: 4}, step_timeout_s: {eval: 8}, env: {}, retries: 0, stall_timeout_s: 6.5}
  - model: b
"""
    ).entries
    assert first.settle == SettleSpec(plateau_polls=4)
    assert (first.step_timeout_s, first.env, first.retries, first.stall_timeout_s) == ({"eval": 8.0}, {}, 0, 6.5)
    assert second.settle == SettleSpec(timeout_s=9.0, plateau_polls=7)
    assert second.step_timeout_s == {"eval": 1.0, "judge": 2.0}
    assert (second.env, second.retries, second.stall_timeout_s) == ({"A": "a"}, 3, 5.0)


@pytest.mark.parametrize(
    ("default", "own", "meant"),
    [
        ("", "reset_command: lms unload --all", PluginUse(name="lms")),
        ("", "reset_command: ''", PluginUse(name="none")),
        (
            "",
            "reset_command: lms unload --all -y",
            PluginUse(name="command", options={"command": "lms unload --all -y"}),
        ),
        ("", "reset_command: [sh, -c, 'x']", PluginUse(name="command", options={"command": ("sh", "-c", "x")})),
        ("reset: ollama", "reset_command: ''", PluginUse(name="none")),
        ("reset_command: x", "reset: {backend: ollama}", PluginUse(name="ollama")),
        ("reset_command: x", "retries: 1", PluginUse(name="command", options={"command": "x"})),
        ("reset: none", "retries: 1", PluginUse(name="none")),
    ],
)  # fmt: skip
def test_reset_and_reset_command_are_one_key(default: str, own: str, meant: PluginUse) -> None:
    head = f"defaults:\n  {default}\n" if default else ""
    assert entry(f"{head}entries:\n  - model: m\n    {own}\n").reset == meant


def test_what_an_entry_may_lack() -> None:
    only = entry(
        "defaults:\n  # nothing yet\nentries:\n"
        '  - {model: m, config: null, pack: ~, judge_config: "", judge_model: null}\n'
    )
    assert (only.config, only.pack, only.judge_config, only.judge_model) == (None, None, None, None)


def test_marks_find_keys_where_they_are_written() -> None:
    queue = parse(
        """\
defaults:
  reset:
    backend: ollama
    host: "http://x"
  probes: [system, {probe: gpu}]
entries:
  - model: a
  - model: b
    reset_command: [x,
      y]
    probes:
      - system
"""
    )
    assert queue.mark_of("entries", 0, "reset", "host") == Mark(line=4, column=11)
    assert queue.mark_of("entries", 0, "reset", "port") == Mark(line=3, column=5)
    assert queue.mark_of("entries", 0, "probes", 1, "probe") == Mark(line=5, column=28)
    assert queue.mark_of("entries", 1, "reset", "command") == Mark(line=9, column=20)
    assert queue.mark_of("entries", 1, "reset", 1) == Mark(line=10, column=7)
    assert queue.mark_of("entries", 1, "probes", 0) == Mark(line=12, column=9)
    assert queue.mark_of("entries", 1, "harness") == Mark(line=8, column=5)
    assert queue.mark_of() == Mark(line=1, column=1)
    assert queue.where("entries", 1, "probes", 0) == "queue.yaml, entry 1, line 12, column 9"
    assert queue.where("defaults", "reset") == "queue.yaml, defaults, line 3, column 5"
    assert QueueSpec(path=Path("q"), sha256="", entries=()).mark_of("x") == Mark(line=1, column=1)


E = "entries:\n  - model: m\n    "
REFUSED: list[tuple[str, str, str, str]] = [
    ("defaults: {}\n", "line 1, column 1", "`entries` is missing", "Add `entries:`"),
    ("entries: []\n", "line 1, column 10", "`entries` must not be empty", "at least one"),
    ("entries:\n", "line 1, column 1", "`entries` has no value", "Write a value"),
    ("entries: {a: b}\n", "line 1, column 10", "`entries` must be a list", "Write a list"),
    ("spreadsheet: {}\nentries: [{model: m}]\n", "line 1, column 1", "`spreadsheet` is not a key", "entries, matrix"),
    ("entries: [m]\n", "entry 0, line 1, column 11", "the entry must be a mapping, not `m`", "key: value"),
    ("defaults: x\nentries: [{model: m}]\n", "defaults, line 1, column 11", "`defaults` must be a mapping", "key"),
    ("defaults: {pack: p}\nentries: [{model: m}]\n", "defaults, line 1, column 12", "`pack`", "Move `pack` into"),
    ("defaults: {setle: p}\nentries: [{model: m}]\n", "defaults, line 1, column 12", "`setle`", "`settle`"),
    ("entries:\n  - pack: p\n", "entry 0, line 2, column 5", "`model` is missing", "Add `model:`"),
    ("entries:\n  - model: m\n  - model:\n", "entry 1, line 3, column 5", "`model` has no value", "Write a value"),
    ("entries: [{model: ' '}]\n", "entry 0, line 1, column 19", "`model` must not be empty", "id"),
    ("entries: [{model: {id: ''}}]\n", "entry 0, line 1, column 24", "`model.id` must not be empty", "Write"),
    ("entries: [{model: {quant: ''}}]\n", "entry 0, line 1, column 19", "`model.id` is missing", "Add `id:`"),
    ("entries: [{model: [a, b]}]\n", "entry 0, line 1, column 19", "must be one model, not a list", "each model"),
    (E + "model_: x\n", "entry 0, line 3, column 5", "`model_` is not a key that is known here", "`model`"),
    (E + "zzzz: x\n", "entry 0, line 3, column 5", "`zzzz` is not a key", "Known here: reset, reset_command"),
    (E + "settle: {timeout_s: 0}\n", "entry 0, line 3, column 25", "`settle.timeout_s` must be more than 0", "above"),
    (E + "settle: {poll_interval_s: -1}\n", "entry 0, line 3, column 31", "more than 0, not -1", "above 0"),
    (E + "settle: {epsilon_mb: 0.0}\n", "entry 0, line 3, column 26", "more than 0, not 0", "above 0"),
    (E + "settle: {plateau_polls: 0}\n", "entry 0, line 3, column 29", "at least 1, not 0", "1 or more"),
    (E + "settle: {plateau_polls: 2.5}\n", "entry 0, line 3, column 29", "a whole number, not `2.5`", "digits"),
    (E + "settle: {timeout: 1}\n", "entry 0, line 3, column 14", "`timeout` is not a key", "`timeout_s`"),
    (E + "settle:\n", "entry 0, line 3, column 5", "`settle` has no value", "remove the key"),
    (E + "settle: 120\n", "entry 0, line 3, column 13", "`settle` must be a mapping, not `120`", "key: value"),
    (E + "step_timeout_s: {eval: 0}\n", "entry 0, line 3, column 28", "`step_timeout_s.eval` must be more", "above"),
    (E + "step_timeout_s: {eval: 1, eval_s: 2}\n", "entry 0, line 3, column 31", "two spellings of one step", "Remove"),
    (E + "step_timeout_s: 60\n", "entry 0, line 3, column 21", "must be a mapping, not `60`", "key: value"),
    (E + "stall_timeout_s: -1\n", "entry 0, line 3, column 22", "`stall_timeout_s` must be more than 0", "above"),
    (E + "stall_timeout_s: {a: 0}\n", "entry 0, line 3, column 26", "`stall_timeout_s.a` must be more", "above"),
    (E + "stall_timeout_s: [1]\n", "entry 0, line 3, column 22", "must be a number or a mapping", "a number"),
    (E + "stall_timeout_s: ~\n", "entry 0, line 3, column 22", "`stall_timeout_s` is ~", "remove the key"),
    (E + "retries: -1\n", "entry 0, line 3, column 14", "`retries` must be at least 0, not -1", "0 or more"),
    (E + "retries: '1'\n", "entry 0, line 3, column 14", 'must be a whole number, not the text "1"', "quotes"),
    (E + "heartbeat: true\n", "entry 0, line 3, column 16", "`heartbeat` must be a mapping", "pairs"),
    (E + "heartbeat: { every_s: 0 }\n", "entry 0, line 3, column 27", "must be more than 0", "above 0"),
    (E + "heartbeat: { evry_s: 1 }\n", "entry 0, line 3, column 18", "`evry_s` is not a key", "`every_s`?"),
    (E + "retry_backoff: 0.5\n", "entry 0, line 3, column 20", "`retry_backoff` must be at least 1", "1 or more"),
    (E + "retry_on: [ok]\n", "entry 0, line 3, column 16", "failed or timeout or stalled", "Write one of them"),
    (E + "retry_on: []\n", "entry 0, line 3, column 15", "must not be empty", "at least one"),
    (E + "retry_when: later\n", "entry 0, line 3, column 17", "now or end", "Write one of them"),
    ("max_failures: 0\n" + E, "line 1, column 15", "`max_failures` must be at least 1", "1 or more"),
    ("max_failures:\n" + E, "line 1, column 1", "`max_failures` has no value", "remove the key"),
    (E + "retry_wait_s: -1\n", "entry 0, line 3, column 19", "`retry_wait_s` must be at least 0", "0 or more"),
    (E + "cooldown_s: -0.5\n", "entry 0, line 3, column 17", "`cooldown_s` must be at least 0, not -0.5", "0 or"),
    (E + "cooldown_s: .nan\n", "entry 0, line 3, column 17", "`cooldown_s` is .nan", "finite number"),
    (E + "on_dirty: stpo\n", "entry 0, line 3, column 15", "warn or retry or skip or stop", "Did you mean `stop`?"),
    (E + "min_free_disk_mb: -1\n", "entry 0, line 3, column 23", "`min_free_disk_mb` must be at least 0", "0 or more"),
    (E + "require_ac: 'true'\n", "entry 0, line 3, column 17", "must be true or false", "quotes"),
    (E + "require_ac: 1\n", "entry 0, line 3, column 17", "`require_ac` must be true or false, not `1`", "Write true"),
    (E + "require_ac:\n", "entry 0, line 3, column 5", "`require_ac` has no value", "remove the key"),
    (E + "env: {A: [b]}\n", "entry 0, line 3, column 14", "`env.A` must be text, not a list", "one value"),
    (E + "pack: [a]\n", "entry 0, line 3, column 11", "`pack` must be text, not a list", "one value"),
    (E + "pack:\n", "entry 0, line 3, column 5", "`pack` has no value", "Write a value"),
    (E + "reset:\n", "entry 0, line 3, column 5", "`reset` names no backend", "`none`"),
    (E + "reset: {host: x}\n", "entry 0, line 3, column 12", "`reset` does not say which backend", "`backend: NAME`"),
    (E + "reset: {backend: }\n", "entry 0, line 3, column 13", "`reset.backend` names no backend", "name"),
    (E + "reset: [lms]\n", "entry 0, line 3, column 12", "`reset` must be one backend, not a list", "Write its name"),
    (E + "reset: ''\n", "entry 0, line 3, column 12", "`reset` names no backend", "Write its name"),
    (E + "reset_command: []\n", "entry 0, line 3, column 20", "`reset_command` must not be empty", "at least"),
    (E + "reset_command:\n", "entry 0, line 3, column 5", "`reset_command` has no value", "Write"),
    (E + "reset_command: x\n    reset: lms\n", "entry 0, line 3, column 5", "two spellings of one key", "Remove one"),
    (E + "probes: system\n", "entry 0, line 3, column 13", "`probes` must be a list, not `system`", "`[system]`"),
    (E + "probes: []\n", "entry 0, line 3, column 13", "`probes` must not be empty", "at least one"),
    (E + "probes: [system, {index: 0}]\n", "entry 0, line 3, column 22", "`probes[1]` does not say", "`probe: NAME`"),
    (E + "harness: {}\n", "entry 0, line 3, column 14", "`harness` does not say which harness", "`harness: NAME`"),
    (
        '---\n# note\nentries:\n- {model: m, judge_model: "a\n    b"\n  , retries: x}\n',
        "entry 0, line 6, column 14", "`retries` must be a whole number", "digits",
    ),
    (
        f'entries:\n- model: "{"long " * 60}\n\n    end"\n  retries: x\n',
        "entry 0, line 5, column 12", "`retries` must be a whole number", "digits",
    ),
    (
        "entries:\n- model: {id: m,\n    extra_body: {a: [1,\n      2]}}\n  env: {}\n  retries: x\n",
        "entry 0, line 6, column 12", "`retries` must be a whole number", "digits",
    ),
    (
        "entries:\n- model: {id: m, extra_body: {a: 1,\n    b: [x, 010]}}\n",
        "entry 0, line 3, column 12", "`model.extra_body.b[1]` is 010", "Write 10",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "where", "message", "remedy"), REFUSED)
def test_refusals_name_place_fault_and_remedy(text: str, where: str, message: str, remedy: str) -> None:
    error = refusal(text)
    assert len(error.problems) == 1
    assert error.where == f"queue.yaml, {where}"
    assert message in error.message
    assert not error.message.endswith(".")
    assert remedy in error.remedy
    assert error.remedy.endswith((".", "?"))


def test_all_problems_are_reported_in_the_order_of_the_file() -> None:
    error = refusal(
        """\
defaults:
  retries: x
  zzz: 1
entries:
  - model: {id: 1, max_tokens_default: x, a: 010, b: .inf}
    reset: lms
    reset_command: x
    step_timeout_s: {eval: x, judge: 0}
  - pack: 1
  - 7
"""
    )
    assert [problem.where.removeprefix("queue.yaml, ") for problem in error.problems] == [
        "defaults, line 2, column 12",
        "defaults, line 3, column 3",
        "entry 0, line 5, column 40",
        "entry 0, line 5, column 46",
        "entry 0, line 5, column 54",
        "entry 0, line 7, column 5",
        "entry 0, line 8, column 28",
        "entry 1, line 9, column 5",
        "entry 2, line 10, column 5",
    ]


def test_repeated_entries_name_both() -> None:
    error = refusal(
        """\
entries:
  - {model: a, pack: p, config: c}
  - {model: b, pack: p, config: c}

  - model: {id: a, quant: Q8}
    pack: p
    config: c
  - {model: a, pack: p}
  - {model: a, pack: "p", judge_model: x}
"""
    )
    assert [(problem.where, problem.message) for problem in error.problems] == [
        (
            "queue.yaml, entry 2, line 5, column 5",
            "entry 2 repeats entry 0 (line 2): the same config, pack and model id",
        ),
        (
            "queue.yaml, entry 4, line 9, column 5",
            "entry 4 repeats entry 3 (line 8): the same config, pack and model id",
        ),
    ]
    assert "Remove one of the two" in error.remedy


def test_the_hash_is_of_the_bytes_as_they_are(tmp_path: Path) -> None:
    content = "\ufeffentries:\r\n  - model: ä\r\n".encode()
    path = tmp_path / "queue.yaml"
    path.write_bytes(content)
    queue = load_queue(path)
    assert queue.sha256 == hashlib.sha256(content).hexdigest()
    assert queue.entries[0].model.id == "ä"
    assert queue.path == path
    assert queue.where("entries", 0, "model") == "queue.yaml, entry 0, line 2, column 12"


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QueueFileError) as caught:
        load_queue(tmp_path / "none.yaml")
    assert caught.value.message == "there is no such file"
    assert "runq init" in caught.value.remedy
    with pytest.raises(QueueFileError) as caught:
        load_queue(tmp_path)
    assert "folder" in caught.value.message

    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(QueueFileError) as caught:
        load_queue(tmp_path / "queue.yaml")
    assert "Permission denied" in caught.value.message
    assert caught.value.where == str(tmp_path / "queue.yaml")


def test_the_package_is_a_lazy_table_of_contents() -> None:
    code = (
        "import sys, runq_schemas, runq_schemas.errors, runq_schemas.events, runq_schemas.queue;"
        "assert not {'strictyaml', 'cattrs'} & set(sys.modules), 'heavy';"
        "[getattr(runq_schemas, name) for name in runq_schemas.__all__];"
        "assert 'strictyaml' in sys.modules;"
        "homes = [name for names in runq_schemas._HOMES.values() for name in names];"
        "assert sorted(homes) == sorted(runq_schemas.__all__);"
        "assert not hasattr(runq_schemas, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
