from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from runq_journal import GENESIS, Journal, JournalReader, first_break, verify
from runq_journal.chain import canonical, event_hash
from runq_journal.schema import GUARDS
from runq_schemas import events as ev

Tamper = Callable[..., None]

json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
any_event = st.one_of(
    st.builds(ev.Warned, message=st.text()),
    st.builds(ev.EntryStarted),
    st.builds(ev.StepSkipped, reason=st.text()),
    st.builds(ev.UnknownEvent, name=st.text(min_size=1), data=st.dictionaries(st.text(), json_data, max_size=3)),
)
written = st.tuples(
    any_event,
    st.text(min_size=1),
    st.none() | st.integers(0, 10**6),
    st.none() | st.text(),
    st.none() | st.integers(1, 99),
)
once = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def breaks(path: Path) -> list[tuple[int | None, str]]:
    conn = sqlite3.connect(path)
    try:
        return [(found.event_id, found.kind) for found in verify(conn)]
    finally:
        conn.close()


@pytest.fixture
def five(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        for number in range(5):
            journal.append(
                ev.Warned(message=f"warning {number}"), night="n", entry=number, step="eval", attempt=number + 1
            )
    return path


def test_the_hash_is_that_of_the_columns_as_a_json_array(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        stored = journal.append(ev.Warned(message='café "quoted" \n \U0001f319'), night="nächte", step="é")
    (row,) = sqlite3.connect(path).execute("SELECT * FROM event").fetchall()
    text = json.dumps(list(row[:10]), separators=(",", ":"))
    assert text.isascii()
    assert row[9] == GENESIS == "sha256:" + "0" * 64
    assert row[10] == stored.hash == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    assert canonical(row[:10]) == text
    assert event_hash(text) == stored.hash
    assert breaks(path) == []


def test_an_empty_journal_holds(tmp_path: Path) -> None:
    Journal.open(tmp_path / "journal.db").close()
    assert breaks(tmp_path / "journal.db") == []


@once
@given(events=st.lists(written, min_size=1, max_size=8))
def test_any_sequence_of_events_makes_a_chain(
    tmp_path_factory: pytest.TempPathFactory, events: list[tuple[Any, ...]]
) -> None:
    path = tmp_path_factory.mktemp("chain") / "journal.db"
    with Journal.open(path) as journal:
        told = [journal.append(e, night=n, entry=i, step=s, attempt=a) for e, n, i, s, a in events]
        assert list(journal.reader().events()) == told
    assert breaks(path) == []
    assert [event.id for event in told] == list(range(1, len(events) + 1))
    assert [event.prev_hash for event in told] == [GENESIS, *[event.hash for event in told[:-1]]]
    with JournalReader.open(path) as reader:
        assert list(reader.events()) == told
        assert reader.verify() is None


@once
@given(data=st.data())
def test_any_edited_field_is_found(five: Path, tamper: Tamper, data: st.DataObject) -> None:
    path = five.with_name("edited.db")
    shutil.copy(five, path)
    number = data.draw(st.integers(1, 5))
    column = data.draw(
        st.sampled_from(["night", "at", "elapsed_s", "kind", "entry", "step", "attempt", "data", "prev_hash", "hash"])
    )
    conn = sqlite3.connect(path)
    (old,) = conn.execute(f"SELECT {column} FROM event WHERE id = ?", (number,)).fetchone()
    conn.close()
    if isinstance(old, str):
        place = data.draw(st.integers(0, len(old) - 1))
        letter = data.draw(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters=old[place]))
        new: object = old[:place] + letter + old[place + 1 :]
    elif isinstance(old, int):
        new = data.draw(st.integers(0, 2**40))
    else:
        new = data.draw(st.floats(0, 1e6))
    assume(new != old)
    tamper(path, (f"UPDATE event SET {column} = ? WHERE id = ?", (new, number)))
    found = breaks(path)
    assert (number, "edited") in found
    path.unlink()


@once
@given(gone=st.sets(st.integers(1, 5), min_size=1))
def test_any_deleted_events_are_found(five: Path, tamper: Tamper, gone: set[int]) -> None:
    path = five.with_name("deleted.db")
    shutil.copy(five, path)
    tamper(path, *[("DELETE FROM event WHERE id = ?", (number,)) for number in gone])
    found = breaks(path)
    kept = sorted({1, 2, 3, 4, 5} - gone)
    last = kept[-1] if kept else 0
    if last < 5:
        assert (last + 1, "cut") in found
    for before, after in zip([0, *kept], kept, strict=False):
        assert ((after, "missing") in found) == (after != before + 1)
    path.unlink()


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 4), (1, 5)])
def test_swapped_events_are_found(five: Path, tamper: Tamper, first: int, second: int) -> None:
    tamper(
        five,
        f"UPDATE event SET id = 100 WHERE id = {first}",
        f"UPDATE event SET id = {first} WHERE id = {second}",
        f"UPDATE event SET id = {second} WHERE id = 100",
    )
    found = breaks(five)
    assert (first, "edited") in found
    assert (second, "edited") in found


