"""`runq prune`: shows first, asks, keeps what a resume needs, and touches no event."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from runq.pruning import age, make_plan
from runq_journal import Journal, Sample
from runq_schemas.errors import UsageError

WORK = "(bundle / 'answers').write_bytes(b'x' * 200_000)\nprint('said')\nif model == 'bad': sys.exit(3)\ndone()"


def queue(shop: Any, name: str, models: list[str]) -> None:
    shop.commands(models, {"work": WORK})
    shop.queue.rename(shop.folder / name)


@pytest.fixture
def past(workshop: Any) -> Any:
    """Three nights: two complete ones of one queue, and between them one of another that is not complete."""
    shop = workshop
    queue(shop, "one.yaml", ["a", "b"])
    queue(shop, "two.yaml", ["a", "bad"])
    assert shop.runq("night", "one.yaml").returncode == 0
    assert shop.runq("night", "two.yaml").returncode == 1
    assert shop.runq("night", "one.yaml").returncode == 0
    shop.ids = list(reversed(shop.nights()))
    return shop


def bundles(shop: Any, night: str) -> list[str]:
    return sorted(path.name for path in shop.runs.glob(f"{night}_e*"))


def logs(shop: Any, night: str) -> list[str]:
    return sorted(path.name for path in (shop.queue_folder(night) / "logs").iterdir())


def events(shop: Any) -> list[tuple[int, str]]:
    return [(event.id, event.hash) for event in shop.events()]


# --- the ages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hours"), [("12h", 12), ("30d", 720), ("8w", 1344), (" 2D ", 48), ("0h", 0), ("99999w", 99999 * 168)]
)
def test_ages(text: str, hours: int) -> None:
    assert age(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5d", "1y", "30 d", "1h30m", "100000d"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(UsageError, match="is no age"):
        age(text)


# --- what goes and what stays -----------------------------------------------------------------------------------


def test_what_a_resume_needs_stays_and_events_are_not_touched(past: Any) -> None:
    shop = past
    queue(shop, "two.yaml", ["a"])
    assert shop.runq("night", "two.yaml").returncode == 0
    shop.ids = list(reversed(shop.nights()))
    first, unfinished, second, last = shop.ids
    before, summaries = events(shop), {night: shop.summary(night) for night in shop.ids}
    shown = shop.runq("prune", "--older-than", "0h", "--dry-run", "--json")
    assert shown.returncode == 0, shown.stderr
    data = json.loads(shown.stdout)
    assert data["deleted"] is False
    assert [(one["kind"], one["night"], len(one["paths"])) for one in data["items"]] == [
        ("logs", last, 1),
        ("logs", second, 2),
        ("logs", unfinished, 2),
        ("bundles", first, 2),
        ("logs", first, 2),
    ]
    (sizes,) = [one["bytes"] for one in data["items"] if one["kind"] == "bundles"]
    assert sizes == 2 * 200_000 + len("a") + len("b")  # the answers, and the proof that `done()` writes
    assert data["kept"] == {
        last: "it is the latest night of its queue: a resume looks at them",
        second: "it is the latest night of its queue: a resume looks at them",
        unfinished: "it is not complete: a resume needs them",
    }
    assert len(bundles(shop, first)) == 2 and len(logs(shop, first)) == 2

    done = shop.runq("prune", "--older-than", "0h", "--yes")
    assert done.returncode == 0, done.stderr
    assert bundles(shop, first) == []
    assert [len(bundles(shop, night)) for night in (unfinished, second, last)] == [2, 2, 1]
    assert all(logs(shop, night) == [] for night in shop.ids)
    assert events(shop) == before
    assert shop.runq("replay", "--verify").returncode == 0
    assert {night: shop.summary(night) for night in shop.ids} == summaries
    # Nothing of the kept nights has to run again that was done.
    again = shop.runq("night", "one.yaml", "--resume")
    assert (again.returncode, events(shop)) == (0, before)
    with shop.reader() as reader:
        assert reader.samples(first) == []
    nothing = shop.runq("prune", "--older-than", "0h", "--bundles")
    assert (nothing.returncode, "nothing to delete" in nothing.stdout) == (0, True)


def test_only_what_is_chosen_and_only_what_is_old(past: Any) -> None:
    shop = past
    first = shop.ids[0]
    assert "nothing to delete" in shop.runq("prune", "--yes").stdout  # younger than 30 days
    assert shop.runq("prune", "--older-than", "0h", "--logs", "--yes").returncode == 0
    assert logs(shop, first) == [] and len(bundles(shop, first)) == 2
    gone = shop.runq("log", "e0", "--night", first)
    assert (gone.returncode, "moved or pruned" in gone.stderr) == (2, True)


def test_old_readings_go_and_young_ones_stay(past: Any) -> None:
    shop, now = past, datetime.now(UTC)
    with Journal.open(shop.journal) as journal:
        journal.add_samples(
            Sample(night=shop.ids[0], at=now - timedelta(days=days), entry=0, step="work", probe="system", mb=1.0)
            for days in (50, 40, 31, 29, 1)
        )
        with journal.reader() as reader:
            young = len(reader.samples(shop.ids[0])) - 3
            plan = make_plan(reader, shop.runs, before=now - timedelta(days=30), kinds=("samples",))
            assert (plan.samples, plan.items) == (3, ())
    assert shop.runq("prune", "--samples", "--yes").returncode == 0
    with shop.reader() as reader:
        assert len(reader.samples(shop.ids[0])) == young


def test_links_and_what_no_night_wrote_stay(past: Any) -> None:
    shop = past
    first = shop.ids[0]
    precious = shop.folder / "precious"
    precious.mkdir()
    (precious / "mine").write_text("mine")
    link = shop.runs / f"{first}_e7_linked_eval_nopack"
    link.symlink_to(precious)
    inner = next(shop.runs.glob(f"{first}_e0_*")) / "linked"
    inner.symlink_to(precious)
    others = [shop.runs / name for name in (f"{first}-2_e0_x_eval_nopack", f"{first}_notes", "2020-01-01_000000_e0_x")]
    for other in others:
        other.mkdir()
    assert shop.runq("prune", "--older-than", "0h", "--yes").returncode == 0
    assert (precious / "mine").read_text() == "mine"
    assert link.is_symlink() and not inner.exists()
    assert all(other.is_dir() for other in others)


# --- asking -----------------------------------------------------------------------------------------------------


def test_where_nobody_can_be_asked_nothing_is_deleted(past: Any) -> None:
    for words in ((), ("--json",)):
        refused = past.runq("prune", "--older-than", "0h", *words)
        assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert len(bundles(past, past.ids[0])) == 2
    assert past.runq("prune", "--yes", "--dry-run").returncode == 2
    assert past.runq("prune", "--older-than", "soon").returncode == 2


@pytest.mark.parametrize(("answer", "left"), [(b"n\n", 2), (b"\n", 2), (b"y\n", 0)])
def test_at_a_terminal_it_asks(past: Any, answer: bytes, left: int) -> None:
    ours, theirs = pty.openpty()
    argv = [sys.executable, "-m", "runq", "prune", "--older-than", "0h", "--bundles"]
    os.write(ours, answer)
    ran = subprocess.run(
        argv, stdin=theirs, capture_output=True, text=True, cwd=past.folder, env=past.env, timeout=60, check=False
    )
    os.close(theirs)
    os.close(ours)
    assert ran.returncode == 0, ran.stderr
    assert "2 bundles" in ran.stdout and "Delete this?" in ran.stderr
    assert len(bundles(past, past.ids[0])) == left


def test_a_running_night_is_not_pruned(workshop: Any) -> None:
    shop = workshop
    shop.commands(["a"], {"work": "while not os.path.exists('go'): time.sleep(0.02)\ndone()"})
    running = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned")
    assert shop.runq("prune", "--older-than", "0h", "--yes").returncode == 3
    shop.write("go", "")
    assert running.wait(30) == 0


def test_what_cannot_be_deleted_is_told_and_the_rest_goes(past: Any) -> None:
    stuck = Path(next(past.runs.glob(f"{past.ids[0]}_e0_*")))
    code = (
        "import shutil\nreal = shutil.rmtree\n"
        "def rmtree(path, *rest, **more):\n"
        f"    if str(path) == {str(stuck)!r}: raise PermissionError(13, 'Permission denied')\n"
        "    real(path, *rest, **more)\nshutil.rmtree = rmtree"
    )
    ran = past.runq("prune", "--older-than", "0h", "--bundles", "--yes", code=code)
    assert (ran.returncode, f"could not be deleted: {stuck}: Permission denied" in ran.stderr) == (1, True)
    assert bundles(past, past.ids[0]) == [stuck.name]
