"""What is refused before anything runs: the place, what is wrong, what to do, and nothing written at all."""

import pytest

from runq.cli import run

BASE = """\
defaults:
  reset_command: ""
entries:
  - config: config.yaml
    pack: pack.yaml
    model: one
"""
"""Line 3 is ``entries:``; what a case adds to the entry begins in line 7, column 5."""

CASES = {
    "duplicate key": (BASE + "    model: two\n", "entry 0, line 7, column 5", "model"),
    "anchor": (BASE.replace("one", "&m one"), "line 6, column 12", "anchors"),
    "tag": (BASE.replace("one", "!m one"), "line 6, column 12", "tag"),
    "tab": (BASE + "\tretries: 1\n", "line 7, column 1", "tab"),
    "unknown key": (BASE + "    pakc: x\n", "entry 0, line 7, column 5", "`pack`"),
    "no entries": (BASE[: BASE.index("entries:")] + "entries: []\n", "line 3, column 10", "entries"),
    "missing file": (BASE.replace("pack.yaml", "no.yaml"), "entry 0, line 5, column 11", "'no.yaml' does not exist"),
    "missing judge": (BASE + "    judge_config: no.yaml\n", "entry 0, line 7, column 19", "'no.yaml' does not exist"),
    "missing key": (BASE.replace("config: config.yaml\n    ", ""), "entry 0, line 4, column 5", "needs config"),
    "duplicate": (BASE + BASE[BASE.index("  - ") :], "entry 1, line 7, column 5", "repeats entry 0 (line 4)"),
    "unknown plugin": (BASE + "    reset: ollma\n", "entry 0, line 7, column 12", "did you mean 'ollama'?"),
    "unknown harness": (BASE + "    harness: comand\n", "entry 0, line 7, column 14", "did you mean 'command'?"),
    "unknown option": (
        BASE + "    reset: { backend: command, command: x, timeot_s: 1 }\n",
        "entry 0, line 7, column 54",
        "`timeout_s`",
    ),
    "wrong option": (
        BASE + "    reset: { backend: command, command: x, timeout_s: soon }\n",
        "entry 0, line 7, column 55",
        "timeout_s",
    ),
    "unknown step": (BASE + "    step_timeout_s: { evil: 5 }\n", "entry 0, line 7, column 29", "its steps are eval"),
    "zero timeout": (BASE + "    step_timeout_s: { eval: 0 }\n", "entry 0, line 7, column 29", "step_timeout_s.eval"),
    "unset variable": (
        BASE + '    env: { A: "${RUNQ_TEST_UNSET}" }\n',
        "entry 0, line 7, column 15",
        "export RUNQ_TEST_UNSET",
    ),
    "both resets": (
        BASE + '    reset: none\n    reset_command: ""\n',
        "entry 0, line 8, column 5",
        "two spellings",
    ),
    "bad policy": (BASE + "    on_dirty: explode\n", "entry 0, line 7, column 15", "stop"),
    "negative retries": (BASE + "    retries: -1\n", "entry 0, line 7, column 14", "retries"),
    "in defaults": (BASE.replace('reset_command: ""', "reset: nnoe"), "line 2, column 10", "did you mean 'none'?"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "night"
    folder.mkdir()
    (folder / "config.yaml").write_text("endpoint: { base_url: http://127.0.0.1:9 }\n")
    (folder / "pack.yaml").write_text("id: p\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("RUNQ_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_a_broken_queue_file_is_refused_at_its_place_and_nothing_is_written(folder, capsys, case):
    text, where, words = CASES[case]
    queue = folder / "queue.yaml"
    queue.write_text(text)
    before = sorted(folder.parent.rglob("*"))
    assert run(["night", str(queue)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first = err.splitlines()[0]
    assert first.startswith("error: queue.yaml, ") and f"{where}: " in first
    assert words in err
    remedy = err.splitlines()[1]
    assert remedy.startswith("  ") and len(remedy.strip()) > 8
    assert sorted(folder.parent.rglob("*")) == before
    # The plan refuses the same, in the same words.
    assert run(["plan", str(queue)]) == 2
    assert capsys.readouterr().err == err


def test_every_problem_is_told_at_once(folder, capsys):
    (folder / "queue.yaml").write_text(BASE.replace("config.yaml", "no.yaml").replace("pack.yaml", "none.yaml"))
    assert run(["night", str(folder / "queue.yaml")]) == 2
    err = capsys.readouterr().err
    assert "line 4, column 13" in err and "line 5, column 11" in err and "2 problems" in err


def test_a_path_that_is_only_under_the_current_directory_suggests_base_dir(folder, capsys, tmp_path):
    (tmp_path / "here.yaml").write_text("id: here\n")
    (folder / "queue.yaml").write_text(BASE.replace("pack.yaml", "here.yaml"))
    assert run(["night", str(folder / "queue.yaml")]) == 2
    err = capsys.readouterr().err
    assert "entry 0, line 5, column 11" in err and f"--base-dir {tmp_path}" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["night", "absent.yaml"], "there is no such file"),
        (["night", "night"], "this is a folder"),
        (["night", "night/queue.yaml", "--night", "x"], "add --resume"),
        (["night", "night/queue.yaml", "--resume"], "start a night without --resume"),
        (["night", "night/queue.yaml", "--only", "e7"], "entries are e0"),
        (["night", "night/queue.yaml", "--only", "one"], "give its number"),
        (["rerun", "e0"], "no journal found"),
        (["replay", "--verify", "--all"], "exclude each other"),
    ],
)
def test_wrong_usage_is_refused_with_a_remedy_and_nothing_is_written(folder, capsys, words, said):
    (folder / "queue.yaml").write_text(BASE)
    before = sorted(folder.parent.rglob("*"))
    assert run(words) == 2
    assert said in capsys.readouterr().err
    assert sorted(folder.parent.rglob("*")) == before


def test_the_process_exits_with_2_without_a_traceback(workshop):
    workshop.queue.write_text("entries: [\n")
    result = workshop.night()
    assert result.returncode == 2
    assert result.stderr.startswith("error: queue.yaml, line 1, column 10: ") and "Traceback" not in result.stderr
    assert [p.name for p in workshop.folder.iterdir()] == ["queue.yaml"]
