"""The room that is kept back on the journal's disk, on file systems with an end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runq_journal import Journal
from runq_journal.reserve import MOST_BYTES, Reserve, free_bytes, reserve_path
from runq_schemas.errors import JournalError
from runq_schemas.events import Warned

MB = 2**20
DiskOf = Callable[[int], Path]


def test_an_eighth_of_a_small_disk_is_kept_and_really_taken(disk_of: DiskOf) -> None:
    disk = disk_of(16)
    reserve = Reserve(disk / "r")
    assert reserve.keep() == reserve.held == 2 * MB
    assert free_bytes(disk) == 14 * MB
    assert reserve.keep() == 2 * MB  # again: nothing more
    assert oct((disk / "r").stat().st_mode)[-3:] == "600"
    reserve.close()
    assert free_bytes(disk) == 16 * MB and not (disk / "r").exists()


def test_half_is_given_each_time_and_in_the_end_all(disk_of: DiskOf) -> None:
    disk = disk_of(16)
    reserve = Reserve(disk / "r")
    reserve.keep()
    given = []
    while made := reserve.give():
        given.append(made)
        assert free_bytes(disk) == 14 * MB + sum(given)
    assert given == [MB, MB // 2, MB // 4, MB // 8, MB // 16, MB // 16]
    assert reserve.keep() == 2 * MB  # there is room again
    reserve.close()


def test_never_more_than_64_mb(disk_of: DiskOf) -> None:
    assert MOST_BYTES == 64 * MB
    reserve = Reserve(disk_of(1024) / "r")
    assert reserve.keep() == MOST_BYTES
    reserve.close()


def test_a_full_disk_keeps_nothing_back_and_is_no_error(disk_of: DiskOf) -> None:
    disk = disk_of(1)
    with pytest.raises(OSError, match="No space left"), (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(b"x" * 4096)
    reserve = Reserve(disk / "r")
    assert reserve.keep() == 0
    assert reserve.give() == 0
    reserve.close()


def test_what_a_killed_runner_left_is_taken_over(disk_of: DiskOf) -> None:
    disk = disk_of(16)
    killed = Reserve(disk / "r")
    killed.keep()
    assert killed._fd is not None
    os.close(killed._fd)  # as the system does
    later = Reserve(disk / "r")
    assert later.keep() == 2 * MB and free_bytes(disk) == 14 * MB
    later.close()
    assert free_bytes(disk) == 16 * MB


def test_where_a_file_system_cannot_allocate_the_room_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuses, raising=False)
    reserve = Reserve(tmp_path / "r")
    assert reserve.keep() == MOST_BYTES
    assert (tmp_path / "r").stat().st_blocks * 512 >= MOST_BYTES
    reserve.close()


def test_another_file_in_its_place_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "r").symlink_to(precious)
    reserve = Reserve(tmp_path / "r")
    assert reserve.keep() == 0
    reserve.close()
    assert precious.read_text() == "mine"


def test_the_journal_writes_its_words_in_the_room_that_is_made(disk_of: DiskOf) -> None:
    disk = disk_of(4)
    path = disk / "journal.db"
    opened: list[str] = []
    with Journal.open(path) as journal:
        reserve = Reserve(reserve_path(path))
        assert reserve.keep() > 0

        @contextmanager
        def room() -> Iterator[Callable[[], int]]:
            opened.append("opened")
            yield reserve.give
            opened.append("closed")

        journal.room = room
        with pytest.raises(OSError, match="No space left"), (disk / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        text = "y" * 50_000  # more than what its -wal file has to spare
        for number in range(1, 4):
            assert journal.append(Warned(message=text), night="n").id == number
        assert opened and opened == ["opened", "closed"] * (len(opened) // 2)
        with pytest.raises(JournalError) as raised:
            for _ in range(1000):
                journal.append(Warned(message=text), night="n")
        assert raised.value.no_room and raised.value.exit_code == 4 and reserve.held == 0
        assert journal.reader().verify() is None
        reserve.close()
