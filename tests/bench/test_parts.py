"""Each part of the bench on the smallest sizes, with runq as this environment has it. Nothing is timed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("runq")


@pytest.fixture(autouse=True)
def this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment of its own is made for runq: that takes minutes."""
    from bench import browsing, memory, parsing, sampler, steps

    for module in (browsing, memory, steps):
        monkeypatch.setattr(module, "runq_program", lambda: PROGRAM)
    for module in (parsing, sampler):
        monkeypatch.setattr(module, "python_of", lambda _peer: Path(sys.executable))


def test_steps_are_counted_where_they_were_ok(tmp_path: Path) -> None:
    from bench import steps

    step_s, rest_s = steps.of_runq(tmp_path, 3)
    assert step_s > 0
    assert rest_s > 0
    assert steps.bare(tmp_path, 2, syncs=1) > 0
    assert steps.bare_sqlite(tmp_path, 2) > 0


def test_memory_is_read_while_the_night_runs(tmp_path: Path) -> None:
    if not Path("/proc/self/smaps_rollup").exists():
        pytest.skip("this system tells no process's share of memory")
    from bench import memory, queues

    found = memory._night(queues.of_sleeps(tmp_path / "queue.yaml", 1, 0.5), tmp_path / "runs")
    assert found[-1].steps >= 1
    assert all(reading.mb > 1 for reading in found)  # no Python is smaller


def test_the_sampler_reads_as_often_as_time_passes() -> None:
    from bench import sampler

    found = sampler.simulated(2.0, 30.0, "probe")
    assert found["readings"] == 60
    assert found["processes"] >= 2


def test_parsing_prints_seconds(tmp_path: Path) -> None:
    from bench import parsing, queues

    assert parsing._printed("runq", "runq_parse", queues.like_touchstone(tmp_path / "queue.yaml", 2), 1) > 0


def test_a_tree_is_ended_whole_by_either_way(tmp_path: Path) -> None:
    """Each raises where a process is left, or where not all of them were there."""
    from bench import ending

    ending.become_subreaper()
    table = ending._trees(tmp_path, 1, processes=6)
    assert [row.unit for row in table.rows] == ["ms", "ms"]


def test_the_end_of_a_step_is_noticed_after_it(tmp_path: Path) -> None:
    from bench import ending

    for row in ending._detection(tmp_path, 1).rows:
        assert row.figure > 0


def test_questions_to_a_journal_are_answered() -> None:
    from bench import replay

    table = replay.reading(1_000, 1)
    assert [row.name for row in table.rows if row.limit] == [
        "open, and rebuild one night's summary",
        "all nights' summaries",
        "hash chain verified",
    ]


def test_a_journal_of_the_bench_holds(tmp_path: Path) -> None:
    from bench import journals

    _, nights = journals.write(tmp_path / "runs" / "journal.db", events=1_000)
    assert nights == 2  # of 40 entries with 12 events each, and two of the night itself
    argv = [str(PROGRAM), "replay", "--verify", "--runs", str(tmp_path / "runs")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "964 events" in done.stdout + done.stderr


def test_the_page_of_a_night_is_made_and_opened() -> None:
    from bench import report

    table = report.of_night(4, 200, 1)
    assert [row.unit for row in table.rows][:2] == ["s", "MB"]
    assert 0.02 < table.rows[1].figure < 5
    assert len(table.rows) == 3 or "not installed" in table.notes[0]
