"""What is saved of a damaged journal: a prefix of its events, unchanged, whatever happened to the file."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runq_journal import Journal, JournalReader, Sample
from runq_journal.salvage import salvage
from runq_journal.schema import GUARDS
from runq_schemas.errors import JournalError
from runq_schemas.events import Warned

NOW = datetime(2026, 12, 1, 7, 0, 0, tzinfo=UTC)


def events_of(path: Path) -> list[Any]:
    with JournalReader.open(path) as reader:
        return list(reader.events())


def saved(damaged: Path) -> tuple[Any, list[Any], Any]:
    """What salvage says, the events that it saved, and the one that says where they come from."""
    into = damaged.with_name("new.db")
    into.unlink(missing_ok=True)
    found = salvage(damaged, into, now=lambda: NOW)
    assert found.path == into and oct(into.stat().st_mode)[-3:] == "600"
    with JournalReader.open(into, at_rest=True) as reader:
        assert reader.verify() is None
        *kept, told = reader.events()
    assert told.kind == "journal.salvaged" and told.data["events"] == len(kept) == found.events
    return found, kept, told


def prints(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_everything_before_an_edited_event_is_saved(golden_db: Path, tamper: Callable[..., None]) -> None:
    whole = events_of(golden_db)
    tamper(golden_db, "UPDATE event SET data = '{}' WHERE id = 20")
    before = prints(golden_db.parent)
    found, kept, told = saved(golden_db)
    assert kept == whole[:19]
    assert (found.lost, found.broken) == (len(whole) - 19, "event 20 is not what its hash vouches for")
    assert (found.last_at, found.last_night) == (whole[18].at, whole[18].night)
    assert told.data["source"] == str(golden_db) and told.data["sha256"] == before["journal.db"]
    assert told.night == "2026-12-01_070000_salvage"
    assert prints(golden_db.parent) == before | {"new.db": prints(golden_db.parent)["new.db"]}


def test_a_missing_event_ends_the_chain(golden_db: Path, tamper: Callable[..., None]) -> None:
    whole = events_of(golden_db)
    tamper(golden_db, "DELETE FROM event WHERE id = 5")
    found, kept, _ = saved(golden_db)
    assert kept == whole[:4]
    assert found.broken == "event 5 is missing"


def test_a_cut_end_loses_nothing_more(golden_db: Path, tamper: Callable[..., None]) -> None:
    whole = events_of(golden_db)
    tamper(golden_db, f"DELETE FROM event WHERE id > {len(whole) - 3}")
    found, kept, _ = saved(golden_db)
    assert kept == whole[:-3]
    assert (found.lost, found.broken) == (3, f"the end is cut off: it had given {len(whole)} numbers")


def test_a_missing_guard_costs_no_event_and_is_there_again(golden_db: Path) -> None:
    whole = events_of(golden_db)
    conn = sqlite3.connect(golden_db)
    conn.execute("DROP TRIGGER event_no_update")
    conn.commit()
    conn.close()
    found, kept, _ = saved(golden_db)
    assert (kept, found.lost, found.broken) == (whole, 0, "")
    conn = sqlite3.connect(found.path)
    names = {name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")}
    assert names == set(GUARDS)
    conn.close()


def test_readings_and_the_journals_own_id_come_along(tmp_path: Path, tamper: Callable[..., None]) -> None:
    path = tmp_path / "journal.db"
    sample = Sample(night="n", at=NOW, entry=0, step="eval", probe="system", mb=1024.5)
    with Journal.open(path) as journal:
        uuid = journal.uuid
        for number in range(3):
            journal.append(Warned(message=str(number)), night="n")
        journal.add_samples([sample])
    tamper(path, "UPDATE event SET kind = 'x' WHERE id = 3")
    found, kept, _ = saved(path)
    assert (len(kept), found.samples) == (2, 1)
    with JournalReader.open(found.path) as reader:
        assert reader.uuid == uuid
        assert reader.samples("n") == [sample]


def test_a_saved_journal_goes_on(golden_db: Path, tamper: Callable[..., None]) -> None:
    tamper(golden_db, "UPDATE event SET at = '' WHERE id = 30")
    found, kept, _ = saved(golden_db)
    with Journal.open(found.path) as journal:
        assert journal.append(Warned(message="on we go"), night="n").id == len(kept) + 2
        assert journal.reader().verify() is None


@pytest.fixture
def long_journal(tmp_path: Path) -> Path:
    """400 events of about 1 KB each, and nothing in a -wal file."""
    path = tmp_path / "long" / "journal.db"
    with Journal.open(path) as journal:
        for number in range(400):
            journal.append(Warned(message=f"{number} {'x' * 1000}"), night="n")
    return path


@pytest.mark.parametrize("part", [0.25, 0.5, 0.75])
def test_a_file_that_was_cut_short_is_read_as_far_as_it_goes(long_journal: Path, part: float) -> None:
    whole = events_of(long_journal)
    pages = long_journal.stat().st_size // 4096
    with long_journal.open("r+b") as file:
        file.truncate(int(pages * part) * 4096)
    found, kept, _ = saved(long_journal)
    assert kept == whole[: len(kept)]
    # A page holds three of them; schema and indices take some pages of the file, the views some early ones.
    assert 400 * part - 120 < len(kept) < 400 * part + 20
    assert found.broken.startswith(f"SQLite cannot read on after event {len(kept)}: ")
    with pytest.raises(JournalError) as raised:
        Journal.open(long_journal)
    assert raised.value.exit_code == 4 and "runq salvage" in raised.value.remedy


@pytest.mark.parametrize("lost", [range(0, 100), range(0, 4096), range(0, 16), range(100, 4096)])
def test_a_lost_first_page_is_replaced(long_journal: Path, lost: range) -> None:
    whole = events_of(long_journal)
    before = long_journal.read_bytes()
    with long_journal.open("r+b") as file:
        file.seek(lost.start)
        file.write(b"\xa5" * len(lost))
    found, kept, _ = saved(long_journal)
    assert (kept, found.lost, found.broken) == (whole, 0, "")
    assert long_journal.read_bytes()[4096:] == before[4096:]
    with pytest.raises(JournalError) as raised:
        Journal.open(long_journal)
    assert raised.value.exit_code == 4


def test_a_damaged_page_in_the_middle_ends_it_there(long_journal: Path) -> None:
    whole = events_of(long_journal)
    at = long_journal.read_bytes().index(b'"message":"200 xxx')
    with long_journal.open("r+b") as file:
        file.seek(at // 4096 * 4096)
        file.write(bytes(4096))
    found, kept, _ = saved(long_journal)
    assert kept == whole[: len(kept)] and 196 < len(kept) <= 200
    assert found.lost == 400 - len(kept)


def test_what_is_still_in_the_wal_file_counts(tmp_path: Path) -> None:
    live = tmp_path / "live" / "journal.db"
    with Journal.open(live) as journal:
        for number in range(5):
            journal.append(Warned(message=str(number)), night="n")
        copy = tmp_path / "copy" / "journal.db"
        shutil.copytree(live.parent, copy.parent)  # as after a power cut
    before = prints(copy.parent)
    assert (copy.parent / "journal.db-wal").stat().st_size > 0
    _, kept, _ = saved(copy)
    assert len(kept) == 5
    assert {name: sha for name, sha in prints(copy.parent).items() if name != "new.db"} == before


@pytest.mark.parametrize("text", [b"notes of somebody\n" * 400, b"SQLite format 3\x00" + b"\x01" * 8000])
def test_what_is_no_database_gives_nothing(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(text)
    with pytest.raises(JournalError) as raised:
        salvage(path, tmp_path / "new.db", now=lambda: NOW)
    assert raised.value.exit_code == 4 and "backup" in raised.value.remedy
    assert [one.name for one in tmp_path.iterdir()] == ["journal.db"]


def test_another_file_is_not_overwritten(golden_db: Path) -> None:
    into = golden_db.with_name("new.db")
    into.write_text("mine")
    with pytest.raises(JournalError, match="in the way"):
        salvage(golden_db, into, now=lambda: NOW)
    assert into.read_text() == "mine"


def test_a_damaged_journal_is_never_opened_for_writing(golden_db: Path, tamper: Callable[..., None]) -> None:
    tamper(golden_db, "UPDATE event SET data = '{}' WHERE id = 2")
    before = prints(golden_db.parent)
    with pytest.raises(JournalError, match="Event 2 was edited") as raised:
        Journal.open(golden_db)
    assert raised.value.exit_code == 4 and "runq salvage" in raised.value.remedy
    assert prints(golden_db.parent)["journal.db"] == before["journal.db"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cut=st.none() | st.floats(0.0, 1.0),
    holes=st.lists(st.tuples(st.floats(0.0, 0.999), st.binary(min_size=1, max_size=300)), max_size=4),
)
def test_whatever_happened_what_is_saved_is_a_prefix(golden_db: Path, cut: float | None, holes: list[Any]) -> None:
    folder = golden_db.parent / "hurt"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = folder / "journal.db"
    data = bytearray(golden_db.read_bytes())
    for where, garbage in holes:
        at = int(where * len(data))
        data[at : at + len(garbage)] = garbage
    path.write_bytes(data if cut is None else data[: int(cut * len(data))])
    try:
        found, kept, _ = saved(path)
    except JournalError as error:
        assert error.exit_code == 4
        return
    assert kept == events_of(golden_db)[: len(kept)]
    assert found.broken or found.lost in (0, None)
