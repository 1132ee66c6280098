"""Shell completion: what is offered, that nothing else ever reaches a prompt, and Tab pressed in real shells."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from runq.cli import COMMANDS, cli
from runq.shell_scripts import SCRIPTS

NIGHT = "2026-09-01_220000"  # the one that `past` makes

HEAVY = ("rich", "datasette", "psutil", "strictyaml", "ruamel", "urllib3", "sqlite_utils", "runq_plugins", "asyncio")
"""What a Tab must not wait for."""

QUICK_S = 3.0
"""Ten times what it takes on two slow cores: a machine under load must not fail the test, a night's imports should."""

QUICK = """\
defaults:
  reset: none
  settle: { timeout_s: 1, plateau_polls: 1, poll_interval_s: 0.1 }
  harness: { harness: command, steps: { eval: { argv: [touch, "{bundle}/x"], artifacts: [x] } } }
entries: [{ model: gemma }, { model: qwen }]
"""

SHELLS = [name for name in SCRIPTS if name == "bash" or shutil.which(name)]
"""bash is everywhere and is always tried; the others where they are."""


def offered(*words: str) -> dict[str, str | None]:
    """What is offered for the last of the words, with its help."""
    shell = BashComplete(cli, {}, "runq", "_RUNQ_COMPLETE")
    return {item.value: item.help for item in shell.get_completions(list(words[:-1]), words[-1])}


# --- what is offered --------------------------------------------------------------------------------------------


def test_commands_and_options_are_offered(home):
    assert set(offered("")) == set(COMMANDS)
    assert set(offered("ni")) == {"night", "nights"}
    assert {"--resume", "--night", "--runs"} <= set(offered("night", "--"))
    assert set(offered("completion", "")) == set(SCRIPTS)


@pytest.mark.parametrize(
    "words", [("status",), ("replay",), ("log", "--night"), ("night", "queue.yaml", "--resume", "--night")]
)
def test_nights_are_offered(past, words):
    assert offered(*words, "") == {NIGHT: "finished, queue.yaml"}
    assert set(offered(*words, "2026-0")) == {NIGHT}
    assert not offered(*words, "2025")


def test_the_newest_night_comes_first(past, home, runq):
    (home / "quick.yaml").write_text(QUICK)
    assert runq("night", "quick.yaml").code == 0
    newest, earlier = offered("status", "").items()
    assert newest[1] == "finished, quick.yaml"
    assert earlier == (NIGHT, "finished, queue.yaml")


def test_another_queue_files_nights_are_not_offered(past, home):
    (home / "other.yaml").write_text((home / "queue.yaml").read_text())
    assert not offered("night", "other.yaml", "--resume", "--night", "")
    (home / "queue.yaml").unlink()  # it was renamed: a resume accepts its nights
    assert set(offered("night", "other.yaml", "--resume", "--night", "")) == {NIGHT}


@pytest.mark.parametrize("command", ["log", "rerun"])
def test_entries_are_offered_with_model_and_pack(past, command):
    assert offered(command, "") == {"e0": "gemma, office.yaml", "e1": "qwen, office.yaml"}
    assert set(offered(command, "e1")) == {"e1"}
    assert set(offered(command, "0")) == {"0"}


def test_entries_of_a_night_that_is_given(past):
    assert set(offered("log", "--night", str(past / f"{NIGHT}_queue"), "")) == {"e0", "e1"}
    assert not offered("log", "--night", "2020-01-01_000000", "")


def test_steps_are_offered(past):
    assert set(offered("rerun", "e0", "")) == {"eval", "judge"}
    assert set(offered("rerun", "1", "")) == {"eval"}
    assert set(offered("log", "e0", "j")) == {"judge"}
    assert not offered("log", "e9", "")
    assert not offered("log", "nonsense", "")


def test_only_goes_on_with_a_list_while_the_file_is_the_nights(past, home):
    def only(text, *options):
        return set(offered("plan", "queue.yaml", *options, "--only", text))

    assert not only("")  # the journal's night was of another content
    assert only("", "--resume") == {"e0", "e1"}
    assert only("e0,", "--resume") == {"e0,e1"}


