"""What keeps the machine awake: real programs over a real D-Bus daemon, answered as a desktop or logind would."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from runq.keep_awake import NotHeldError, by_caffeinate, by_wakepy, ways

from ..stand_ins.power_bus import PowerBus

WAITS = "while not os.path.exists('go'): time.sleep(0.02)\ndone()"


@pytest.fixture
def bus(tmp_path_factory: pytest.TempPathFactory, missing: Callable[[str], NoReturn]) -> Iterator[PowerBus]:
    for program in ("dbus-daemon", "systemd-inhibit"):
        if shutil.which(program) is None:
            missing(f"{program} is not on this machine")
    power = PowerBus(tmp_path_factory.mktemp("b") / "d")  # a socket's path has to be short
    power.start()
    yield power
    power.stop()


@pytest.fixture
def awake(workshop: Any) -> Any:
    """A workshop whose night waits for `go`, kept awake where it can be."""
    workshop.commands(["a"], {"work": WAITS})
    workshop.env["RUNQ_KEEP_AWAKE"] = "1"
    for name in ("DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_DESKTOP", "WAKEPY_FAKE_SUCCESS"):
        workshop.env.pop(name, None)
    workshop.env["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={workshop.folder / 'no-bus'}"
    return workshop


def test_a_desktop_is_asked_first_and_let_go_at_the_end(awake: Any, bus: PowerBus) -> None:
    night = awake.start("night", "queue.yaml", env={"DBUS_SESSION_BUS_ADDRESS": bus.address})
    awake.wait_for_event("step.spawned")
    assert bus.held() == 1 and bus.given_back == 0
    (event,) = awake.events("night.kept_awake")
    assert event.data == {"how": "wakepy (org.freedesktop.PowerManagement)"}
    awake.write("go", "")
    assert night.wait(30) == 0
    assert (bus.held(), bus.given_back) == (0, 1)
    assert awake.events("warning") == []


def test_without_a_session_bus_logind_is_asked(awake: Any, bus: PowerBus) -> None:
    night = awake.start("night", "queue.yaml", env={"DBUS_SYSTEM_BUS_ADDRESS": bus.address})
    awake.wait_for_event("step.spawned")
    assert bus.asked == [("idle:sleep", "runq", "a night of evaluations runs", "block")]
    assert bus.held() == 1
    (event,) = awake.events("night.kept_awake")
    assert event.data == {"how": "systemd-inhibit"}
    awake.write("go", "")
    assert night.wait(30) == 0
    awake.wait_for(lambda: bus.held() == 0)
    assert "the machine is kept awake by systemd-inhibit" in night.communicate()[0]


@pytest.mark.parametrize("by", ["session", "system"])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_is_let_go_however_the_runner_ends(awake: Any, bus: PowerBus, by: str, how: int) -> None:
    night = awake.start("night", "queue.yaml", env={f"DBUS_{by.upper()}_BUS_ADDRESS": bus.address})
    awake.wait_for_event("step.spawned")
    assert bus.held() == 1
    night.send_signal(how)
    assert night.wait(30) == (-how if how == signal.SIGKILL else 130)
    awake.wait_for(lambda: bus.held() == 0)


def test_it_is_let_go_when_the_journal_cannot_be_written(awake: Any, bus: PowerBus) -> None:
    code = (
        "from runq_journal.journal import Journal\n"
        "from runq_schemas.errors import JournalError\n"
        "real = Journal.append\n"
        "def append(self, event, **where):\n"
        "    if event.kind == 'step.finished': raise JournalError('gone')\n"
        "    return real(self, event, **where)\n"
        "Journal.append = append"
    )
    awake.write("go", "")
    result = awake.night(code=code, env={"DBUS_SYSTEM_BUS_ADDRESS": bus.address})
    assert result.returncode == 4, result.stderr
    assert len(bus.asked) == 1
    awake.wait_for(lambda: bus.held() == 0)


def test_a_refusal_is_a_warning_and_the_night_runs(awake: Any, bus: PowerBus) -> None:
    bus.denies = True
    awake.write("go", "")
    both = {"DBUS_SESSION_BUS_ADDRESS": bus.address, "DBUS_SYSTEM_BUS_ADDRESS": bus.address}
    assert awake.night(env=both).returncode == 0
    (warned,) = awake.events("warning")
    assert warned.data["message"] == (
        "nothing keeps this machine awake (wakepy: no desktop session does it;"
        " systemd-inhibit: Failed to inhibit: Access denied)"
    )
    assert "RUNQ_KEEP_AWAKE=0" in warned.data["remedy"]
    assert awake.events("night.kept_awake") == []


def test_it_can_be_switched_off(awake: Any, bus: PowerBus) -> None:
    awake.write("go", "")
    assert awake.night("--no-keep-awake", env={"DBUS_SYSTEM_BUS_ADDRESS": bus.address}).returncode == 0
    assert awake.runq("rerun", "e0", env={"RUNQ_KEEP_AWAKE": "no"}).returncode == 0
    assert bus.asked == [] and awake.events("warning", "night.kept_awake") == []


def test_the_doctor_tries_it_and_lets_go(awake: Any, bus: PowerBus) -> None:
    ran = awake.runq("doctor", "queue.yaml", "--json", env={"DBUS_SYSTEM_BUS_ADDRESS": bus.address})
    (sleep,) = [row for row in json.loads(ran.stdout)["findings"] if row["name"] == "sleep"]
    assert (sleep["status"], sleep["message"]) == ("ok", "a night keeps it awake, by systemd-inhibit")
    assert len(bus.asked) == 1
    awake.wait_for(lambda: bus.held() == 0)


def test_a_night_that_waits_for_its_start_is_kept_awake(awake: Any, bus: PowerBus) -> None:
    night = awake.start(
        "night", "queue.yaml", "--start-at", "2100-01-01T00:00", env={"DBUS_SYSTEM_BUS_ADDRESS": bus.address}
    )
    awake.wait_for_event("night.waiting")
    awake.wait_for(lambda: bus.held() == 1)
    night.send_signal(signal.SIGINT)
    assert night.wait(30) == 130
    awake.wait_for(lambda: bus.held() == 0)


def test_a_success_that_wakepy_was_told_to_pretend_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKEPY_FAKE_SUCCESS", "1")
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    with pytest.raises(NotHeldError):
        by_wakepy()


def test_every_system_has_its_ways() -> None:
    assert list(ways("linux")) == ["wakepy", "systemd-inhibit"]
    assert list(ways("darwin")) == ["wakepy", "caffeinate"]
    assert list(ways("win32")) == ["wakepy"]


def program(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return path


def test_caffeinate_waits_for_this_process_and_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import os, sys, time\nopen('told', 'w').write(f'{os.getpid()} {sys.argv[1:]}')\ntime.sleep(600)\n"
    monkeypatch.chdir(tmp_path)
    program(tmp_path, "caffeinate", text, monkeypatch)
    hold = by_caffeinate()
    while not (told := tmp_path / "told").exists() or not told.read_text():
        pass
    pid, _, arguments = told.read_text().partition(" ")
    assert arguments == str(["-i", "-w", str(os.getpid())])
    assert os.getpgid(int(pid)) != os.getpgid(0)
    hold.release()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_caffeinate_that_ends_at_once_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "caffeinate", "import sys\nsys.exit('caffeinate: not here')\n", monkeypatch)
    with pytest.raises(NotHeldError, match=r"^caffeinate: not here$"):
        by_caffeinate()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(NotHeldError, match=r"^No such file or directory$"):
        by_caffeinate()
