from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import runq_journal
from runq_journal import Journal, JournalReader
from runq_journal.view_files import views
from runq_journal.view_rows import ORDERS
from runq_schemas import events as ev
from runq_schemas.errors import JournalError


def test_the_table_of_contents_is_true() -> None:
    for name in runq_journal.__all__:
        assert getattr(runq_journal, name).__class__ is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        runq_journal.nonsense  # noqa: B018


def test_events_are_chosen_by_every_column(golden_db: Path, golden: ModuleType) -> None:
    with JournalReader.open(golden_db) as reader:

        def ids(*args: Any, **kwargs: Any) -> list[int]:
            return [event.id for event in reader.events(*args, **kwargs)]

        assert ids() == list(range(1, 69))
        assert ids(golden.RESUMED) == list(range(28, 69))
        assert ids(golden.RESUMED, 1, "judge") == [64]
        assert ids(kinds=("night.finished",)) == [27, 68]
        assert ids(kinds=iter(["night.finished", "night.interrupted"]), after=27) == [40, 68]
        assert ids(kinds=()) == []
        assert ids("no such night") == []


def test_the_newest_plan_and_all_plans(golden_db: Path, golden: ModuleType) -> None:
    with JournalReader.open(golden_db) as reader:
        plan = reader.latest_plan(golden.RESUMED)
        assert plan is not None
        assert [entry["id"] for entry in plan["entries"]] == [0, 2, 1, 3]
        assert [len(data["entries"]) for data in reader.plans(golden.RESUMED)] == [3, 4]
        for question in (reader.latest_plan, reader.night_summary):
            with pytest.raises(JournalError, match="no night 'no such night'") as raised:
                question("no such night")
            assert "runq nights" in raised.value.remedy
        assert reader.entry_results("no such night") == []


def test_single_events(golden_db: Path, golden: ModuleType) -> None:
    with JournalReader.open(golden_db) as reader:
        assert reader.count() == reader.last_event_id == 68
        assert reader.night_of(28) == golden.RESUMED
        assert reader.night_of(69) is None
        last = reader.last_event(golden.COMPLETE)
        assert last is not None and last.id == 27
        last = reader.last_event()
        assert last is not None and last.id == 68
        assert reader.last_event("no such night") is None
        assert reader.uuid == golden.GOLDEN_UUID


def test_upto_tells_what_every_view_said_then(golden_db: Path, tmp_path: Path) -> None:
    """The same as a journal that ends there, for every event of both nights."""
    with JournalReader.open(golden_db) as reader:
        events = list(reader.events())
    growing = Journal.open(tmp_path / "growing.db")
    live = growing.reader()
    for event in events:
        columns = (event.night, event.entry, event.step, event.attempt)
        growing.append(event.event, **dict(zip(("night", "entry", "step", "attempt"), columns, strict=True)))
        with JournalReader.open(golden_db, upto=event.id) as then:
            assert then.count() == then.last_event_id == event.id
            for view in views():
                now = live.view(view.name)
                assert without_times(then.view(view.name)) == without_times(now), (event.id, view.name)
    growing.close()


ADDED = ("window", "max_failures", "lifted", "order", "lang")
"""Fields of a plan that are younger than the golden journal: an event written anew has them, with their defaults."""


def without_added(data: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(data).items() if name not in ADDED}


