"""A journal that cannot be written ends the night with 4 and a remedy, and leaves no process behind."""

import os
import subprocess

import psutil
import pytest


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MB of its own; only root can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("mounting a small disk needs root and Linux")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


FILLS = """
if model == "b" and os.path.exists("fill"):
    Path("pid").write_text(str(os.getpid()))
    try:
        with open(bundle / "filler", "wb", buffering=0) as stream:
            while True: stream.write(b"x" * 4096)
    except OSError:
        pass
    Path("full").touch()
    time.sleep(600)
done()
"""


def test_a_disk_that_fills_up_in_mid_night(workshop, small_disk):
    shop = workshop
    shop.runs = small_disk / "runs"
    shop.journal = shop.runs / "journal.db"
    shop.commands(["a", "b", "c"], {"work": FILLS}, defaults='reset_command: ""\nstep_timeout_s: { work: 2 }')
    shop.write("fill", "")
    result = shop.night("--runs", str(shop.runs))
    assert (shop.folder / "full").exists()
    assert result.returncode == 4, result.stderr
    assert "Free space" in result.stderr and "Traceback" not in result.stderr
    assert not psutil.pid_exists(int((shop.folder / "pid").read_text()))
    next(shop.runs.glob("*_e1_*/filler")).unlink()
    (shop.folder / "fill").unlink()
    assert shop.night("--resume", "--runs", str(shop.runs)).returncode == 0
    assert shop.attempts(0, "work") == [(1, "ok")]
    assert shop.attempts(1, "work") == [(1, "interrupted"), (2, "ok")]
    assert shop.runq("replay", "--verify", "--runs", str(shop.runs)).returncode == 0


def test_a_runs_folder_that_cannot_be_written(workshop, small_disk):
    shop = workshop
    shop.commands(["a"], {"work": "done()"})
    runs = small_disk / "runs"
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused = shop.night("--runs", str(runs))
    assert (refused.returncode, "give another folder with --runs" in refused.stderr) == (4, True)
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert shop.night("--runs", str(runs)).returncode == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused = shop.night("--runs", str(runs))
    assert (refused.returncode, "Traceback" in refused.stderr) == (4, False)
    # Reading needs no write.
    assert shop.runq("status", "--runs", str(runs)).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_runs_folder_without_permission(workshop):
    workshop.commands(["a"], {"work": "done()"})
    workshop.runs.mkdir(mode=0o500)
    result = workshop.night()
    assert (result.returncode, "--runs" in result.stderr) == (4, True)


def test_something_else_in_place_of_the_journal(workshop):
    workshop.commands(["a"], {"work": "done()"})
    workshop.runs.mkdir()
    workshop.journal.write_text("not a database, but somebody's notes\n" * 10)
    result = workshop.night()
    assert result.returncode == 4
    assert workshop.journal.read_text().startswith("not a database")


def test_an_empty_file_that_a_dying_runner_left_is_no_damage(workshop):
    workshop.commands(["a"], {"work": "done()"})
    workshop.runs.mkdir()
    workshop.journal.touch()
    result = workshop.night()
    assert result.returncode == 0, result.stderr
