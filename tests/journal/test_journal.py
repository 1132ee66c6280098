from __future__ import annotations

import math
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from runq_journal import Journal, JournalReader, Sample
from runq_schemas import events as ev
from runq_schemas.errors import JournalError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "deep" / "journal.db"


def warn(journal: Journal, text: str = "x") -> Any:
    return journal.append(ev.Warned(message=text), night="n")


# --- what is written ----------------------------------------------------------------------------------------------


def test_append_gives_back_what_stands_in_the_journal(path: Path) -> None:
    clock = [100.0]
    berlin = timezone(timedelta(hours=2))
    journal = Journal.open(
        path, now=lambda: datetime(2026, 9, 1, 22, 0, 0, 5, tzinfo=berlin), monotonic=lambda: clock[0]
    )
    clock[0] = 112.5
    stored = journal.append(
        ev.StepFinished(status="ok", artifacts=(ev.Artifact(path="a", bytes=1, sha256="0"),)),
        night="n",
        entry=3,
        step="eval",
        attempt=2,
    )
    journal.close()
    assert (stored.id, stored.at, stored.elapsed_s) == (1, "2026-09-01T20:00:00.000005Z", 12.5)
    assert (stored.kind, stored.entry, stored.step, stored.attempt) == ("step.finished", 3, "eval", 2)
    assert stored.data["artifacts"] == [{"path": "a", "bytes": 1, "sha256": "0"}]
    assert isinstance(stored.event, ev.StepFinished)
    with JournalReader.open(path) as reader:
        assert list(reader.events()) == [stored]


def test_times_are_text_whose_order_is_the_order_of_time(path: Path) -> None:
    times = iter([datetime(2026, 9, 1, tzinfo=UTC), datetime(2026, 9, 1, 0, 0, 0, 1, tzinfo=UTC)])
    with Journal.open(path, now=lambda: next(times, datetime(2026, 9, 2, tzinfo=UTC))) as journal:
        assert warn(journal).at == "2026-09-01T00:00:00.000001Z"  # the first was created_at
        assert warn(journal).at == "2026-09-02T00:00:00.000000Z"


def test_a_time_without_a_zone_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="time zone"):
        Journal.open(path, now=lambda: datetime(2026, 9, 1))


def test_an_unknown_event_keeps_its_name(path: Path) -> None:
    with Journal.open(path) as journal:
        stored = journal.append(ev.UnknownEvent(name="moon.rose", data={"phase": 0.5}), night="n")
        assert (stored.kind, stored.data) == ("moon.rose", {"phase": 0.5})
        (read,) = journal.reader().events()
        assert read.event == ev.UnknownEvent(name="moon.rose", data={"phase": 0.5})


def test_redaction_happens_before_anything_is_written(path: Path) -> None:
    def redact(data: Any) -> Any:
        return {key: "***" if key == "message" else value for key, value in data.items()}

    with Journal.open(path, redact=redact) as journal:
        assert warn(journal, "s3cr3t").data["message"] == "***"
    assert b"s3cr3t" not in b"".join(file.read_bytes() for file in path.parent.iterdir())


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, object(), Path("/x")])
def test_what_json_cannot_hold_is_refused_and_leaves_no_trace(path: Path, value: Any) -> None:
    with Journal.open(path) as journal:
        warn(journal)
        with pytest.raises(ValueError, match=r"the event odd cannot be written as JSON"):
            journal.append(ev.UnknownEvent(name="odd", data={"value": [value]}), night="n")
        assert warn(journal).id == 2
    with JournalReader.open(path) as reader:
        assert reader.verify() is None


def test_a_file_name_that_is_not_utf_8_can_be_read_back(path: Path) -> None:
    with Journal.open(path) as journal:
        stored = warn(journal, b"/models/\xff\xfe".decode("utf-8", "surrogateescape") + " \U0001f319")
        assert stored.data["message"] == "/models/\\udcff\\udcfe \U0001f319"
        assert journal.reader().warnings("n")[0]["message"] == stored.data["message"]


