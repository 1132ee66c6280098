"""The command line as a whole: help, exit codes, errors, what is printed where."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from runq import cli
from runq.cli import COMMANDS
from runq_schemas import JournalError, LockedError

TREE = {name: cli.cli.get_command(click.Context(cli.cli), name) for name in COMMANDS}


def test_every_command_is_there() -> None:
    for name, command in TREE.items():
        assert command is not None
        assert command.name == name


# --- help -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], *[[name, flag] for name in COMMANDS for flag in ("--help", "-h")]]
)
def test_every_help_is_shown(runq: Any, words: list[str]) -> None:
    ran = runq(*words)
    assert ran.code == 0
    assert ran.out.startswith("Usage: runq ")
    assert ran.err == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_teaches(name: str) -> None:
    command = TREE[name]
    assert command is not None and command.help
    first = command.help.strip().splitlines()[0]
    assert first[0].isupper() and len(first) > 20, "it begins with what the command does"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert (
                parameter.help
                and parameter.help[0].isalnum()
                and parameter.help.rstrip("]").endswith((".", "file", "folder", "latest", "last"))
            ), parameter.opts
        else:
            told = re.search(rf"\b{parameter.human_readable_name}\b", command.help)
            assert told, f"{name}: the help does not say what {parameter.human_readable_name} is"


def test_the_first_help_leads_on(runq: Any) -> None:
    text = runq("--help").out
    for name, (_, about) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(about[:30])}", text, re.MULTILINE), name
    for words in ("runq plan queue.yaml", "runq night queue.yaml", "Exit codes: 0", "130 interrupted"):
        assert words in text


def test_the_line_in_the_table_says_what_the_commands_help_says() -> None:
    for name, (_, about) in COMMANDS.items():
        assert about.endswith("."), name
        assert len(f"  {name:<8} {about}") <= 80, "it stays on one line of an ordinary terminal"


# --- usage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("typed", "meant"), [("stats", "status"), ("nihgt", "night"), ("plugin", "plugins")])
def test_an_unknown_command_names_the_nearest(runq: Any, typed: str, meant: str) -> None:
    ran = runq(typed)
    assert ran.code == 2
    assert f"No such command '{typed}'. Did you mean '{meant}'?" in ran.err
    assert ran.out == ""


def test_a_command_like_no_other_names_none(runq: Any) -> None:
    ran = runq("xyzzy")
    assert (ran.code, "Did you mean" in ran.err) == (2, False)


def test_a_mistyped_option_names_the_nearest(runq: Any) -> None:
    ran = runq("night", "queue.yaml", "--resum")
    assert ran.code == 2 and "--resume" in ran.err


def test_the_version(runq: Any) -> None:
    ran = runq("--version")
    assert ran.code == 0
    assert re.fullmatch(r"runq \d+\.\d+\.\d+\S*\n", ran.out)


def test_without_a_command_the_status_is_shown(runq: Any, past: Path) -> None:
    assert runq() == runq("status")
    assert runq().out.startswith("night 2026-09-01_220000  finished\n")


def test_without_a_command_or_a_journal_it_says_where_it_looked(runq: Any, home: Path) -> None:
    ran = runq()
    assert (ran.code, ran.out) == (2, "")
    assert str(home / "runs" / "journal.db") in ran.err
    assert "--runs DIR" in ran.err and "runq night QUEUE" in ran.err


# --- exit codes and errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "gone.yaml"], "gone.yaml"),
        (["night", "gone.yaml"], "gone.yaml"),
        (["night", "queue.yaml", "--night", "x"], "add --resume"),
        (["night", "queue.yaml", "--only", "x"], "give its number from 0, for example e2"),
        (["night", "queue.yaml", "--only", ","], "--only names no entry"),
        (["night", "queue.yaml", "--only", ""], "--only names no entry"),
        (["plan", "queue.yaml", "--only", "e9"], "entries are e0, e1"),
        (["night", "queue.yaml", "--base-dir", "gone"], "gone"),
        (["status", "--runs", "gone"], "--runs DIR"),
        (["nights", "--runs", "gone"], "--runs DIR"),
        (["replay", "--runs", "gone"], "--runs DIR"),
        (["log", "x"], "give its number from 0"),
    ],
)
def test_wrong_usage_is_2_and_says_what_to_do(runq: Any, words: list[str], said: str) -> None:
    ran = runq(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "2020"], "nights are 2026-09-01_220000"),
        (["replay", "2020"], "nights are 2026-09-01_220000"),
        (["replay", "--at", "999"], "the journal has no event 999"),
        (["replay", "--all", "--verify"], "exclude each other"),
        (["log", "e7"], "no step of e7 ran"),
        (["log", "e1", "judge"], "no step 'judge' of e1 ran"),
        (["log", "e0", "--attempt", "9"], "`runq status` shows what ran"),
        (["rerun", "e7"], "its entries are e0, e1"),
        (["rerun", "e1", "judge"], "its steps are eval"),
    ],
)
def test_what_the_journal_has_not_is_2_and_says_what_it_has(runq: Any, past: Path, words: list[str], said: str) -> None:
    ran = runq(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_wrong_queue_file_tells_every_problem_with_its_line(runq: Any, home: Path) -> None:
    (home / "queue.yaml").write_text(
        "entries:\n  - { config: gone.yaml, pack: packs/office.yaml, model: a }\n"
        "  - { config: config.yaml, pack: gone.yaml, model: a }\n"
    )
    ran = runq("night", "queue.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert re.search(
        r"^error: queue\.yaml, entry 0, line 2, column \d+: config 'gone\.yaml' does not exist$", ran.err, re.M
    )
    assert re.search(
        r"^error: queue\.yaml, entry 1, line 3, column \d+: pack 'gone\.yaml' does not exist$", ran.err, re.M
    )
    assert ran.err.endswith("2 problems\n")
    assert not (home / "runs").exists(), "refused before anything is written"


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("runq.status.status_data", fail)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (LockedError("held", remedy="wait"), 3, "error: held\n  wait\n"),
        (
            JournalError("damaged", where="journal.db", remedy="restore it"),
            4,
            "error: journal.db: damaged\n  restore it\n",
        ),
        (PermissionError(13, "Permission denied", "/x"), 1, "error: [Errno 13] Permission denied: '/x'\n"),
        (sqlite3.OperationalError("disk I/O error"), 1, "error: unforeseen: OperationalError: disk I/O error\n"),
        (ZeroDivisionError("oh"), 1, "error: unforeseen: ZeroDivisionError: oh\n"),
        (RecursionError("deep"), 1, "error: unforeseen: RecursionError: deep\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (click.Abort(), 130, "interrupted\n"),
    ],
)
def test_an_error_is_told_without_a_traceback(
    runq: Any, past: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    failing(monkeypatch, error)
    ran = runq("status")
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "Traceback" not in ran.err

    for words in (("--debug", "status"), ("status", "--debug")):
        traced = runq(*words)
        assert traced.code == code
        assert "Traceback (most recent call last)" in traced.err
        assert said in traced.err, "what to do is said all the same"


def test_a_damaged_journal_is_4(runq: Any, past: Path) -> None:
    journal = past / "journal.db"
    conn = sqlite3.connect(journal)
    for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        conn.execute(f"DROP TRIGGER {name}")
    conn.execute("UPDATE event SET data = replace(data, 'gemma', 'llama') WHERE id = 1")
    conn.commit()
    conn.close()
    ran = runq("replay", "--verify")
    assert (ran.code, ran.out) == (4, "")
    assert "damaged" in ran.err and "runq salvage" in ran.err


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"this is no database at all, but long enough to be looked at" * 50, 4), (b"", 2)],
    ids=["no database is a damaged journal", "an empty file is none yet"],
)
def test_what_is_no_journal(runq: Any, home: Path, content: bytes, code: int) -> None:
    (home / "runs").mkdir()
    (home / "runs" / "journal.db").write_bytes(content)
    for words in (["status"], ["nights"], ["replay", "--verify"]):
        ran = runq(*words)
        assert (ran.code, ran.out) == (code, ""), words
        assert "Traceback" not in ran.err


# --- what is printed where --------------------------------------------------------------------------------------


def test_json_is_all_there_is_on_standard_output(runq: Any, past: Path) -> None:
    for words in (["plan", "queue.yaml"], ["night", "queue.yaml", "--dry-run"], ["status"], ["nights"], ["plugins"]):
        ran = runq(*words, "--json")
        assert (ran.code, ran.err) == (0, ""), words
        json.loads(ran.out)
    assert json.loads(runq("status", "--json").out)["night"] == "2026-09-01_220000"
    assert [row["state"] for row in json.loads(runq("nights", "--json").out)] == ["finished"]
    assert json.loads(runq("plan", "queue.yaml", "--json").out)["entries"][0]["id"] == 0
    json.loads(runq("schema").out)


def run_real(*words: str, code: str = "", **changes: Any) -> subprocess.CompletedProcess[str]:
    start = ["-c", code] if code else ["-m", "runq"]
    # Without coverage, which would load modules of its own into what is looked at.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")} | changes.pop("env", {})
    return subprocess.run([sys.executable, *start, *words], env=env, text=True, timeout=60, **changes)


@pytest.mark.parametrize("words", ["schema", "--help", "plugins --json"])
def test_a_reader_that_has_gone_is_no_error(home: Path, words: str) -> None:
    # As in `runq nights | head -0`, with the exit code of runq itself.
    script = f"{sys.executable} -m runq {words}; echo $? >&2"
    read, write = os.pipe()
    os.close(read)
    try:
        ran = subprocess.run(["sh", "-c", script], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60)
    finally:
        os.close(write)
    assert ran.stderr == "0\n"


def test_a_ctrl_c_is_130_without_a_traceback(home: Path) -> None:
    code = (
        "import sys, runq.plugin_list, runq.cli\n"
        "def interrupted(): raise KeyboardInterrupt\n"
        "runq.plugin_list.plugin_rows = interrupted\n"
        "runq.cli.main(['plugins'])"
    )
    ran = run_real(code=code, capture_output=True)
    assert (ran.returncode, ran.stdout) == (130, "")
    assert ran.stderr.strip() == "interrupted"


@pytest.mark.parametrize("words", [["--help"], ["night", "--help"], ["plugins"], ["status"], ["nope"]])
def test_nothing_is_coloured_where_there_is_no_terminal(runq: Any, past: Path, words: list[str]) -> None:
    ran = runq(*words)
    assert "\x1b" not in ran.out + ran.err


# --- a quick start ----------------------------------------------------------------------------------------------

LOADED = """
import sys
from runq.cli import run
code = run(sys.argv[1:])
sys.stdout.flush()
print(code, *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""

NEVER = {"datasette", "sqlite_utils", "dask", "distributed", "altair", "pandas", "numpy", "httpx", "runq_plugins"}


@pytest.mark.parametrize(
    ("words", "without"),
    [
        (["--help"], {"strictyaml", "cattrs", "psutil", "rich", "sqlite3", "attr", "runq_journal", "filelock"}),
        (["--version"], {"strictyaml", "cattrs", "psutil", "rich", "sqlite3", "attr", "runq_journal"}),
        (["night", "--help"], {"strictyaml", "cattrs", "psutil", "rich", "sqlite3", "runq_journal"}),
        (["status"], {"strictyaml", "cattrs", "rich", "urllib3", "filelock"}),
        (["nights"], {"strictyaml", "cattrs", "rich", "urllib3", "psutil"}),
        (["plan", "queue.yaml"], {"rich", "filelock"}),
    ],
)
def test_a_command_loads_only_what_it_needs(past: Path, home: Path, words: list[str], without: set[str]) -> None:
    ran = run_real(*words, code=LOADED, capture_output=True, cwd=home)
    code, *loaded = ran.stderr.split()
    assert code == "0", ran.stderr
    never = NEVER - ({"runq_plugins"} if words[0] == "plan" else set())
    assert not (never | without) & set(loaded)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_it(home: Path, shell: str) -> None:
    code = "import sys; sys.argv[0] = 'runq'; from runq.cli import main; main()"
    script = run_real(code=code, capture_output=True, env={"_RUNQ_COMPLETE": f"{shell}_source"})
    assert script.returncode == 0
    assert "runq" in script.stdout and "_RUNQ_COMPLETE" in script.stdout


def test_a_completion_names_commands_and_options(home: Path) -> None:
    code = "import sys; sys.argv[0] = 'runq'; from runq.cli import main; main()"
    env = {"_RUNQ_COMPLETE": "bash_complete", "COMP_WORDS": "runq n", "COMP_CWORD": "1"}
    assert run_real(code=code, capture_output=True, env=env).stdout.split() == [
        "plain,night", "plain,nights", "plain,notify"
    ]  # fmt: skip
    env |= {"COMP_WORDS": "runq night --re", "COMP_CWORD": "2"}
    assert run_real(code=code, capture_output=True, env=env).stdout.split() == ["plain,--resume"]
