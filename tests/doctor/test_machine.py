"""What the doctor says of a machine, for machines that are not here: figures by hand, outputs as the programs print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from runq.doctor import machine
from runq.doctor.finding import Finding, as_data, as_text
from runq.doctor.machine import Battery

GB = 2**30

PMSET = """\
Battery Power:
 sleep                1
 displaysleep         2
AC Power:
 standby              1
 sleep                10
 disksleep            10
"""
PMSET_NEVER = PMSET.replace("sleep                10\n", "sleep                0\n", 1)


def gnome(kind: str, seconds: str) -> dict[str, str]:
    schema = "gsettings get org.gnome.settings-daemon.plugins.power"
    return {f"{schema} sleep-inactive-ac-type": f"'{kind}'\n", f"{schema} sleep-inactive-ac-timeout": f"{seconds}\n"}


LOGIND = " ".join(machine.LOGIND_IDLE)


@pytest.mark.parametrize(
    ("system", "printed", "message", "remedy"),
    [
        ("darwin", {"pmset -g custom": PMSET}, "macOS sleeps after 10 min", "caffeinate -is runq night"),
        ("darwin", {"pmset -g custom": PMSET_NEVER}, "", ""),
        ("darwin", {}, "", ""),
        ("linux", gnome("suspend", "900"), "GNOME does `suspend` after 15 min", "sleep-inactive-ac-type nothing"),
        ("linux", gnome("nothing", "900"), "", ""),
        ("linux", gnome("suspend", "0"), "", ""),
        ("linux", {LOGIND: 's "suspend"\n'}, "logind does `suspend`", "systemd-inhibit"),
        ("linux", {LOGIND: 's "ignore"\n'}, "", ""),
        ("linux", {}, "", ""),
    ],
)
def test_a_machine_that_falls_asleep_is_told_how_not_to(
    system: str, printed: dict[str, str], message: str, remedy: str
) -> None:
    def ask(argv: Sequence[str]) -> str | None:
        return printed.get(" ".join(argv))

    found = machine.sleep_finding(system, ask)
    assert found.status == ("warn" if message else "ok")
    assert message in found.message and remedy in found.remedy


def test_what_a_night_would_keep_awake_by_comes_before_any_setting() -> None:
    def ask(_: Sequence[str]) -> str | None:
        return PMSET

    found = machine.sleep_finding("darwin", ask, how="caffeinate")
    assert (found.status, found.message, found.remedy) == ("ok", "a night keeps it awake, by caffeinate", "")
    found = machine.sleep_finding("darwin", ask, why_not="wakepy: no")
    assert found.status == "warn"
    assert found.message.endswith("without input; a night does not keep it awake (wakepy: no)")
    found = machine.sleep_finding("linux", lambda _: None, why_not="wakepy: no")
    assert (found.status, found.message) == (
        "ok",
        "no setting found that lets it fall asleep; a night does not keep it awake (wakepy: no)",
    )


def test_keeping_awake_is_not_tried_where_a_night_would_not() -> None:
    assert machine.would_keep_awake({"RUNQ_KEEP_AWAKE": "No"}) == ("", "RUNQ_KEEP_AWAKE switches it off")


@pytest.mark.parametrize(
    ("battery", "status", "message"),
    [
        (None, "ok", "no battery"),
        (Battery(percent=81.4, power_plugged=True), "ok", "battery at 81 %, plugged in"),
        (Battery(percent=100.0, power_plugged=None), "ok", "battery at 100 %"),
        (Battery(percent=19.9, power_plugged=True), "warn", "battery at 20 %, plugged in"),
        (Battery(percent=81.4, power_plugged=False), "fail", "battery at 81 %, not plugged in"),
    ],
)
def test_a_night_on_battery_fails(battery: Battery | None, status: str, message: str) -> None:
    found = machine.power_finding(battery)
    assert found.status == status and message in found.message
    assert bool(found.remedy) == (status != "ok")


@pytest.mark.parametrize(
    ("free", "status", "told"), [(100 * GB, "ok", "100.0 GB"), (2 * GB, "warn", "2.0 GB"), (10**8, "fail", "95 MB")]
)
def test_the_disk_of_the_runs_folder(tmp_path: Path, free: int, status: str, told: str) -> None:
    asked: list[Path] = []

    def usage(place: Path) -> SimpleNamespace:
        asked.append(place)
        return SimpleNamespace(free=free)

    found = machine.disk_finding(tmp_path / "not" / "yet" / "runs", usage)
    assert asked == [tmp_path], "the nearest folder that exists"
    assert (found.status, found.message) == (status, f"{told} free in {tmp_path}")


@pytest.mark.parametrize(
    ("total", "available", "largest", "status"),
    [
        (16_384.0, 12_000.0, None, "ok"),
        (16_384.0, 1_500.0, None, "warn"),
        (16_384.0, 12_000.0, ("m", 4_800.0), "ok"),
        (16_384.0, 4_000.0, ("m", 4_800.0), "warn"),
        (16_384.0, 16_000.0, ("m", 40_000.0), "warn"),
    ],
)
def test_memory_for_the_largest_model(
    total: float, available: float, largest: tuple[str, float] | None, status: str
) -> None:
    assert machine.memory_finding(total, available, largest=largest).status == status


def test_an_old_sqlite_cannot_hold_the_journal() -> None:
    assert machine.python_finding("3.40.1").status == "ok"
    found = machine.python_finding("3.36.0")
    assert found.status == "fail" and "3.37" in found.remedy


def test_the_report_counts_and_puts_the_steps_beneath() -> None:
    findings = [
        Finding(area="a", name="x", status="ok", message="fine"),
        Finding(area="a", name="y", status="warn", message="odd", remedy="look"),
        Finding(area="b", name="z", status="fail", message="gone\x1b[31m", remedy="do this\nthen that"),
    ]
    assert as_text(findings).splitlines() == [
        "a",
        "  ok    x: fine",
        "  warn  y: odd",
        "        look",
        "",
        "b",
        "  fail  z: gone",
        "        do this",
        "        then that",
        "",
        "a night would fail: 1 to mend, 1 to look at",
    ]
    assert as_text(findings[:1]).splitlines()[-1] == "ready for a night"
    assert as_data(findings)["ok"] is False and as_data(findings[:2])["ok"] is True
