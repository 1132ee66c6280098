"""What a queue asks of the machine before each entry, told before the night."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runq.discovery import Plugins
from runq.doctor.lacking import lacking_findings
from runq.power import Battery
from runq.prepare import prepare
from runq_schemas.parse import load_queue

MB = 2**20


def told(shop: Any, *, free_mb: float, found: Battery | None = None) -> dict[str, tuple[str, str]]:
    queue = prepare(load_queue(shop.queue), base_dir=shop.folder, plugins=Plugins(), environ=shop.env, cwd=shop.folder)
    asked: list[Path] = []

    def free(place: Path) -> int:
        asked.append(place)
        return int(free_mb * MB)

    findings = list(lacking_findings(queue, shop.runs, read_battery=lambda: found, free=free))
    assert all(place.is_dir() for place in asked)
    assert all(bool(one.remedy) == (one.status != "ok") for one in findings)
    return {one.name: (one.status, one.message) for one in findings}


def test_a_queue_that_asks_for_nothing_is_told_nothing(workshop: Any) -> None:
    workshop.commands(["a"], {"work": "done()"})
    assert told(workshop, free_mb=0, found=Battery(percent=50.0, power_plugged=False)) == {}


@pytest.mark.parametrize(
    ("plugged", "status", "message"),
    [
        (False, "fail", "require_ac: the machine runs on battery, at 50 %"),
        (True, "ok", "require_ac: on mains power, as far as can be told"),
        (None, "ok", "require_ac: on mains power, as far as can be told"),
    ],
)
def test_mains_power(workshop: Any, plugged: bool | None, status: str, message: str) -> None:
    workshop.commands(["a", "b"], {"work": "done()"}, entries={"b": "require_ac: true"})
    found = told(workshop, free_mb=1, found=Battery(percent=50.0, power_plugged=plugged))
    assert found == {"require_ac": (status, message)}


def test_room_for_what_the_packs_took_and_for_the_floor(workshop: Any) -> None:
    shop = workshop
    work = "(bundle / 'answers').write_bytes(b'x' * 3 * 2**20)\ndone()"
    shop.commands(["a", "b"], {"work": work}, defaults='reset_command: ""\nmin_free_disk_mb: 10')
    # Before the first night only the floor counts; the runs folder is not there yet.
    assert told(shop, free_mb=10) == {"room": ("ok", "10 MB free; min_free_disk_mb asks for 10 MB")}
    assert told(shop, free_mb=9)["room"][0] == "fail"
    assert shop.night().returncode == 0
    wants = "going by earlier nights one takes 6.0 MB and min_free_disk_mb asks for 10 MB"
    assert told(shop, free_mb=17) == {"room": ("ok", f"17 MB free; {wants}")}
    assert told(shop, free_mb=15) == {"room": ("warn", f"15 MB free; {wants}")}
    assert told(shop, free_mb=9)["room"][0] == "fail"
    assert shop.runq("doctor", "queue.yaml", "--json").returncode in (0, 1)
