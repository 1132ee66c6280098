"""Power and disk before an entry: what is lacking costs the entry, is in the journal, and a resume runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runq.before_entry import needed_mb, why_no_power, why_no_room
from runq.power import Battery, recorded, worth_telling
from runq.report.remedies import of_entry

BATTERY = """
from pathlib import Path
from runq import power
def battery():
    percent, plugged = Path("battery").read_text().split()
    return power.Battery(percent=float(percent), power_plugged={"mains": True, "battery": False, "?": None}[plugged])
power.battery = battery
"""
"""The machine's battery is a file: `55 battery`, `80 mains`."""


# --- the rules --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("free", "least", "took", "reason"),
    [
        (None, 100.0, 5.0, ""),
        (0.0, None, 0.0, ""),
        (105.0, 100.0, 5.0, ""),
        (
            104.9,
            100.0,
            5.0,
            "only 104.9 MB are free on the disk of the runs folder; min_free_disk_mb asks for 100 MB and an earlier"
            " bundle of this pack took 5.0 MB",
        ),
        (
            4.5,
            None,
            5.0,
            "only 4.5 MB are free on the disk of the runs folder; an earlier bundle of this pack took 5.0 MB",
        ),
        (0.5, 1.0, 0.0, "only 0.5 MB are free on the disk of the runs folder; min_free_disk_mb asks for 1 MB"),
    ],
)
def test_room_for_what_is_asked_and_what_earlier_bundles_took(
    free: float | None, least: float | None, took: float, reason: str
) -> None:
    assert why_no_room(free, least, took) == reason


@pytest.mark.parametrize(
    ("found", "required", "reason"),
    [
        (Battery(percent=55.4, power_plugged=False), True, "require_ac: the machine runs on battery, at 55 %"),
        (Battery(percent=55.4, power_plugged=False), False, ""),
        (Battery(percent=5.0, power_plugged=True), True, ""),
        (Battery(percent=55.4, power_plugged=None), True, ""),  # who cannot be told is not accused
        (None, True, ""),
    ],
)
def test_only_a_battery_that_is_known_to_discharge_refuses(found: Battery | None, required: bool, reason: str) -> None:
    assert why_no_power(found, required) == reason


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (None, ""),
        (Battery(percent=20.0, power_plugged=True), ""),
        (Battery(percent=20.0, power_plugged=None), ""),
        (Battery(percent=19.9, power_plugged=True), "the battery is low, at 20 %, although the charger is plugged in"),
        (
            Battery(percent=90.0, power_plugged=False),
            "the machine runs on battery, at 90 %: it may be slower, and off before the morning",
        ),
    ],
)
def test_what_is_told_of_a_battery(found: Battery | None, told: str) -> None:
    message, remedy = worth_telling(found)
    assert message == told and bool(remedy) == bool(told)


def test_what_an_event_records() -> None:
    assert recorded(None) == {}
    assert recorded(Battery(percent=55.44, power_plugged=False)) == {"on_battery": True, "battery_percent": 55.4}
    assert recorded(Battery(percent=80.0, power_plugged=None)) == {"on_battery": False, "battery_percent": 80.0}


def test_what_a_night_needs_is_the_sum_of_what_its_packs_took() -> None:
    assert needed_mb(["p", "p", "q", None, "new"], {"p": 2.5, "q": 1.0, "": 0.25}) == 6.25


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        (why_no_power(Battery(percent=9.0, power_plugged=False), True), "Plug the charger in"),
        (why_no_room(1.0, 2.0, 3.0), "Free space on the disk"),
    ],
)
def test_the_report_says_what_to_do_about_a_refusal(reason: str, remedy: str) -> None:
    assert of_entry(reason).startswith(remedy)


# --- nights -----------------------------------------------------------------------------------------------------


def entries(shop: Any) -> dict[str, dict[str, Any]]:
    return {entry["model_id"]: entry for entry in shop.summary()["entries"]}


