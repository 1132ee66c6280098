"""The figures, confirmed by other tools."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from runq.plugin import PluginError
from runq_plugins.probe import system
from runq_plugins.probe.psutil_used import PsutilUsedProbe
from runq_plugins.probe.system import SystemProbe, available_mb, formula_for, linux_mb

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

MEMINFO = """MemTotal:       32768000 kB
AnonPages:       2048000 kB
Mapped:           512000 kB
Shmem:             10240 kB
ShmemHugePages:        9 kB
HugePages_Total:       4
"""

HOLD = """
import mmap, sys, tempfile
size = 300 << 20
if sys.argv[1] == "anonymous":
    held = bytearray(size)
else:
    stream = tempfile.TemporaryFile(dir=sys.argv[2])
    for _ in range(300):
        stream.write(bytes(1 << 20))
    stream.flush()
    held = mmap.mmap(stream.fileno(), size, prot=mmap.PROT_READ)
total = 0
for at in range(0, size, 4096):
    if sys.argv[1] == "anonymous":
        held[at] = 1
    else:
        total += held[at]
print("ready", flush=True)
sys.stdin.read()
"""


@linux
@pytest.mark.parametrize("kind", ["anonymous", "mapped"])
def test_300_mb_in_another_process_are_seen(kind, tmp_path):
    """Mapped weights are what `used` misses on Linux. Other programs may move too, so a few tries are allowed."""
    probe, differences = SystemProbe(), []
    for _ in range(5):
        before = probe.read_mb()
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, kind, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder:
            assert holder.stdout is not None and holder.stdout.readline() == b"ready\n"
            differences.append(probe.read_mb() - before)
            holder.kill()
        if 290 < differences[-1] < 340:  # the process itself holds about 10
            return
    pytest.fail(f"300 MB were seen as {differences}")


@linux
def test_awk_reads_the_same():
    program = '/^(AnonPages|Mapped|Shmem):/ {sum += $2} END {printf "%.6f", sum / 1024}'
    for _ in range(20):
        before = SystemProbe().read_mb()
        other = float(subprocess.check_output(["awk", program, "/proc/meminfo"]))
        if min(before, SystemProbe().read_mb()) - 8 <= other <= max(before, SystemProbe().read_mb()) + 8:
            return
    pytest.fail(f"awk reads {other} MB, the probe {before} MB")


def test_the_sum_of_the_three_counters(tmp_path):
    (tmp_path / "meminfo").write_text(MEMINFO)
    assert linux_mb(tmp_path / "meminfo") == (2048000 + 512000 + 10240) / 1024 == 2510.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MEMINFO.replace("Mapped", "Other"), "has no Mapped"),
        (MEMINFO.replace("512000 kB", "512000"), "has no Mapped"),
        (MEMINFO.replace("512000", "many"), "has no Mapped"),
        ("", "has no AnonPages and no Mapped and no Shmem"),
    ],
)
def test_a_missing_counter_is_an_error_and_no_zero(tmp_path, text, words):
    (tmp_path / "meminfo").write_text(text)
    with pytest.raises(PluginError, match=words):
        linux_mb(tmp_path / "meminfo")


def test_an_unreadable_file_is_an_error(tmp_path):
    with pytest.raises(PluginError, match="cannot be read: No such file"):
        linux_mb(tmp_path / "none")


def test_elsewhere_it_is_total_less_available_and_says_so(monkeypatch):
    class Memory:
        total, available, used = 64 << 30, 40 << 30, 20 << 30

    monkeypatch.setattr(psutil, "virtual_memory", Memory)
    assert available_mb() == 24 * 1024.0
    assert PsutilUsedProbe().read_mb() == 20 * 1024.0
    monkeypatch.setattr(system.sys, "platform", "darwin")
    assert SystemProbe().read_mb() == 24 * 1024.0
    assert "total - available" in formula_for("darwin")
    assert "AnonPages + Mapped + Shmem" in formula_for("linux")


def test_psutil_used_is_the_ancestors_figure():
    before = psutil.virtual_memory().used / 2**20
    figure = PsutilUsedProbe().read_mb()
    assert abs(figure - before) < 500