def test_samples_are_written_all_or_none(path: Path) -> None:
    at = datetime(2026, 9, 1, tzinfo=UTC)
    one, two = (
        Sample(night="n", at=at + timedelta(seconds=s), entry=0, step="eval", probe="system", mb=s) for s in (1.0, 2.0)
    )
    with Journal.open(path) as journal:
        journal.add_samples(sample for sample in (two, one))
        journal.add_samples([])
        with pytest.raises(ValueError, match="finite"):
            journal.add_samples([one, Sample(night="n", at=at, entry=0, step="eval", probe="p", mb=math.nan)])
        assert journal.reader().samples("n") == [one, two]
        assert journal.reader().samples("n", 1) == []
        assert journal.reader().samples("n", 0, "judge") == []
        assert journal.prune_samples(at + timedelta(seconds=2)) == 1
        assert journal.reader().samples("n", 0, "eval") == [two]


# --- append only --------------------------------------------------------------------------------------------------

COLUMNS = "(id, night, at, elapsed_s, kind, entry, step, attempt, data, prev_hash, hash)"
VALUES = "'n', 'a', 1.0, 'k', NULL, NULL, NULL, '{}'"
LAST = "(SELECT hash FROM event ORDER BY id DESC LIMIT 1)"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET kind = 'x' WHERE id = 2",
        "UPDATE OR REPLACE event SET id = 1 WHERE id = 2",
        "DELETE FROM event WHERE id = 2",
        "DELETE FROM event",
        f"INSERT OR REPLACE INTO event {COLUMNS} VALUES (2, {VALUES}, {LAST}, 'h')",
        f"REPLACE INTO event {COLUMNS} VALUES (3, {VALUES}, {LAST}, 'h')",
        f"INSERT OR IGNORE INTO event {COLUMNS} VALUES (2, {VALUES}, {LAST}, 'h')",
        f"INSERT INTO event {COLUMNS} VALUES (2, {VALUES}, {LAST}, 'h') ON CONFLICT DO UPDATE SET kind = 'x'",
        f"INSERT INTO event {COLUMNS} VALUES (0, {VALUES}, {LAST}, 'h')",
        f"INSERT INTO event {COLUMNS} VALUES (-1, {VALUES}, {LAST}, 'h')",
        f"INSERT INTO event {COLUMNS} VALUES (5, {VALUES}, {LAST}, 'h')",
        f"INSERT INTO event {COLUMNS} VALUES (NULL, {VALUES}, 'not the last hash', 'h')",
        f"INSERT INTO event {COLUMNS} VALUES (4, {VALUES}, 'not the last hash', 'h')",
    ],
)
def test_the_guards_refuse(path: Path, statement: str) -> None:
    with Journal.open(path) as journal:
        for _ in range(3):
            warn(journal)
    conn = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="the journal is append-only"):
        conn.execute(statement)
    conn.rollback()
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        conn.execute("PRAGMA recursive_triggers = ON")
        conn.execute(statement)
    conn.close()
    with JournalReader.open(path) as reader:
        assert reader.verify() is None
        assert reader.count() == 3


@pytest.mark.parametrize("id_", ["NULL", "4"])
def test_a_row_behind_the_last_is_accepted_with_and_without_its_number(path: Path, id_: str) -> None:
    with Journal.open(path) as journal:
        for _ in range(3):
            warn(journal)
    conn = sqlite3.connect(path)
    with conn:
        conn.execute(f"INSERT INTO event {COLUMNS} VALUES ({id_}, {VALUES}, {LAST}, 'h')")
    assert conn.execute("SELECT max(id) FROM event").fetchone() == (4,)
    conn.close()
    with pytest.raises(JournalError, match="Event 4 was edited"):
        Journal.open(path)


# --- opening ------------------------------------------------------------------------------------------------------


def test_a_new_journal_is_its_owners_alone(path: Path) -> None:
    with Journal.open(path) as journal:
        warn(journal)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes["journal.db"] == modes["journal.db-wal"] == 0o600


