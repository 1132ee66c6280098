"""One program, bounded whatever it and its children do."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from runq_plugins.program import OUTPUT_LIMIT_BYTES, CannotStart, run_bounded


def run(code: str, **kwargs):
    return run_bounded([sys.executable, "-c", code], **({"timeout_s": 30, "env": os.environ} | kwargs))


def test_exit_code_and_both_streams_are_kept(tmp_path):
    result = run(
        "import os, sys; print(os.getcwd(), os.environ['A']); print('bad', file=sys.stderr); sys.exit(3)",
        cwd=tmp_path,
        env={"A": "b"},
    )
    assert (result.exit_code, result.signal, result.timed_out, result.ok) == (3, None, False, False)
    assert result.stdout == f"{tmp_path} b\n"
    assert result.stderr == "bad\n"
    assert result.tail() == "bad"


def test_success_is_ok_and_stdin_is_empty():
    result = run("import sys; print(repr(sys.stdin.read()))")
    assert result.ok and result.stdout == "''\n" and result.tail() == "''"


def test_a_signal_has_its_name():
    result = run("import os, signal; os.kill(os.getpid(), signal.SIGUSR1)")
    assert (result.exit_code, result.signal, result.ok) == (None, "SIGUSR1", False)


@pytest.mark.parametrize("argv", [["/nowhere/at-all"], [], ["a\0b"], ["/etc/hostname"]])
def test_what_cannot_start_says_so(argv):
    with pytest.raises(CannotStart):
        run_bounded(argv, timeout_s=5, env={})


def test_no_shell_reads_the_words():
    result = run_bounded(["echo", "$HOME; ls *"], timeout_s=5, env={"PATH": os.environ["PATH"]})
    assert result.stdout == "$HOME; ls *\n"


def test_only_the_end_of_much_output_is_kept():
    result = run("import sys; sys.stdout.write('a' * 3_000_000 + 'end')")
    assert len(result.stdout) == OUTPUT_LIMIT_BYTES and result.stdout.endswith("aend")


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-c",
    "import os, signal, time; os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
print(os.getpid(), grandchild.pid, flush=True)
time.sleep(600)
"""


def test_at_the_limit_a_stubborn_tree_ends_grandchildren_in_other_sessions_included():
    began = time.monotonic()
    result = run(STUBBORN, timeout_s=1.5)
    assert result.timed_out and not result.ok and result.signal == "SIGKILL"
    assert time.monotonic() - began < 7
    for pid in map(int, result.stdout.split()):
        assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_sigterm_comes_first():
    result = run(
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); "
        "print('up', flush=True); time.sleep(600)",
        timeout_s=1.5,
    )
    assert (result.timed_out, result.exit_code, result.stdout) == (True, 7, "up\n")


def test_a_background_grandchild_neither_delays_nor_dies():
    began = time.monotonic()
    result = run(
        "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid)"
    )
    pid = int(result.stdout)
    try:
        assert result.ok and time.monotonic() - began < 20
        assert psutil.pid_exists(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_an_interrupted_night_ends_the_program(tmp_path):
    marker = tmp_path / "pid"

    def sleep(seconds: float) -> None:
        assert seconds == 0
        if marker.exists() and marker.read_text().endswith("\n"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(
            f"import os, time; open({str(marker)!r}, 'w').write(str(os.getpid()) + chr(10)); time.sleep(600)",
            sleep=sleep,
        )
    assert not psutil.pid_exists(int(marker.read_text()))


def test_a_missing_working_directory_is_named():
    with pytest.raises(CannotStart, match="/nowhere"):
        run("", cwd=Path("/nowhere"))
