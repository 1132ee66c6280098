"""The laws about files hold for a real night, and each breaks when its files are tampered with."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import laws, laws_of_files
from bench.faults.scenario import scenario

ROOT = Path(__file__).parents[2]
SEED = next(seed for seed in range(1, 1000) if not scenario(seed).faults and scenario(seed).all_complete)


@pytest.fixture
def night(tmp_path):
    """The journal of a night in which nothing went wrong."""
    argv = [sys.executable, "-m", "bench.faults", "--runs", "1", "--seed", str(SEED), "--jobs", "1", "--keep"]
    done = subprocess.run([*argv, "--folder", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / f"seed-{SEED}" / "runs" / "journal.db"


def broken(journal):
    return laws.broken(laws.read(journal), laws_of_files.LAWS_OF_FILES)


def one(journal, pattern):
    return next(iter(sorted(journal.parent.glob(pattern))))


def test_every_law_holds_for_a_real_night(night):
    assert broken(night) == {}


def test_a_summary_that_somebody_edited(night):
    path = one(night, "*_queue/summary.json")
    told = json.loads(path.read_text())
    told["entries"][0]["steps"][0]["status"] = "failed"
    path.write_text(json.dumps(told))
    found = broken(night)
    assert set(found) == {"summaries are the journals", "summaries count as the events do"}
    assert "the summary says" in found["summaries count as the events do"][0]


def test_a_summary_that_was_never_written(night):
    one(night, "*_queue/summary.md").unlink()
    assert "summary.md" in broken(night)["summaries are the journals"][0]


@pytest.mark.parametrize(("change", "how"), [(Path.unlink, "is gone"), (lambda p: p.write_text("x"), "has changed")])
def test_an_artifact_that_is_not_as_recorded(night, change, how):
    change(one(night, "*_e0_*/eval.txt"))
    assert how in broken(night)["what is ok is still there"][0]


def test_a_log_that_is_not_there(night):
    one(night, "*_queue/logs/e0-eval-1.log").unlink()
    assert "e0-eval-1.log is not there" in broken(night)["every attempt has its log"][0]


@pytest.mark.parametrize("pattern", ["journal.db", "*_queue", "*_queue/summary.md", "*_queue/logs/*", "*_e0_*"])
def test_a_file_that_others_may_read(night, pattern):
    path = one(night, pattern)
    path.chmod(0o644)
    assert f"{path} has the mode 644" in broken(night)["files are for the user alone"]


@pytest.mark.parametrize("name", ["journal.db.tmp", "{queue}/.summary.json.x", "stranger/file"])
def test_a_file_that_was_left_over(night, name):
    path = night.parent / name.format(queue=one(night, "*_queue").name)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(mode=0o600)
    assert len(broken(night)["nothing is left over"]) == 1


def test_a_secret_in_a_file_or_a_name_is_found_and_a_steps_own_log_is_spared(night):
    secret = "sk-4711-secret"
    runs = night.parent
    log = one(night, "*_queue/logs/e0-eval-1.log")
    log.write_text(secret)
    assert list(laws_of_files.secrets_in(runs, [secret])) == []
    summary = one(night, "*_queue/summary.md")
    summary.write_text(summary.read_text() + secret)
    (runs / f"x{secret}").touch()
    assert list(laws_of_files.secrets_in(runs, [secret])) == [
        f"{summary} holds a secret",
        f"{runs / f'x{secret}'} has a secret in its name",
    ]
