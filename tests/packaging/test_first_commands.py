"""The commands that a newcomer and a bare machine start with."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
CI = REPO / ".ci" / "run"


@pytest.fixture
def bare(tmp_path):
    """A machine with nothing but bash and what is put there: (run, put)."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f"#!{shutil.which('bash')}\n{script}\n")
        (folder / name).chmod(0o755)

    (folder / "dirname").symlink_to(shutil.which("dirname"))

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [shutil.which("bash"), str(CI)], env={"PATH": str(folder)}, capture_output=True, text=True, timeout=60
        )

    return run, put


PACKAGES = ("chromium", "tmux", "dbus-daemon", "systemd-inhibit", "ip", "g++", "make", "ps")
"""The commands of the packages that CI installs."""

NEW = 'if [[ $1 == -c ]]; then exit 0; fi; echo "ran $0 $*"; exit {code}'
OLD = "exit 1"


def test_the_readme_begins_with_the_two_commands():
    text = (REPO / "README.md").read_text(encoding="utf-8")
    assert "\n    python3 examples/first-night/run.py\n" in text
    assert "\n    python3 tests/run.py\n" in text


def test_ci_is_executable_and_calls_the_test_command():
    assert os.access(CI, os.X_OK)
    assert CI.read_text(encoding="utf-8").splitlines()[-1] == "python3 tests/run.py"


@pytest.mark.parametrize("code", [0, 1, 130])
def test_ci_ends_with_the_test_commands_exit_code(bare, code):
    run, put = bare
    for name in PACKAGES:
        put(name, "")
    put("python3", NEW.format(code=code))
    done = run()
    assert done.returncode == code, done.stderr
    assert done.stdout.strip().endswith("python3 tests/run.py")


def test_ci_chooses_a_python_that_is_new_enough(bare):
    run, put = bare
    for name in PACKAGES:
        put(name, "")
    put("python3", OLD)
    put("python3.13", OLD)  # a pyenv shim of a version that is not selected fails like this
    put("python3.12", NEW.format(code=7))
    done = run()
    assert done.returncode == 7
    assert "python3.12 tests/run.py" in done.stdout


def test_ci_without_a_python_says_so(bare):
    run, put = bare
    for name in PACKAGES:
        put(name, "")
    put("python3", OLD)
    done = run()
    assert done.returncode == 2
    assert "no Python 3.11 or newer" in done.stderr


def test_ci_without_rights_names_the_package(bare):
    run, put = bare
    put("id", "echo 1000")
    put("python3", NEW.format(code=0))
    done = run()
    assert done.returncode == 2
    assert "apt-get install chromium tmux dbus-daemon systemd iproute2 g++ make procps" in done.stderr


def test_ci_as_root_installs_what_is_missing_and_fails_when_that_fails(bare):
    run, put = bare
    put("id", "echo 0")
    put("python3", NEW.format(code=0))
    put("apt-get", 'echo "apt-get $*"')
    done = run()
    assert done.returncode == 0, done.stderr
    install = "apt-get install --yes --no-install-recommends chromium tmux dbus-daemon systemd iproute2 g++ make procps"
    assert done.stdout.splitlines()[:2] == ["apt-get update", install]
    put("apt-get", "exit 100")
    assert run().returncode == 100
