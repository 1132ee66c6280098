"""This machine: Python and SQLite, disk, memory, power, and whether it would fall asleep."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from runq.doctor.finding import Finding, Status
from runq.power import Battery, battery

MB = 2**20

STRICT_SQLITE = (3, 37, 0)
"""The first SQLite with STRICT tables (sqlite.org/stricttables.html), which the journal uses."""

DISK_FAIL_MB = 200.0
DISK_WARN_MB = 5_000.0
"""A night's journal, logs and bundles take some MB an entry; below 200 MB a single long log fills the disk. Several
GB of room are for harnesses that keep caches and for models that are fetched meanwhile."""

MEMORY_WARN_MB = 2_000.0
"""With less to spare, a model of two billion parameters in four bits (about 1.3 GB and its context) does not load."""

LOGIND_IDLE = (
    "busctl",
    "get-property",
    "org.freedesktop.login1",
    "/org/freedesktop/login1",
    "org.freedesktop.login1.Manager",
    "IdleAction",
)
OFF = frozenset({"0", "false", "f", "no", "n", "off"})
"""What click takes for no in a variable of the environment."""

ASK_S = 5.0
"""Seconds a settings program may take."""

Ask = Callable[[Sequence[str]], str | None]
"""What a program prints; ``None`` when it is not there or failed."""


def ask(argv: Sequence[str]) -> str | None:
    """What a program prints within 5 s; ``None`` when it is not there or failed."""
    try:
        ran = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=ASK_S, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout if ran.returncode == 0 else None


def machine_findings(runs: Path, largest: tuple[str, float] | None = None) -> Iterator[Finding]:
    """Everything about this machine.

    Args:
        runs: the runs folder of the night, which need not exist yet.
        largest: as of `memory_finding`.
    """
    import psutil

    memory = psutil.virtual_memory()
    yield python_finding(sqlite3.sqlite_version)
    yield disk_finding(runs)
    yield memory_finding(memory.total / MB, memory.available / MB, largest=largest)
    yield power_finding(battery())
    yield sleep_finding(sys.platform, ask, *would_keep_awake(os.environ))


def python_finding(sqlite: str) -> Finding:
    """Python, runq and SQLite."""
    about = f"Python {platform.python_version()}, runq {version('runq')}, SQLite {sqlite}, in {sys.executable}"
    if tuple(int(part) for part in sqlite.split(".")) < STRICT_SQLITE:
        remedy = "use a Python whose SQLite is 3.37 or newer, for example one from https://python.org"
        return Finding(area="machine", name="Python", status="fail", message=about, remedy=remedy)
    return Finding(area="machine", name="Python", status="ok", message=about)


def disk_finding(runs: Path, usage: Callable[[Path], Any] = shutil.disk_usage) -> Finding:
    """The room where the runs folder is, or will be."""
    place = next(folder for folder in (runs, *runs.parents) if os.path.exists(folder))  # noqa: PTH110 - never raises
    free_mb = usage(place).free / MB
    message = f"{_gb(free_mb)} free in {place}"
    if free_mb >= DISK_WARN_MB:
        return Finding(area="machine", name="disk", status="ok", message=message)
    status: Status = "fail" if free_mb < DISK_FAIL_MB else "warn"
    remedy = "free space there (`runq prune` deletes what old nights left), or give another folder with --runs DIR"
    return Finding(area="machine", name="disk", status=status, message=message, remedy=remedy)


def memory_finding(total_mb: float, available_mb: float, *, largest: tuple[str, float] | None = None) -> Finding:
    """Whether memory is there for a model.

    Args:
        total_mb: of the machine.
        available_mb: that programs could get now.
        largest: the largest model of the queue and the size of its weights in MB, where known.
    """
    message = f"{_gb(available_mb)} of {_gb(total_mb)} available"
    if largest is not None:
        model, size_mb = largest
        message += f"; the largest model, {model}, has weights of {_gb(size_mb)}"
        if size_mb > total_mb:
            remedy = "use a smaller quantisation of it; what fits on a graphics card is not counted here"
            return Finding(area="machine", name="memory", status="warn", message=message, remedy=remedy)
    if available_mb < max(MEMORY_WARN_MB, largest[1] if largest else 0.0):
        remedy = "close programs, and unload models that are loaded now; what a loaded model holds counts as taken"
        return Finding(area="machine", name="memory", status="warn", message=message, remedy=remedy)
    return Finding(area="machine", name="memory", status="ok", message=message)


def power_finding(found: Battery | None) -> Finding:
    """Whether the machine runs on mains power: a night on battery ends early, and is slower until then."""
    if found is None:
        return Finding(area="machine", name="power", status="ok", message="no battery, so mains power")
    message = f"battery at {found.percent:.0f} %"
    if found.discharges:
        remedy = "plug the charger in, and leave it in"
        return Finding(area="machine", name="power", status="fail", message=f"{message}, not plugged in", remedy=remedy)
    if found.low:
        remedy = "see that the charger is strong enough, and wait until it has charged"
        return Finding(area="machine", name="power", status="warn", message=f"{message}, plugged in", remedy=remedy)
    return Finding(area="machine", name="power", status="ok", message=f"{message}, plugged in")


def would_keep_awake(environ: Mapping[str, str]) -> tuple[str, str]:
    """What would keep the machine awake for a night, tried and let go at once; else why nothing does."""
    from runq.keep_awake import held_by

    if environ.get("RUNQ_KEEP_AWAKE", "").lower() in OFF:
        return "", "RUNQ_KEEP_AWAKE switches it off"
    hold, why_not = held_by()
    if hold is None:
        return "", why_not
    hold.release()
    return hold.how, ""


def sleep_finding(system: str, ask_program: Ask, how: str = "", why_not: str = "") -> Finding:
    """Whether the machine would fall asleep by itself while nobody is at it.

    Args:
        how: what keeps it awake while a night runs; empty where nothing does.
        why_not: why nothing does.
    """
    if how:
        return Finding(area="machine", name="sleep", status="ok", message=f"a night keeps it awake, by {how}")
    reason = remedy = ""
    if system == "darwin":
        reason, remedy = _mac_sleep(ask_program(["pmset", "-g", "custom"]))
    elif system.startswith("linux"):
        reason, remedy = _gnome_sleep(ask_program)
        if not reason:
            reason, remedy = _logind_sleep(ask_program(LOGIND_IDLE))
    besides = f"; a night does not keep it awake ({why_not})" if why_not else ""
    if reason:
        return Finding(area="machine", name="sleep", status="warn", message=f"{reason}{besides}", remedy=remedy)
    message = f"no setting found that lets it fall asleep{besides}"
    return Finding(area="machine", name="sleep", status="ok", message=message)


def _mac_sleep(settings: str | None) -> tuple[str, str]:
    """`pmset -g custom` has a block for each power source; ` sleep 1` is minutes, 0 is never."""
    block = (settings or "").partition("AC Power:")[2].partition("Battery Power:")[0]
    found = re.search(r"^\s*sleep\s+(\d+)", block, re.MULTILINE)
    if found is None or found[1] == "0":
        return "", ""
    return (
        f"macOS sleeps after {found[1]} min without input",
        "start the night as `caffeinate -is runq night QUEUE`, and leave the lid open",
    )


def _gnome_sleep(ask_program: Ask) -> tuple[str, str]:
    """GNOME's settings (org.gnome.settings-daemon.plugins.power)."""
    schema = "org.gnome.settings-daemon.plugins.power"
    kind = (ask_program(["gsettings", "get", schema, "sleep-inactive-ac-type"]) or "").strip().strip("'")
    seconds = (ask_program(["gsettings", "get", schema, "sleep-inactive-ac-timeout"]) or "").strip()
    if kind in ("", "nothing", "blank", "logout", "interactive") or not seconds.isdecimal() or int(seconds) == 0:
        return "", ""
    return (
        f"GNOME does `{kind}` after {int(seconds) // 60} min without input",
        f"gsettings set {schema} sleep-inactive-ac-type nothing\n"
        "or start the night as `systemd-inhibit --what=idle:sleep runq night QUEUE`",
    )


def _logind_sleep(shown: str | None) -> tuple[str, str]:
    """busctl prints `s "ignore"`."""
    action = (shown or "").partition(" ")[2].strip().strip('"')
    if action in ("", "ignore"):
        return "", ""
    return (
        f"logind does `{action}` when nobody is active",
        "start the night as `systemd-inhibit --what=idle:sleep runq night QUEUE`",
    )


def _gb(mb: float) -> str:
    return f"{mb / 1024:.1f} GB" if mb >= 1024 else f"{mb:.0f} MB"