def test_an_event_moved_with_a_hash_that_fits_it_breaks_the_next(five: Path, tamper: Tamper) -> None:
    conn = sqlite3.connect(five)
    row = list(conn.execute("SELECT * FROM event WHERE id = 3").fetchone())
    conn.close()
    row[8] = '{"message":"forged","remedy":""}'
    tamper(five, ("UPDATE event SET data = ?, hash = ? WHERE id = 3", (row[8], event_hash(canonical(row[:10])))))
    assert breaks(five) == [(4, "reordered")]


@pytest.mark.parametrize("number", [0, -7, 9])
def test_an_inserted_event_is_found(five: Path, tamper: Tamper, number: int) -> None:
    tamper(
        five,
        f"INSERT INTO event SELECT {number}, night, at, 1, kind, 1, step, 1, data, prev_hash, hash"
        " FROM event WHERE id = 5",
    )
    found = breaks(five)
    assert (number, "inserted" if number < 1 else "missing") in found
    assert (number, "edited") in found


def test_a_cut_tail_is_found_and_refused(five: Path, tamper: Tamper) -> None:
    from runq_schemas.errors import JournalError

    tamper(five, "DELETE FROM event WHERE id > 3")
    conn = sqlite3.connect(five)
    found = first_break(conn)
    conn.close()
    assert found is not None
    assert str(found) == "The end is cut off: events 4 to 5 are missing"
    with pytest.raises(JournalError, match="The end is cut off: events 4 to 5 are missing") as raised:
        Journal.open(five)
    assert "runq replay --verify" in raised.value.remedy


def test_a_cut_tail_is_found_when_the_record_of_numbers_is_cut_too(five: Path, tamper: Tamper) -> None:
    tamper(five, "DELETE FROM sqlite_sequence")
    assert breaks(five) == [(5, "cut")]


@pytest.mark.parametrize("guard", GUARDS)
def test_a_missing_guard_is_found(five: Path, guard: str) -> None:
    conn = sqlite3.connect(five)
    conn.execute(f"DROP TRIGGER {guard}")
    assert [str(found) for found in verify(conn)] == [
        f"The trigger {guard}, which keeps the journal append-only, is missing"
    ]
    conn.execute(f"CREATE TRIGGER {guard} BEFORE UPDATE ON event BEGIN SELECT 1; END")
    assert [found.kind for found in verify(conn)] == ["unguarded"]
    conn.close()


def test_a_column_that_lost_its_type_is_an_edit(five: Path) -> None:
    conn = sqlite3.connect(five, isolation_level=None)
    for guard in GUARDS:
        conn.execute(f"DROP TRIGGER {guard}")
    conn.execute("PRAGMA writable_schema = ON")
    conn.execute(
        "UPDATE sqlite_master SET sql = replace(replace(sql, ' STRICT', ''), 'NOT NULL', '') WHERE name = 'event'"
    )
    conn.close()
    conn = sqlite3.connect(five, isolation_level=None)
    conn.execute("UPDATE event SET data = NULL WHERE id = 2")
    conn.execute("UPDATE event SET night = x'00ff' WHERE id = 4")
    assert [f.event_id for f in verify(conn) if f.kind == "edited"] == [2, 4]
    conn.close()


def test_text_that_is_not_utf_8_is_reported_not_raised(five: Path, tamper: Tamper) -> None:
    tamper(five, "UPDATE event SET night = CAST(x'ff41' AS TEXT) WHERE id = 3")
    assert breaks(five)[0] == (3, "unreadable")


@settings(once, max_examples=150)
@given(data=st.data())
def test_a_flipped_byte_anywhere_in_the_file_changes_no_event_unseen(five: Path, data: st.DataObject) -> None:
    from runq_schemas.errors import JournalError

    with JournalReader.open(five) as reader:
        intact = list(reader.events())
    content = bytearray(five.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path = five.parent / "flipped" / "journal.db"
    path.parent.mkdir(exist_ok=True)
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        path.with_name(name).unlink(missing_ok=True)
    path.write_bytes(content)
    try:
        with JournalReader.open(path) as reader:
            if reader.verify() is None:
                assert list(reader.events()) == intact
    except JournalError:
        pass


def test_upto_leaves_the_rest_alone(five: Path, tamper: Tamper) -> None:
    tamper(five, "UPDATE event SET night = 'x' WHERE id = 4")
    conn = sqlite3.connect(five)
    assert first_break(conn, upto=3) is None
    found = first_break(conn, upto=4)
    conn.close()
    assert found is not None and found.event_id == 4
