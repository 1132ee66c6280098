"""A journal that is damaged, or that has vanished: the night ends with 4 and a remedy, and the remedy works."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runq_journal.schema import GUARDS

STAYS = """
if model == "b":
    open("here", "w").close()
    while not os.path.exists("go"): time.sleep(0.02)
done()
"""


def edit(journal: Path, kind: str) -> int:
    """Change the last event of a kind behind the journal's back. Returns its number."""
    conn = sqlite3.connect(journal)
    with conn:
        for name in GUARDS:
            conn.execute(f"DROP TRIGGER {name}")
        (number,) = conn.execute("SELECT max(id) FROM event WHERE kind = ?", (kind,)).fetchone()
        conn.execute("UPDATE event SET data = json_set(data, '$.seconds', 1) WHERE id = ?", (number,))
        for sql in GUARDS.values():
            conn.execute(sql)
    conn.close()
    return int(number)


def test_a_damaged_journal_is_left_alone_salvaged_and_gone_on_with(workshop: Any) -> None:
    shop = workshop
    shop.commands(["a", "b", "c"], {"work": "done()"})
    assert shop.night().returncode == 0
    broken = edit(shop.journal, "step.finished")  # of c
    content = shop.journal.read_bytes()
    for words in (
        ("night", "queue.yaml"),
        ("night", "queue.yaml", "--resume"),
        ("rerun", "e0"),
        ("check", "queue.yaml"),
    ):
        refused = shop.runq(*words)
        assert refused.returncode == 4, (words, refused.stderr)
        assert f"Event {broken} was edited" in refused.stderr and "runq salvage" in refused.stderr
    verified = shop.runq("replay", "--verify")
    assert (verified.returncode, "runq salvage" in verified.stderr) == (4, True)
    doctor = shop.runq("doctor", "queue.yaml", "--json")
    found = {row["name"]: row for row in json.loads(doctor.stdout)["findings"] if row["area"] == "journal"}
    assert found["journal"]["status"] == "fail" and "runq salvage" in found["journal"]["remedy"]
    assert shop.journal.read_bytes() == content

    told = shop.runq("salvage")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(f"{shop.runs}/journal.salvaged.db: {broken - 1} events saved")
    assert shop.journal.read_bytes() == content
    again = shop.runq("salvage")
    assert (again.returncode, "in the way" in again.stderr) == (4, True)

    data = json.loads(shop.runq("salvage", "--replace", "--json").stdout)
    assert (data["events"], data["salvaged"], data["whole"]) == (broken - 1, str(shop.journal), False)
    assert re.fullmatch(r"journal\.db\.damaged-[\d_-]+", Path(data["aside"]).name)
    assert Path(data["aside"]).read_bytes() == content
    # What was in the journal is done; what was not runs again, as after a death of the runner.
    resumed = shop.night("--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert [shop.attempts(entry, "work") for entry in range(3)] == [
        [(1, "ok")],
        [(1, "ok")],
        [(1, "interrupted"), (2, "ok")],
    ]
    assert shop.runq("replay", "--verify").returncode == 0
    whole = shop.runq("salvage")
    assert (whole.returncode, whole.stdout) == (0, f"{shop.journal} is whole; nothing was written\n")


def test_a_running_night_is_not_salvaged(workshop: Any) -> None:
    shop = workshop
    shop.commands(["a", "b"], {"work": STAYS})
    running = shop.start("night", "queue.yaml")
    shop.wait_for(lambda: (shop.folder / "here").exists())
    assert shop.runq("salvage").returncode == 3
    shop.write("go", "")
    assert running.wait(30) == 0


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced"])
def test_a_journal_that_vanishes_under_a_night(workshop: Any, how: str) -> None:
    shop = workshop
    shop.commands(["a", "b", "c"], {"work": STAYS})
    running = shop.start("night", "queue.yaml")
    shop.wait_for(lambda: (shop.folder / "here").exists())
    elsewhere = shop.folder / "elsewhere"
    if how == "removed":
        shutil.rmtree(shop.runs)
    else:
        shop.runs.rename(elsewhere)
    if how == "replaced":
        shop.runs.mkdir()
        shop.journal.write_bytes(b"")
    shop.write("go", "")
    output, _ = running.communicate(timeout=60)
    assert running.returncode == 4, output
    assert "is not where it was" in output and "--resume" in output and "Traceback" not in output
    if how == "removed":
        return
    shutil.rmtree(shop.runs, ignore_errors=True)
    elsewhere.rename(shop.runs)
    assert shop.night("--resume").returncode == 0
    assert shop.attempts(0, "work") == [(1, "ok")]
    assert shop.attempts(1, "work") == [(1, "interrupted"), (2, "ok")]
    assert shop.runq("replay", "--verify").returncode == 0


def test_a_disk_that_is_taken_away_under_a_night(workshop: Any, disk_of: Callable[[int], Path]) -> None:
    shop = workshop
    disk = disk_of(16)
    shop.runs = disk / "runs"
    shop.journal = shop.runs / "journal.db"
    shop.commands(["a", "b", "c"], {"work": STAYS})
    running = shop.start("night", "queue.yaml", "--runs", str(shop.runs))
    shop.wait_for(lambda: (shop.folder / "here").exists())
    keep = shop.folder / "keep"
    keep.mkdir()
    subprocess.run(["mount", "--move", str(disk), str(keep)], check=True)
    try:
        shop.write("go", "")
        output, _ = running.communicate(timeout=60)
        assert running.returncode == 4, output
        assert "is not where it was" in output and "Traceback" not in output
        assert os.listdir(disk) == []  # nothing was written in its place
    finally:
        subprocess.run(["mount", "--move", str(keep), str(disk)], check=True)
    assert shop.night("--resume", "--runs", str(shop.runs)).returncode == 0
    assert shop.attempts(1, "work") == [(1, "interrupted"), (2, "ok")]
