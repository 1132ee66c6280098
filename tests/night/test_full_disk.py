"""A disk that fills up costs the step that fills it; a journal that cannot be written at all ends the night with 4."""

import os
import subprocess
import sys

import pytest

from runq.report.remedies import of_attempt

FILL = """
if model == "b":
    with open(bundle / "filler", "wb", buffering=0) as stream:
        while True: stream.write(b"x" * 4096)
done()
"""

FILL_AND_HANG = """
Path(os.environ["PIDS"], model).write_text(str(os.getpid()))
if model == "b":
    try:
        with open(bundle / "filler", "wb", buffering=0) as stream:
            while True: stream.write(b"x" * 4096)
    except OSError:
        time.sleep(600)
done()
"""


def on_disk(shop, disk):
    shop.runs = disk / "runs"
    shop.journal = shop.runs / "journal.db"


def test_a_step_that_fills_the_disk_fails_and_the_rest_of_the_night_runs(workshop, disk_of):
    shop = workshop
    on_disk(shop, disk_of(16))
    models = ["a", "b", "c", "d", "e", "f"]
    shop.commands(models, {"work": FILL, "judge": "done()"})
    result = shop.night("--runs", str(shop.runs))
    assert result.returncode == 1, result.stderr
    for entry, model in enumerate(models):
        assert shop.attempts(entry, "work") == [(1, "failed" if model == "b" else "ok")]
        assert shop.attempts(entry, "judge") == ([] if model == "b" else [(1, "ok")])
    (failed,) = [e.data for e in shop.events("step.finished") if e.data["status"] == "failed"]
    assert failed["reason"] == "no space left on the disk of the runs folder: it exited with 1"
    assert failed["exit_code"] == 1
    with shop.reader() as reader:
        (failure,) = reader.failures()
    assert of_attempt(failure, {"timeout_s": 1.0, "stall_timeout_s": None}).startswith("The disk is full")
    # What the step wrote is all there: it took what was free of 16 MB, besides the eighth that is kept back.
    assert next(shop.runs.glob("*_e1_*/filler")).stat().st_size > 13 * 2**20
    warned = [event.data["message"] for event in shop.events("warning")]
    assert warned and all(text.startswith(f"the disk of {shop.runs} was full") for text in warned)
    assert shop.summary()["complete"] == 5
    verified = shop.runq("replay", "--verify", "--runs", str(shop.runs))
    assert (verified.returncode, "hash chain whole" in verified.stdout) == (0, True)
    assert not (shop.runs / "journal.db.reserve").exists()


def test_a_step_that_waits_on_a_full_disk_is_ended(workshop, disk_of):
    shop = workshop
    on_disk(shop, disk_of(16))
    shop.commands(["a", "b", "c"], {"work": FILL_AND_HANG})
    shop.env["PIDS"] = str(shop.folder)
    result = shop.night("--runs", str(shop.runs))
    assert result.returncode == 1, result.stderr
    assert [shop.attempts(entry, "work") for entry in range(3)] == [[(1, "ok")], [(1, "failed")], [(1, "ok")]]
    (failed,) = [e.data for e in shop.events("step.finished") if e.data["status"] == "failed"]
    assert failed["reason"] == "no space left on the disk of the runs folder: it was ended"
    assert shop.gone(int((shop.folder / "b").read_text()))
    assert shop.runq("replay", "--verify", "--runs", str(shop.runs)).returncode == 0


GREEDY = """
import sys
with open(sys.argv[1], "ab", buffering=0) as stream:
    while True:
        try: stream.write(b"x" * 4096)
        except OSError: pass
"""


def test_another_program_that_takes_all_room_for_itself_ends_the_night_with_a_remedy(workshop, disk_of):
    shop = workshop
    disk = disk_of(4)
    on_disk(shop, disk)
    shop.commands(["a", "b"], {"work": "while not os.path.exists('go'): time.sleep(0.05)\ndone()"})
    running = shop.start("night", "queue.yaml", "--runs", str(shop.runs))
    shop.wait_for_event("step.spawned")
    greedy = subprocess.Popen([sys.executable, "-c", GREEDY, str(disk / "filler")])
    try:
        output, _ = running.communicate(timeout=60)
    finally:
        greedy.kill()
        greedy.wait()
    assert running.returncode == 4, output
    assert "Free space" in output and "--resume" in output and "Traceback" not in output
    assert shop.marked_processes() == []
    (disk / "filler").unlink()
    shop.write("go", "")
    assert shop.night("--resume", "--runs", str(shop.runs)).returncode == 0
    first, second = shop.attempts(0, "work")
    # Whether the end of the step still found a page of the journal's -wal file that was there before is its layout's.
    assert first in [(1, "failed"), (1, "interrupted")] and second == (2, "ok")
    assert shop.runq("replay", "--verify", "--runs", str(shop.runs)).returncode == 0


def test_a_runs_folder_that_cannot_be_written(workshop, disk_of):
    shop, small_disk = workshop, disk_of(2)
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