def test_only_for_a_fresh_night(home, runq):
    (home / "queue.yaml").write_text(QUICK)
    assert runq("night", "queue.yaml").code == 0
    assert offered("night", "queue.yaml", "--only", "e") == {"e0": "gemma", "e1": "qwen"}
    (home / "queue.yaml").write_text((home / "queue.yaml").read_text() + "# edited\n")
    assert not offered("night", "queue.yaml", "--only", "e")


def test_the_journal_is_the_one_the_command_would_read(past, home, monkeypatch, tmp_path):
    moved = past.rename(tmp_path / "elsewhere")
    assert not offered("status", "")
    assert set(offered("status", "--runs", str(moved), "")) == {NIGHT}
    monkeypatch.setenv("RUNQ_RUNS", str(moved))
    assert set(offered("status", "")) == {NIGHT}
    monkeypatch.setenv("HOME", str(tmp_path))
    assert set(offered("status", "--runs", "~/elsewhere", "")) == {NIGHT}
    monkeypatch.delenv("RUNQ_RUNS")
    moved.rename(home / "runs")
    monkeypatch.chdir(tmp_path)
    assert set(offered("night", str(home / "queue.yaml"), "--resume", "--night", "")) == {NIGHT}


def test_a_model_of_two_lines_stays_one_line(home, runq):
    (home / "queue.yaml").write_text(QUICK.replace("gemma", '"gem\\nma\\e[31m, a"'))
    assert runq("night", "queue.yaml").code == 0
    told = offered("log", "e0")["e0"]
    assert told is not None
    assert told.isprintable()
    assert "ma" in told


# --- nothing else reaches a prompt ------------------------------------------------------------------------------


