"""What a night does with too little free memory, and with the memory pressure."""

from __future__ import annotations

from typing import Any

import pytest

TAKES = "Path('memory').write_text('1500')\ndone()"
RESET = "reset: { backend: fake, mb: 1000 }\n"


def queue(
    shop: Any, probes: str, *, floor: str = "min_free_mb: 2000", models: tuple[str, ...] = ("a", "b"), **entries: str
) -> None:
    shop.commands(list(models), {"work": TAKES}, defaults=f"{RESET}probes: {probes}\n{floor}", entries=entries)
    shop.write("memory", "3000")


def statuses(shop: Any) -> list[tuple[str, str]]:
    return [(entry["status"], entry["error"] or "") for entry in shop.summary()["entries"]]


def test_an_entry_below_the_floor_is_skipped_and_the_next_one_runs(workshop: Any) -> None:
    queue(workshop, "[{ probe: free, free: '1999.6' }]", models=("large", "small"), small="min_free_mb: 1999.5")
    assert workshop.night().returncode == 1
    reason = "only 2000 MB are free by the probe 'free', fewer than min_free_mb: 2000"
    assert statuses(workshop) == [("skipped", reason), ("complete", "")]
    assert [event.data["free_mb"] for event in workshop.events("settle.finished")] == [{"free": 1999.6}] * 2
    assert [event.entry for event in workshop.events("step.started")] == [1]
    assert f"- 0 large: {reason}\n" in workshop.markdown().replace("\\", ""), "the reason is said once"


def test_the_first_probe_that_tells_decides(workshop: Any) -> None:
    """The second one's card has plenty; the first one's has not."""
    queue(workshop, "[fake, { probe: free, free: '100' }, { probe: free, free: '9000' }]", models=("a",))
    assert workshop.night().returncode == 1
    ((status, reason),) = statuses(workshop)
    assert (status, "only 100 MB are free by the probe 'free'" in reason) == ("skipped", True)


@pytest.mark.parametrize("how", ["raise", "runq", "exit"])
def test_nobody_can_tell_is_not_enough(workshop: Any, how: str) -> None:
    queue(workshop, f"[{{ probe: free, free: {how} }}]", models=("a",))
    assert workshop.night().returncode == 1
    ((status, reason),) = statuses(workshop)
    assert status == "skipped"
    assert reason == "no probe could tell the free memory, of which min_free_mb asks for 2000 MB"
    assert any("could not tell more" in warning["message"] for warning in workshop.summary()["warnings"])


def test_without_a_floor_it_matters_to_nobody(workshop: Any) -> None:
    queue(workshop, "[{ probe: free, free: raise }]", floor="", models=("a",))
    assert workshop.night().returncode == 0
    assert workshop.summary()["warnings"] == []


def test_the_pressure_stands_beside_the_baseline(workshop: Any) -> None:
    queue(workshop, "[fake, pressed]", floor="", models=("a",))
    assert workshop.night().returncode == 0
    (settled,) = workshop.events("settle.finished")
    assert settled.data["pressure_percent"] == {"pressed": 12.5}
    assert settled.data["baseline_mb"] == {"fake": 1000.0}


@pytest.mark.parametrize(
    ("probes", "floor", "message", "remedy"),
    [
        ("[pressed]", "", "no probe reads a memory figure", "add one, for example `system`"),
        ("[fake]", "min_free_mb: 5", "none of the probes tells how much memory is free", "drop min_free_mb"),
        ("[fake]", "min_free_mb: -1", "`min_free_mb` must be at least 0, not -1", "0 or"),
    ],
)
def test_what_cannot_work_is_refused_before_the_night(
    workshop: Any, probes: str, floor: str, message: str, remedy: str
) -> None:
    queue(workshop, probes, floor=floor, models=("a",))
    ran = workshop.night()
    assert ran.returncode == 2
    assert message in ran.stderr
    assert remedy in ran.stderr
