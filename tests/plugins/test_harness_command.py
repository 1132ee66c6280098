"""Any programs as steps."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from runq.plugin import ModelSpec, PluginError
from runq.testing import make_entry
from runq_plugins.harness.command import CommandHarness, CommandStep

MODEL = ModelSpec(id="qwen/q", quant="q4")


def step(*argv: str, **more) -> CommandStep:
    return CommandStep(argv=argv, **({"artifacts": ("out.txt",)} | more))


def harness(*argv: str, **more) -> CommandHarness:
    return CommandHarness(steps={"eval": step(*argv, **more)})


@pytest.fixture
def entry(tmp_path):
    base = tmp_path / "queue"
    (base / "lib").mkdir(parents=True)
    for name in ("config.yaml", "pack.yaml", "judge.yaml", "run.py", "rubric.md", "lib/a.py"):
        (base / name).write_text(f"endpoint: {{base_url: 'http://{Path(name).stem}:1/v1'}}\n")
    return make_entry(
        base,
        id=7,
        model=MODEL,
        config=base / "config.yaml",
        pack=base / "pack.yaml",
        judge_config=base / "judge.yaml",
        judge_model="judge/j",
    )


def test_placeholders_are_filled(entry, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    names = ["model", "model_json", "config", "pack", "judge_config", "judge_model", "bundle", "base_dir", "entry"]
    made = harness(*(f"<{{{name}}}>" for name in names), "{python}", "{{x}} {{{entry}}}")
    argv = made.argv(entry, made.steps(entry)[0], Path("/b"))
    base = entry.base_dir
    assert json.loads(argv[1][1:-1]) == {"id": "qwen/q", "quant": "q4"}
    import sys

    assert [argv[0], *argv[2:]] == [
        "<qwen/q>", f"<{base}/config.yaml>", f"<{base}/pack.yaml>", f"<{base}/judge.yaml>", "<judge/j>", "</b>",
        f"<{base}>", "<7>", sys.executable, "{x} {7}",
    ]  # fmt: skip


def test_values_with_braces_are_not_filled_again(entry):
    made = harness("{model}")
    odd = attrs.evolve(entry, model=ModelSpec(id="{bundle}"))
    assert made.argv(odd, made.steps(odd)[0], Path("/b")) == ["{bundle}"]


def test_unknown_placeholders_are_refused_while_planning(entry):
    with pytest.raises(PluginError, match=r"step 'eval': \{modell\} is not a placeholder") as caught:
        harness("x", "{modell}").steps(entry)
    assert "{model}, {model_json}, {config}" in caught.value.remedy


@pytest.mark.parametrize("key", ["config", "pack", "judge_config", "judge_model"])
def test_a_placeholder_without_a_value_is_refused_while_planning(entry, key):
    with pytest.raises(PluginError, match=f"uses {{{key}}}, but the entry has no {key}"):
        harness("x", f"{{{key}}}").steps(attrs.evolve(entry, **{key: None}))


def test_only_what_is_named_is_required():
    assert harness("x", "{model}").requires() == ()
    made = CommandHarness(steps={"a": step("x", "{pack}"), "b": step("y", reads=("{judge_config}",))})
    assert made.requires() == ("pack", "judge_config")


def test_steps_keep_their_order_and_artifacts(entry):
    made = CommandHarness(steps={"b": step("x", artifacts=("b.txt", "d/c.jsonl")), "a-1": step("y")})
    assert [(one.name, one.artifacts) for one in made.steps(entry)] == [
        ("b", ("b.txt", "d/c.jsonl")),
        ("a-1", ("out.txt",)),
    ]


def test_what_a_step_reads(entry):
    base = entry.base_dir
    made = harness(
        "./run.py", "{config}", "lib/../lib/a.py", "--rubric=rubric.md", "{base_dir}/rubric.md", "{bundle}/out.txt",
        "/etc/hostname", "none.md", "lib", "../outside", "", "nul\0byte", reads=("lib", "{pack}"),
    )  # fmt: skip
    assert made.steps(entry)[0].reads == (
        base / "config.yaml",
        base / "pack.yaml",
        base / "run.py",
        base / "lib" / "a.py",
        base / "rubric.md",
        base / "lib",
    )


def test_a_declared_file_must_be_there(entry):
    with pytest.raises(PluginError, match=r"step 'eval' reads .*/none.md, which does not exist"):
        harness("x", reads=("none.md",)).steps(entry)


def test_settings_hold_roles_and_no_places(entry):
    base = entry.base_dir
    made = harness(
        "/bin/sh", "run.py", f"{base}/rubric.md", f"--dir={base}/lib", f"{base}/new", "--x=/v1/chat", "{config}",
        "--n=3", "{judge_model}", "run.py",
    )  # fmt: skip
    assert made.steps(entry)[0].settings == {
        "argv": [
            "<path>/sh", "<file 1>", "<file 2>", "--dir={base_dir}/lib", "{base_dir}/new", "--x=/v1/chat", "{config}",
            "--n=3", "{judge_model}", "<file 1>",
        ],
        "judge_model": "judge/j",
    }  # fmt: skip


def test_a_moved_folder_keeps_the_settings(entry, tmp_path):
    made = harness("run.py", "{base_dir}/rubric.md", "--x=lib/a.py")
    before = made.steps(entry)[0].settings
    moved = entry.base_dir.rename(tmp_path / "moved")
    assert made.steps(attrs.evolve(entry, base_dir=moved))[0].settings == before


@pytest.mark.parametrize(
    ("argv", "model", "expected"),
    [
        (("x", "{model}"), None, MODEL),
        (("x",), None, MODEL),
        (("x", "{judge_model}"), None, ModelSpec(id="judge/j")),
        (("x", "{judge_model}", "{model_json}"), None, MODEL),
        (("x",), "{judge_model}", ModelSpec(id="judge/j")),
        (("x", "{judge_model}"), "{model}", MODEL),
        (("x",), "fixed", ModelSpec(id="fixed")),
    ],
)
def test_the_model_that_answers(entry, argv, model, expected):
    assert harness(*argv, model=model).steps(entry)[0].model == expected


def test_targets_are_those_of_the_files_it_uses(entry):
    assert harness("x").targets(entry) == ()
    found = harness("x", "{config}", "{pack}", "{judge_config}").targets(entry)
    assert [(target.base_url, target.model) for target in found] == [
        ("http://config:1/v1", entry.model),
        ("http://judge:1/v1", entry.model),
    ]


def test_its_endpoint_is_a_placeholder_and_a_target_of_every_step(entry):
    steps = {"a": step("x", "{endpoint}"), "b": step("y", "{judge_model}")}
    made = CommandHarness(steps=steps, endpoint="http://e:1/v1")
    assert [(target.step, target.base_url, target.model.id) for target in made.targets(entry)] == [
        ("a", "http://e:1/v1", entry.model.id),
        ("b", "http://e:1/v1", entry.judge_model),
    ]
    first = made.steps(entry)[0]
    assert made.argv(entry, first, entry.base_dir) == ["x", "http://e:1/v1"]
    assert "http://e:1/v1" not in str(first.settings)


def test_a_placeholder_for_an_endpoint_that_is_not_given(entry):
    with pytest.raises(PluginError, match="the harness has no endpoint"):
        harness("x", "{endpoint}").steps(entry)


def test_a_wrong_endpoint_is_refused(entry):
    with pytest.raises(ValueError, match="endpoint: 'localhost' must begin with http"):
        CommandHarness(steps={"a": step("x")}, endpoint="localhost")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"argv": ()}, "argv must not be empty"),
        ({"argv": ("{",)}, "write a placeholder"),
        ({"argv": ("{model:>9}",)}, "write a placeholder"),
        ({"argv": ("{}",)}, "write a placeholder"),
        ({"artifacts": ()}, "at least one file: exit 0 alone"),
        ({"artifacts": ("/abs",)}, "'/abs' must be a file inside the bundle"),
        ({"artifacts": ("../x",)}, "inside the bundle"),
        ({"artifacts": ("a/../../x",)}, "inside the bundle"),
        ({"artifacts": ("",)}, "inside the bundle"),
        ({"artifacts": ("a\0",)}, "inside the bundle"),
        ({"reads": ("}",)}, "write a placeholder"),
        ({"model": "{a.b}"}, "write a placeholder"),
    ],
)
def test_wrong_steps_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        CommandStep(**({"argv": ("x",), "artifacts": ("a",)} | options))


@pytest.mark.parametrize("name", ["", "a b", "ä", "a/b", "server", "a\n"])
def test_wrong_step_names_are_refused(name):
    with pytest.raises(ValueError, match="is not a step name"):
        CommandHarness(steps={name: step("x")})


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="at least one step"):
        CommandHarness(steps={})


# --- the artifacts --------------------------------------------------------------------------------------------------


@pytest.fixture
def check(entry, tmp_path):
    def run(**files: str):
        bundle = tmp_path / "bundle"
        bundle.mkdir()
        names = [name.replace("_", ".") for name in files]
        for name, text in zip(names, files.values(), strict=True):
            if text != "MISSING":
                (bundle / name).write_text(text)
        made = harness("x", artifacts=tuple(names))
        return made.check(entry, made.steps(entry)[0], bundle)

    return run


def test_other_files_prove_by_being_there(check):
    found = check(out_txt="", out_csv="")
    assert found.ok and found.facts == {}


def test_a_table_of_answers_is_scores(check, tmp_path):
    found = check(scores_csv="prompt_id,passed,mark\na,true,5\nb,false,2\nc,true,2\n")
    assert found.ok
    passed, mark = found.metrics
    # 2 of 3: variance 1/3 over 3 questions, so 1/3. Marks 5, 2, 2: mean 3, variance 3, by 3: 1.
    assert (passed.name, passed.value, passed.n) == ("passed", pytest.approx(2 / 3), 3)
    assert passed.stderr == pytest.approx(1 / 3)
    assert (mark.name, mark.value, mark.stderr, mark.n) == ("mark", 3.0, 1.0, 3)
    answers = CommandHarness.answers(tmp_path / "bundle")
    assert answers == {"passed": {"a": 1.0, "b": 0.0, "c": 1.0}, "mark": {"a": 5.0, "b": 2.0, "c": 2.0}}


@pytest.mark.parametrize("text", ["no header of ours\n1\n", "", "prompt_id,x\na," + "y" * 200_000])
def test_another_scores_csv_proves_by_being_there(check, text):
    found = check(scores_csv=text)
    assert found.ok and found.metrics == ()


def test_rows_are_counted(check):
    found = check(a_jsonl='{"x": 1}\n{"x": 2}\n', b_jsonl='{"y": 1}\n{"y')
    assert found.ok and found.facts == {"rows": {"a.jsonl": 2, "b.jsonl": 1}, "torn_rows": 1}


def test_rows_with_ok_are_answers(check):
    found = check(a_jsonl='{"ok": true}\n{"ok": false, "error": "e1"}\n', b_jsonl='{"ok": true}\n{"ok": false}\n{"o')
    assert found.ok
    assert found.facts == {
        "rows": {"a.jsonl": 2, "b.jsonl": 2},
        "answers": 4,
        "answers_failed": 2,
        "first_error": "e1",
        "torn_rows": 1,
    }


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"a_jsonl": '{"ok": false, "error": "dead"}\n'}, "1 of 1 answers failed, none is ok; the first error: dead"),
        ({"a_jsonl": '{"ok": true}\n{"_error": "late"}\n'}, "a.jsonl holds an error instead of a result: late"),
        ({"a_jsonl": ""}, "a.jsonl holds no complete row"),
        ({"a_jsonl": "x\n"}, "line 1 of a.jsonl is not a JSON object"),
        ({"a_jsonl": '{"x": 1}\n', "b_jsonl": "MISSING"}, "b.jsonl cannot be read: No such file or directory"),
        ({"a_jsonl": '{"x": 1}\n', "b_jsonl": ""}, "b.jsonl holds no complete row"),
    ],
)
def test_what_proves_nothing_is_failed(check, files, reason):
    found = check(**files)
    assert not found.ok and found.reason == reason