def test_an_entry_on_battery_is_flagged_and_one_that_needs_mains_waits_for_a_resume(workshop: Any) -> None:
    shop = workshop
    plugs = "Path('battery').write_text({'b': '54 mains', 'd': '53 battery'}.get(model, Path('battery').read_text()))\n"
    needs = "require_ac: true"
    shop.commands(["a", "b", "c", "d"], {"work": plugs + "done()"}, entries={"a": needs, "c": needs})
    shop.write("battery", "55 battery")
    result = shop.night(code=BATTERY)
    assert result.returncode == 1, result.stderr
    found = entries(shop)
    assert {model: entry["status"] for model, entry in found.items()} == {
        "a": "skipped",
        "b": "complete",
        "c": "complete",
        "d": "complete",
    }
    assert found["a"]["reason"] == "require_ac: the machine runs on battery, at 55 %"
    assert {model: (entry["on_battery"], entry["battery_percent"]) for model, entry in found.items()} == {
        "a": (True, 55.0),
        "b": (True, 54.0),  # it began on battery, and at its end there was less
        "c": (False, 54.0),
        "d": (True, 53.0),  # the charger went while it ran
    }
    assert [(e.entry, e.data["message"]) for e in shop.events("warning")] == [
        (1, "the machine runs on battery, at 55 %: it may be slower, and off before the morning"),
        (3, "the machine runs on battery, at 53 %: it may be slower, and off before the morning"),
    ]
    shop.write("battery", "80 mains")
    assert shop.night("--resume", code=BATTERY).returncode == 0
    assert shop.attempts(0, "work") == [(1, "ok")]
    before = shop.files(shop.queue_folder())
    assert shop.runq("replay").returncode == 0
    assert {name: stat[1] for name, stat in before.items()} == {
        name: stat[1] for name, stat in shop.files(shop.queue_folder()).items()
    }


def test_without_a_battery_nothing_is_claimed(workshop: Any) -> None:
    workshop.commands(["a"], {"work": "done()"}, defaults='reset_command: ""\nrequire_ac: true')
    assert workshop.night(code="from runq import power\npower.battery = lambda: None").returncode == 0
    (entry,) = workshop.summary()["entries"]
    assert (entry["on_battery"], entry["battery_percent"]) == (None, None)


WRITES = """
if "large" in sys.argv[3]:
    (bundle / "answers").write_bytes(b"x" * 6 * 2**20)
done()
"""


def on_disk(shop: Any, disk: Path, models: dict[str, str], **defaults: str) -> tuple[str, str]:
    shop.runs = disk / "runs"
    shop.journal = shop.runs / "journal.db"
    shop.write("large.yaml", "id: large\n")
    shop.write("small.yaml", "id: small\n")
    lines = "\n".join(f"{key}: {value}" for key, value in defaults.items())
    packs = {model: f"pack: {pack}.yaml" for model, pack in models.items()}
    shop.commands(list(models), {"work": WRITES}, defaults=f'reset_command: ""\n{lines}', entries=packs)
    text = shop.queue.read_text()
    shop.queue.write_text(text.replace("'{bundle}']", "'{bundle}', '{pack}']"))
    return ("--runs", str(shop.runs))


def test_what_earlier_bundles_of_a_pack_took_has_to_be_free(workshop: Any, disk_of: Callable[[int], Path]) -> None:
    shop = workshop
    # Of 16 MB, 2 are kept back; two bundles of 6 MB leave less than a third needs.
    where = on_disk(shop, disk_of(16), {"a": "large", "b": "large", "c": "large", "d": "small"})
    assert shop.night(*where).returncode == 1
    found = entries(shop)
    assert [found[model]["status"] for model in "abcd"] == ["complete", "complete", "skipped", "complete"]
    assert found["c"]["reason"].startswith("only ") and found["c"]["reason"].endswith(
        " MB are free on the disk of the runs folder; an earlier bundle of this pack took 6.0 MB"
    )
    with shop.reader() as reader:
        assert [(row["pack"], round(row["mb"], 2), row["n"]) for row in reader.view("pack_disk")] == [
            ("large.yaml", 6.0, 2),
            ("small.yaml", 0.0, 1),
        ]
    (shop.bundle(0, "work") / "answers").unlink()  # no artifact: `a` is still done
    assert shop.night("--resume", *where).returncode == 0
    assert shop.attempts(0, "work") == [(1, "ok")] and shop.attempts(2, "work") == [(1, "ok")]


def test_a_floor_refuses_entries_and_the_night_warns_first(workshop: Any, disk_of: Callable[[int], Path]) -> None:
    shop = workshop
    where = on_disk(shop, disk_of(16), {"a": "small", "b": "small"}, min_free_disk_mb="100")
    assert shop.night(*where).returncode == 1
    for entry in shop.summary()["entries"]:
        assert entry["status"] == "skipped"
        assert entry["reason"].endswith("free on the disk of the runs folder; min_free_disk_mb asks for 100 MB")
    (warned,) = shop.events("warning")
    assert warned.entry is None and warned.data["message"].endswith(
        f" MB are free on the disk of {shop.runs}; min_free_disk_mb asks for 100 MB"
    )
    assert shop.events("entry.started")[0].id > warned.id
