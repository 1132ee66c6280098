"""Any command as a reset."""

from __future__ import annotations

import shlex
import sys

import pytest

from runq.testing import make_context
from runq_plugins.reset.command import CommandReset


def python(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


def test_exit_0_proves_nothing(tmp_path):
    backend = CommandReset(command=python("open('evicted', 'w')"))
    outcome = backend.reset(make_context(tmp_path))
    assert (tmp_path / "evicted").exists()  # it ran in the queue's folder
    assert outcome.verdict == "unverified" and "does not prove" in outcome.reason and "verify" in outcome.remedy
    assert backend.can_verify is False and backend.endpoint({}) is None
    assert backend.loaded(make_context(tmp_path)) is None


def test_the_entry_environment_is_used(tmp_path):
    backend = CommandReset(command=(sys.executable, "-c", "import os, sys; sys.exit(os.environ['WANT'] != 'this')"))
    assert backend.reset(make_context(tmp_path, env={"WANT": "this"})).verdict == "unverified"


def test_a_verify_command_proves_it(tmp_path):
    backend = CommandReset(
        command=python("open('gone', 'w')"),
        verify=(sys.executable, "-c", "import os, sys; sys.exit(not os.path.exists('gone'))"),
    )
    context = make_context(tmp_path)
    assert backend.can_verify is True
    assert backend.loaded(context) is None
    outcome = backend.reset(context)
    assert (outcome.verdict, outcome.loaded_after) == ("verified", ())
    assert backend.loaded(context) == []


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; print('out'); sys.exit('it is stuck')", "the reset command exited 1: it is stuck"),
        ("import sys; print('only out'); sys.exit(9)", "exited 9: only out"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was ended by SIGKILL"),
        ("import time; time.sleep(600)", "did not end within 0.5 s"),
    ],
)
def test_whatever_else_happens_is_failed(tmp_path, code, words):
    backend = CommandReset(command=python(code), verify="true", timeout_s=0.5 if "sleep" in code else 60)
    outcome = backend.reset(make_context(tmp_path))
    assert outcome.verdict == "failed" and words in outcome.reason
    assert outcome.remedy.startswith("run it by hand in the queue's folder: ")


def test_a_verify_command_that_fails_is_failed(tmp_path):
    outcome = CommandReset(command="true", verify=["false"]).reset(make_context(tmp_path))
    assert outcome.verdict == "failed" and "the verify command exited 1" in outcome.reason
    assert outcome.remedy.endswith(": false")


def test_an_absent_program_is_failed(tmp_path):
    outcome = CommandReset(command="no-such-program --all").reset(make_context(tmp_path))
    assert outcome.verdict == "failed" and "cannot be started: no-such-program" in outcome.reason


@pytest.mark.parametrize("name", ["command", "verify"])
@pytest.mark.parametrize(
    ("value", "words"), [("", "is empty"), ((), "is empty"), ("a 'b", "cannot be split"), (" ", "empty")]
)
def test_wrong_commands_are_refused(name, value, words):
    with pytest.raises(ValueError, match=f"{name} .*{words}"):
        CommandReset(**({"command": "true"} | {name: value}))


def test_a_wrong_timeout_is_refused():
    with pytest.raises(ValueError, match="timeout_s must be a number above 0"):
        CommandReset(command="true", timeout_s=float("nan"))