def without_times(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [{**row, "data": without_added(row["data"])} if "data" in row else row for row in rows]
    times = ("at", "started_at", "finished_at", "last_at", "began_at", "ended_at")
    by_the_clock = ("queue_dir", "began_at")
    return [
        {
            key: value
            for key, value in row.items()
            if key not in times and not (key == "seconds" and any(name in row for name in by_the_clock))
        }
        for row in sorted(rows, key=lambda row: [str(value) for key, value in row.items() if key not in times])
    ]


def test_upto_cuts_the_samples_too(golden_db: Path, golden: ModuleType) -> None:
    with JournalReader.open(golden_db) as reader:
        assert [sample.mb for sample in reader.samples(golden.COMPLETE)] == [12500.0, 21100.0]
    with JournalReader.open(golden_db, upto=13) as reader:
        assert [sample.mb for sample in reader.samples(golden.COMPLETE)] == [12500.0]
    with JournalReader.open(golden_db, upto=0) as reader:
        assert reader.nights() == []
        assert reader.samples(golden.COMPLETE) == []
        assert reader.last_event() is None


def test_a_reader_uses_its_own_views_and_the_writer_refreshes_the_stored_ones(
    golden_db: Path, golden: ModuleType
) -> None:
    conn = sqlite3.connect(golden_db)
    with conn:
        conn.execute("DROP VIEW entry_result")
        conn.execute("CREATE VIEW entry_result AS SELECT 'an older version' AS night")
        conn.execute("DROP VIEW todo")
        conn.execute("CREATE VIEW my_own AS SELECT 1 AS one")
    with JournalReader.open(golden_db) as reader:
        assert len(reader.entry_results(golden.COMPLETE)) == 2
    assert conn.execute("SELECT night FROM entry_result").fetchall() == [("an older version",)]
    Journal.open(golden_db).close()
    assert len(conn.execute("SELECT night FROM entry_result").fetchall()) == 6
    assert len(conn.execute("SELECT * FROM todo").fetchall()) == 5
    assert conn.execute("SELECT * FROM my_own").fetchall() == [(1,)]
    conn.close()


def test_a_reader_cannot_write(golden_db: Path) -> None:
    with JournalReader.open(golden_db) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._conn.execute("DROP TABLE main.event")


def test_the_writers_reader_sees_each_event_at_once_and_does_not_close_it(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.db") as journal:
        for number in range(1, 4):
            with journal.reader() as reader:
                iterator = reader.events()
                journal.append(ev.EntryStarted(), night="n", entry=number)
                assert next(iterator).id == 1
            assert reader.count() == number


def test_data_that_is_not_json_is_a_journal_error(golden_db: Path, tamper: Any) -> None:
    tamper(golden_db, "UPDATE event SET data = '{' WHERE id = 5")
    with JournalReader.open(golden_db) as reader:
        with pytest.raises(JournalError, match="data of event 5"):
            list(reader.events())
        with pytest.raises(JournalError, match="malformed JSON") as raised:
            tamper(golden_db, "UPDATE event SET data = '{' WHERE id = 1")
            reader.nights()
        assert "replay --verify" in raised.value.remedy


def test_a_view_that_does_not_exist_is_not_asked_for(golden_db: Path) -> None:
    with JournalReader.open(golden_db) as reader, pytest.raises(KeyError):
        reader.view("event; DROP TABLE event")


def test_every_view_has_an_order_and_says_what_its_columns_are(golden_db: Path) -> None:
    assert sorted(ORDERS) == [view.name for view in views()]
    with JournalReader.open(golden_db) as reader:
        for view in views():
            cursor = reader._conn.execute(f"SELECT * FROM {view.name}")
            assert list(view.columns) == [column[0] for column in cursor.description], view.name
            assert view.about.endswith("."), view.name


@pytest.mark.parametrize("view", [view.name for view in views() if view.name not in ("duration_estimate", "pack_disk")])
def test_a_question_about_one_night_reads_no_other_night(golden_db: Path, view: str) -> None:
    """SQLite's own word for reading a whole table or index is SCAN; subqueries and JSON may be scanned."""
    with JournalReader.open(golden_db) as reader:
        plan = reader._conn.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {view} WHERE night = ?", ("n",)).fetchall()
        tables = {"event", "other", "first", "word", "settled", "finished", "started", "night_plan", "plan"}
        scans = [row[3] for row in plan if row[3].startswith("SCAN")]
        assert not [scan for scan in scans if scan.split()[1] in tables and "VIRTUAL" not in scan], scans


def test_the_reset_or_restart_that_was_under_way(story: Any) -> None:
    def found() -> int | None:
        with JournalReader.open(story.path) as reader:
            event = reader.unfinished_helper()
        return event.id if event else None

    story.plan([story.planned(0, 0, "m")])
    assert found() is None
    story.say(ev.EntryStarted(), 0)
    reset = story.say(ev.ResetStarted(backend="lms", before_step="eval"), 0)
    assert found() == reset
    story.baseline(0, 4000.0)  # another, with its settling
    assert found() is None
    restart = story.say(ev.RestartStarted(argv=("x",), log="x"), 0, "eval")
    assert found() == restart
    story.say(ev.RestartFinished(exit_code=0), 0, "eval")
    assert found() is None
    story.say(ev.ResetStarted(backend="lms", before_step="eval"), 0)
    story.say(ev.EntryFinished(status="interrupted"), 0)  # its own runner has ended the command
    assert found() is None