def asked(shell: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What a shell's script runs at a Tab."""
    env = dict(os.environ) | {
        "_RUNQ_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(["runq", *words]),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
    }
    return subprocess.run([sys.executable, "-m", "runq"], cwd=cwd, env=env, capture_output=True, text=True, timeout=60)


def test_the_protocol_of_each_shell(past, home):
    assert asked("bash", "log", "e1", cwd=home).stdout == "plain,e1\n"
    assert asked("zsh", "log", "e1", cwd=home).stdout == "plain\ne1\nqwen, office.yaml\n"
    assert asked("fish", "log", "e1", cwd=home).stdout == "plain,e1\tqwen, office.yaml\n"
    assert asked("bash", "night", "q", cwd=home).stdout == "file,q\n"


@pytest.mark.parametrize("fault", ["none", "empty", "garbage", "torn", "folder", "foreign", "unreadable"])
def test_no_error_is_shown(home, past, fault):
    journal = past / "journal.db"
    text = journal.read_bytes()
    journal.unlink()
    if fault == "folder":
        journal.mkdir()
    elif fault == "foreign":
        import sqlite3

        with sqlite3.connect(journal) as conn:
            conn.execute("CREATE TABLE t (x)")
        conn.close()
    elif fault == "unreadable":
        journal.symlink_to(journal)
    elif fault != "none":
        journal.write_bytes({"empty": b"", "garbage": b"\0" * 5000, "torn": text[: len(text) // 2]}[fault])
    for words in (("log", ""), ("log", "e0", ""), ("status", ""), ("night", "queue.yaml", "--only", "")):
        done = asked("bash", *words, cwd=home)
        assert (done.stdout.strip(), done.stderr, done.returncode) == ("", "", 0)


def test_a_journal_is_only_read(home, past):
    def everything():
        return {path: path.stat().st_mtime_ns for path in past.rglob("*")}

    before = everything()
    for words in (("log", ""), ("status", ""), ("log", "e0", ""), ("rerun", "e0", "")):
        assert asked("bash", *words, cwd=home).stdout.strip()
    assert everything() == before


def test_a_tab_is_quick(home, past):
    began = time.monotonic()
    asked("bash", "log", "", cwd=home)
    assert time.monotonic() - began < QUICK_S

    script = (
        "import sys, json, atexit\n"
        f"atexit.register(lambda: sys.stderr.write(json.dumps([m for m in {HEAVY!r} if m in sys.modules])))\n"
        "from runq.cli import main; main()"
    )
    env = dict(os.environ) | {"_RUNQ_COMPLETE": "bash_complete", "COMP_WORDS": "runq log ", "COMP_CWORD": "2"}
    done = subprocess.run([sys.executable, "-c", script], cwd=home, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout == "plain,e0\nplain,e1\n"
    assert json.loads(done.stderr) == []


# --- the scripts, in real shells --------------------------------------------------------------------------------

START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOAD = {
    "bash": 'eval "$(runq completion bash)"; PS1="ready "',
    "zsh": 'eval "$(runq completion zsh)"; PS1="ready "',
    "fish": "runq completion fish | source; function fish_prompt; echo 'ready '; end",
}
ESCAPES = re.compile(r"\x1b\[[0-9;?>=]*[a-zA-Z]|\x1b[=>]|\x1b[()][A-Z0-9]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x07\r]")


class Terminal:
    """An interactive shell on a terminal of 200 columns, and what it has shown since it was last asked."""

    def __init__(self, shell: str, cwd: Path, home: Path) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "RUNQ", "PROMPT_C"))}
        env |= {"TERM": "xterm", "HOME": str(home), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(START[shell][0], START[shell], env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        self.type(LOAD[shell] + "\n")
        self.shows("ready ", "ready ")  # once as it is typed, once as the prompt

    def type(self, keys: str) -> None:
        self.shown = ""
        os.write(self.fd, keys.encode())

    def shows(self, *wanted: str, within_s: float = 30.0) -> None:
        """Wait until all of it is on the screen; a text that is given twice must be there twice."""
        end = time.monotonic() + within_s
        while any(self.shown.count(text) < wanted.count(text) for text in wanted):
            if time.monotonic() > end:
                pytest.fail(f"{wanted} did not come; the terminal shows {self.shown!r}")
            self._read(0.2)

    def rest(self, seconds: float) -> str:
        """What comes within some seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read(0.1)
        return self.shown

    def _read(self, seconds: float) -> None:
        if not select.select([self.fd], [], [], seconds)[0]:
            return
        text = os.read(self.fd, 65536).decode(errors="replace")
        if "\x1b[c" in text or "\x1b[0c" in text:  # fish asks what terminal this is, and waits for the answer
            os.write(self.fd, b"\x1b[?1;2c")
        self.shown += ESCAPES.sub("", text)

    def close(self) -> None:
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
def test_a_tab_in_a_real_shell(shell, home, past, tmp_path):
    (home / "my night.yaml").write_text("entries: []\n")
    (home / "notes.txt").write_text("")
    terminal = Terminal(shell, home, tmp_path)
    try:
        for typed, wanted in (
            ("runq repl\t", "runq replay "),
            ("runq status 2026-\t", f"runq status {NIGHT} "),
            ("runq log e1 ev\t", "runq log e1 eval "),
            ("runq night qu\t", "runq night queue.yaml "),
            ("runq night my\t", "runq night my\\ night.yaml "),
            ("runq night queue.yaml --resume --only e0,\t", "--only e0,e1"),
            ("runq log e1 --runs ru\t", "--runs runs/"),
            ("runq completion f\t", "runq completion fish "),
        ):
            terminal.type(typed)
            terminal.shows(wanted)
            terminal.type("\x15")  # Ctrl-U: an empty line again
            terminal.rest(0.3)
        terminal.type("runq log e\t\t")
        terminal.shows("e0", "e1")
        if shell != "bash":  # bash has no place for it
            terminal.shows("gemma, office.yaml")
        terminal.type("\x15\x15")
        terminal.rest(0.3)

        shutil.rmtree(past)
        for typed in ("runq log \t\t", "runq nonsense \t\t"):
            terminal.type(typed)
            shown = terminal.rest(2.0)
            assert "rror" not in shown, shown
            assert "Traceback" not in shown, shown
            terminal.type("\x15\x15")
            terminal.rest(0.3)
    finally:
        terminal.close()


def test_the_command_prints_a_script_that_bash_accepts(runq):
    ran = runq("completion", "bash")
    assert ran.code == 0
    subprocess.run(["bash", "-n"], input=ran.out, text=True, check=True)
    refused = runq("completion", "tcsh")
    assert refused.code == 2
    assert "'bash', 'zsh', 'fish'" in refused.err