def test_the_file_is_set_up_to_survive_a_power_cut(path: Path) -> None:
    with Journal.open(path) as journal:
        conn = journal._conn
        assert conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert conn.execute("PRAGMA synchronous").fetchone() == (2,)
        assert conn.execute("PRAGMA fullfsync").fetchone() == (1,)
        assert conn.execute("PRAGMA application_id").fetchone() == (0x72756E71,)
        assert conn.execute("PRAGMA busy_timeout").fetchone() == (60_000,)


def test_the_uuid_stays(path: Path) -> None:
    with Journal.open(path) as journal:
        first = journal.uuid
    with Journal.open(path) as journal, JournalReader.open(path) as reader:
        assert journal.uuid == reader.uuid == journal.reader().uuid == first
    assert len(first) == 36


def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(JournalError, match="still empty"):
        JournalReader.open(path)
    with Journal.open(path) as journal:
        assert warn(journal).id == 1


def test_closing_twice_is_nothing(path: Path) -> None:
    journal = Journal.open(path)
    journal.close()
    journal.close()
    with pytest.raises(JournalError):
        warn(journal)


def unchanged(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("opener", [Journal.open, JournalReader.open])
@pytest.mark.parametrize("kind", ["text", "wal", "delete", "live wal"])
def test_a_foreign_file_is_refused_and_not_changed(tmp_path: Path, opener: Callable[[Path], Any], kind: str) -> None:
    path = tmp_path / "journal.db"
    conn = None
    if kind == "text":
        path.write_text("My journal\n==========\nToday I ran some models.\n" * 20)
    else:
        conn = sqlite3.connect(path)
        conn.execute(f"PRAGMA journal_mode = {kind.removeprefix('live ')}")
        conn.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, night TEXT)")
        conn.commit()
        if kind != "live wal":
            conn.close()
    before = unchanged(tmp_path)
    with pytest.raises(JournalError) as raised:
        opener(path)
    assert raised.value.exit_code == 4
    assert "--runs" in raised.value.remedy
    assert "not a journal" in raised.value.message or "another program's" in raised.value.message
    assert {n: c for n, c in unchanged(tmp_path).items() if not n.endswith("-shm")} == {
        n: c for n, c in before.items() if not n.endswith("-shm")
    }
    if conn is not None:
        conn.close()


