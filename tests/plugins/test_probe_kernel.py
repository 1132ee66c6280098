"""Control groups, pressure and macOS: confirmed by awk and free, or by figures worked out by hand."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from runq.plugin import PluginError
from runq_plugins.probe import cgroup, pressure
from runq_plugins.probe.cgroup import CgroupProbe, own_groups
from runq_plugins.probe.macos import MacosProbe, used_mb
from runq_plugins.probe.pressure import PressureProbe, linux_percent
from runq_plugins.probe.system import SystemProbe
from runq_plugins.probe.vm_stat import parse

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and /sys")

MB = 2**20


@linux
def test_free_calls_the_same_available(missing: Callable[[str], NoReturn]) -> None:
    if not shutil.which("free"):
        missing("free (Debian's procps) is not installed")
    for _ in range(20):  # the whole machine may move between two looks
        before = SystemProbe().free_mb()
        lines = subprocess.check_output(["free", "-k"], text=True).splitlines()
        by_free = int(lines[1].split()[6]) / 1024  # free(1): total used free shared buff/cache available
        if min(before, SystemProbe().free_mb()) - 8 <= by_free <= max(before, SystemProbe().free_mb()) + 8:
            return
    pytest.fail(f"free says {by_free} MB, the probe {before} MB")


# --- control groups --------------------------------------------------------------------------------------------------

V1_STAT = """cache 999
rss 1
total_rss {rss}
total_mapped_file {mapped}
total_inactive_file {inactive}
total_active_file {active}
"""
V2_STAT = """anon {rss}
file 999
file_mapped {mapped}
inactive_file {inactive}
active_file {active}
"""


def group(
    folder: Path, version: int, *, usage_mb: int, limit: str, rss: int, mapped: int, files: tuple[int, int]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if version == 1 else ("memory.max", "memory.current")
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{usage_mb * MB}\n")
    stat = V1_STAT if version == 1 else V2_STAT
    figures = {"rss": rss * MB, "mapped": mapped * MB, "inactive": files[0] * MB, "active": files[1] * MB}
    (folder / "memory.stat").write_text(stat.format(**figures))


def proc(folder: Path, version: int, mount: Path, *, root: str = "/", path: str = "/docker/abc") -> Path:
    folder.mkdir()
    if version == 1:
        (folder / "cgroup").write_text(f"5:cpu,cpuacct:/elsewhere\n4:memory:{path}\n0::/\n")
        kind = "cgroup cgroup rw,memory"
    else:
        (folder / "cgroup").write_text(f"0::{path}\n")
        kind = "cgroup2 cgroup2 rw,nsdelegate"
    other = "31 23 0:28 / /proc rw - proc proc rw\n"
    (folder / "mountinfo").write_text(f"{other}35 31 0:32 {root} {mount} rw,relatime shared:9 - {kind}\n")
    return folder


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_and_those_above_it(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount, none = tmp_path / "fs", "9223372036854771712" if version == 1 else "max"
    group(mount, version, usage_mb=9000, limit=none, rss=6000, mapped=10, files=(1000, 1000))
    group(mount / "docker", version, usage_mb=5000, limit=str(6000 * MB), rss=3000, mapped=500, files=(700, 800))
    group(mount / "docker/abc", version, usage_mb=2000, limit=str(8000 * MB), rss=1200, mapped=300, files=(400, 100))
    monkeypatch.setattr(cgroup, "PROC", proc(tmp_path / "proc", version, mount))
    assert CgroupProbe().read_mb() == 1200 + 300
    # the inner limit leaves 8000 - 2000 + (400 + 100 - 300), the one above it 6000 - 5000 + (700 + 800 - 500)
    assert CgroupProbe().free_mb() == 2000
    assert CgroupProbe(path=str(mount / "docker/abc")).free_mb() == 6200


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_whose_mount_begins_at_its_group(version: int, tmp_path: Path) -> None:
    mount = tmp_path / "fs"
    group(mount, version, usage_mb=2000, limit=str(4000 * MB), rss=1200, mapped=0, files=(0, 0))
    (only,) = own_groups(proc(tmp_path / "proc", version, mount, root="/docker/abc"))
    assert (only.folder, only.held_mb(), only.left_mb()) == (mount, 1200, 2000)


def test_without_a_limit_it_is_not_the_group_that_tells_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group(tmp_path / "fs/docker/abc", 2, usage_mb=10, limit="max", rss=5, mapped=0, files=(0, 0))
    monkeypatch.setattr(cgroup, "PROC", proc(tmp_path / "proc", 2, tmp_path / "fs"))
    with pytest.raises(PluginError, match="has a limit") as caught:
        CgroupProbe().free_mb()
    assert "`system`" in caught.value.remedy


def test_no_group_for_memory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "fs").mkdir()
    with pytest.raises(PluginError, match="no control group that counts memory"):
        own_groups(proc(tmp_path / "proc", 2, tmp_path / "fs"))


@linux
def test_awk_reads_the_same_of_this_machines_own_group() -> None:
    try:
        here = own_groups(Path("/proc/self"))[0]
    except PluginError as error:
        words = Path("/proc/self/cgroup").read_text()
        assert "memory" not in words, error
        return
    fields = f"{here.names.anonymous}|{here.names.mapped}"
    program = f'$1 ~ /^({fields})$/ {{sum += $2}} END {{printf "%.6f", sum / 1048576}}'
    for _ in range(20):
        before = CgroupProbe().read_mb()
        by_awk = float(subprocess.check_output(["awk", program, str(here.folder / "memory.stat")]))
        if min(before, CgroupProbe().read_mb()) - 8 <= by_awk <= max(before, CgroupProbe().read_mb()) + 8:
            return
    pytest.fail(f"awk reads {by_awk} MB, the probe {before} MB")


# --- pressure ---------------------------------------------------------------------------------------------------------

PSI = "some avg10=12.50 avg60=3.00 avg300=1.00 total=77\nfull avg10=40.00 avg60=1.00 avg300=0.00 total=5\n"


def test_some_avg10_is_the_figure(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text(PSI)
    assert linux_percent(tmp_path / "memory") == 12.5


@pytest.mark.parametrize("text", [None, "", "full avg10=40.00 avg60=1.00\n"])
def test_a_kernel_without_pressure_says_so(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "memory").write_text(text)
    with pytest.raises(PluginError, match=r"memory (cannot be read|has no `some avg10`)"):
        linux_percent(tmp_path / "memory")


@linux
def test_awk_reads_the_same_pressure_of_this_machine() -> None:
    program = '/^some/ {sub("avg10=", "", $2); print $2}'
    if not pressure.PSI.exists():
        with pytest.raises(PluginError, match="cannot be read"):
            PressureProbe().pressure_percent()
        return
    for _ in range(20):  # the kernel counts anew every two seconds
        before = PressureProbe().pressure_percent()
        by_awk = float(subprocess.check_output(["awk", program, str(pressure.PSI)]))
        if before == by_awk:
            return
    pytest.fail(f"awk reads {by_awk} %, the probe {before} %")


# --- macOS ------------------------------------------------------------------------------------------------------------

VM_STAT = """Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10000.
Pages active:                            400000.
Pages wired down:                        128000.
Pages purgeable:                           6400.
"Translation faults":                 123456789.
File-backed pages:                       200000.
Anonymous pages:                         320000.
Pages occupied by compressor:             64000.
"""


def test_app_memory_wired_and_compressed_are_added_up() -> None:
    """(320,000 - 6,400 + 128,000 + 64,000) pages of 16 KiB: 505,600 / 64 MB."""
    assert used_mb(parse(VM_STAT)) == 7900.0
    assert parse(VM_STAT)["Translation faults"] == 123456789 / 64


@pytest.mark.parametrize(
    ("text", "words"),
    [(VM_STAT.replace("Anonymous pages", "Other"), "it has no 'Anonymous pages'"), ("Pages free: 1.", "no page size")],
)
def test_a_missing_counter_is_no_zero(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        used_mb(parse(text))


def test_it_reads_on_a_mac_and_says_why_not_elsewhere() -> None:
    if sys.platform == "darwin":
        counters = parse(subprocess.check_output(["vm_stat"], text=True))
        assert MacosProbe().read_mb() == pytest.approx(used_mb(counters), abs=512)
    else:
        with pytest.raises(PluginError, match="macOS's counters only"):
            MacosProbe().read_mb()
