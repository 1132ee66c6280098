"""When the disk of a night counts as full; the disk itself is played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from runq.night_disk import FULL_BYTES, FULL_FOR_S, NightDisk


@attrs.define
class Warnings:
    told: list[str] = attrs.field(factory=list)

    def warn(self, message: str, remedy: str) -> None:
        self.told.append(message)


def played(*free: int | OSError) -> tuple[NightDisk, Warnings]:
    left = list(free)

    def look(_: Path) -> int:
        found = left.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    warnings: Any = Warnings()
    return NightDisk(warnings, Path("/runs"), free=look), warnings


def test_full_is_less_than_128_kib() -> None:
    disk, _ = played(2**17, 2**17 - 1, 0, OSError("gone"))
    assert [disk.full() for _ in range(4)] == [False, True, True, False]


def test_a_step_is_ended_when_every_look_for_three_seconds_finds_it_full() -> None:
    assert (FULL_BYTES, FULL_FOR_S) == (2**17, 3.0)
    disk, _ = played(0, 0, 0, 0)
    assert [disk.full_for_long(at) for at in (10.0, 11.0, 12.0, 13.0)] == [False, False, False, True]
    assert disk.was_full


def test_a_moment_with_room_begins_the_count_anew() -> None:
    disk, _ = played(0, 0, 2**30, 0, 0, 0)
    looks = [disk.full_for_long(at) for at in (10.0, 12.0, 13.0, 14.0, 16.0, 17.0)]
    assert looks == [False, False, False, False, False, True]
    disk.begin_step()
    assert not disk.was_full


def test_with_nothing_kept_back_a_full_disk_gives_nothing_and_tells_nothing() -> None:
    disk, warnings = played(0)
    disk.ready()
    assert disk.give() == 0 and warnings.told == []