def test_a_folder_in_its_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="is a folder"):
        Journal.open(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_journal_error(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(JournalError, match="cannot be opened") as raised:
        Journal.open(tmp_path / "runs" / "journal.db")
    assert raised.value.remedy


def test_a_missing_journal_is_no_reason_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no journal") as raised:
        JournalReader.open(tmp_path / "journal.db")
    assert "runq night" in raised.value.remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("keep", [50, 0.3, 0.6, 0.95])
def test_a_truncated_journal_is_an_error_with_a_remedy(golden_db: Path, keep: float) -> None:
    content = golden_db.read_bytes()
    golden_db.write_bytes(content[: int(keep if keep > 1 else len(content) * keep)])
    for opener in (Journal.open, JournalReader.open):
        with pytest.raises(JournalError) as raised:
            opener(golden_db)
        assert raised.value.exit_code == 4
        assert raised.value.remedy


def test_a_newer_journal_is_read_but_not_written(golden_db: Path) -> None:
    conn = sqlite3.connect(golden_db)
    with conn:
        conn.execute("INSERT INTO _sqlite_migrations (migration_set, name) VALUES ('runq_journal', 'm099_future')")
        conn.execute("ALTER TABLE event ADD COLUMN moon TEXT")
    conn.close()
    with pytest.raises(JournalError, match=r"newer version of runq \(m099_future\)") as raised:
        Journal.open(golden_db)
    assert "Upgrade runq" in raised.value.remedy
    with JournalReader.open(golden_db) as reader:
        assert len(reader.entry_results("2026-09-01_220000")) == 2
        assert reader.verify() is None


def test_opening_a_current_journal_loads_no_migrations(golden_db: Path) -> None:
    code = (
        "import sys, pathlib; from runq_journal import Journal; Journal.open(pathlib.Path(sys.argv[1])).close();"
        "sys.exit('sqlite_utils' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(golden_db)], check=True)


def test_the_known_migrations_are_the_written_ones() -> None:
    from runq_journal.migrations import migrations
    from runq_journal.schema import MIGRATION_NAMES

    assert tuple(migration.name for migration in migrations._migrations) == MIGRATION_NAMES


def test_an_sqlite_that_is_too_old_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Journal.open(path).close()
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    for opener in (Journal.open, JournalReader.open):
        with pytest.raises(JournalError, match=r"SQLite .* is too old") as raised:
            opener(path)
        assert "3.37" in raised.value.remedy


def test_a_migration_that_fails_leaves_an_empty_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from runq_journal import migrations

    monkeypatch.setattr(migrations, "SAMPLE_TABLE", "CREATE TABLE nonsense (")
    with pytest.raises(JournalError):
        Journal.open(path)
    monkeypatch.undo()
    with Journal.open(path) as journal:
        assert warn(journal).id == 1


# --- when the disk does not do -------------------------------------------------------------------------------------


def test_a_full_disk_is_told_and_the_journal_goes_on_afterwards(small_disk: Path) -> None:
    path = small_disk / "journal.db"
    ballast = small_disk / "ballast"
    with Journal.open(path) as journal:
        warn(journal)
        ballast.write_bytes(b"x" * 400_000)
        with pytest.raises(JournalError) as raised:
            for _ in range(1000):
                warn(journal, "y" * 5000)
        assert raised.value.exit_code == 4
        assert "Free space" in raised.value.remedy or "free space" in raised.value.remedy
        reached = journal.reader().last_event_id
        assert reached > 10
        ballast.unlink()
        assert warn(journal).id == reached + 1
    with JournalReader.open(path) as reader:
        assert reader.verify() is None


def test_a_full_database_is_told_on_any_machine(path: Path) -> None:
    with Journal.open(path) as journal:
        journal._conn.execute("PRAGMA max_page_count = 60")
        with pytest.raises(JournalError, match="full") as raised:
            for _ in range(1000):
                warn(journal, "y" * 5000)
        assert raised.value.remedy.startswith("Free space")
        assert journal.reader().verify() is None


def test_a_read_only_folder_is_read_and_not_written(golden_db: Path, read_only: Callable[[Path], None]) -> None:
    read_only(golden_db.parent)
    with JournalReader.open(golden_db) as reader:
        assert len(reader.nights()) == 2
        assert reader.verify() is None
    with pytest.raises(JournalError) as raised:
        Journal.open(golden_db)
    assert "writable" in raised.value.remedy


def test_events_left_in_the_wal_of_a_read_only_folder_are_not_ignored(
    tmp_path: Path, read_only: Callable[[Path], None]
) -> None:
    path = tmp_path / "live" / "journal.db"
    copy = tmp_path / "copy" / "journal.db"
    copy.parent.mkdir()
    with Journal.open(path) as journal:
        warn(journal)
        for name in ("journal.db", "journal.db-wal"):  # as a killed runner leaves it, copied to another machine
            shutil.copy(path.with_name(name), copy.with_name(name))
    read_only(copy.parent)
    with pytest.raises(JournalError, match="-wal file") as raised:
        JournalReader.open(copy)
    assert "Copy journal.db and journal.db-wal" in raised.value.remedy


def test_a_journal_that_is_held_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runq_journal.connection.BUSY_TIMEOUT_S", 0.05)
    monkeypatch.setattr("runq_journal.connection.PATIENCE_S", 0.05)
    with Journal.open(path) as journal:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="locked") as raised:
            warn(journal)
        assert "Another program" in raised.value.remedy
        other.execute("ROLLBACK")
        other.close()
        assert warn(journal).id == 1


def test_an_interrupt_in_mid_append_leaves_nothing_half_done(path: Path) -> None:
    with Journal.open(path) as journal:

        def interrupted() -> datetime:
            raise KeyboardInterrupt

        journal._now, now = interrupted, journal._now
        with pytest.raises(KeyboardInterrupt):
            warn(journal)
        journal._now = now
        assert warn(journal).id == 1
