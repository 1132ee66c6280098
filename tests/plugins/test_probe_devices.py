"""Graphics cards: this machine's own where it has one, else why not; and the arithmetic on told figures."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runq.plugin import PluginError
from runq_plugins.probe import amd
from runq_plugins.probe.amd import AmdProbe
from runq_plugins.probe.nvidia import NvidiaProbe


def test_nvidia_smi_reads_the_same_or_there_is_no_driver() -> None:
    if shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        by_smi = sum(float(line) for line in subprocess.check_output(query, text=True).split())
        assert NvidiaProbe().read_mb() == pytest.approx(by_smi, abs=64)
    else:
        assert not Path("/proc/driver/nvidia").exists()
        with pytest.raises(PluginError, match="the NVIDIA driver cannot be asked") as caught:
            NvidiaProbe().read_mb()
        assert "nvidia-smi" in caught.value.remedy


class Driver:
    """Stands for pynvml on a machine with two cards: 1,000 and 3,000 MB used; 7,000 and 5,000 free."""

    nvmlMemory_v2 = 33554472

    class NVMLError(Exception):
        pass

    def __init__(self, cards: int = 2, fault: str = "") -> None:
        self.cards, self.fault, self.open = cards, fault, 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return self.cards

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int) -> Any:
        assert version == self.nvmlMemory_v2
        if self.fault:
            raise self.NVMLError(self.fault)
        used = (1000, 3000)[handle]
        return SimpleNamespace(used=used << 20, free=(8000 - used) << 20, reserved=500 << 20)


@pytest.mark.parametrize(
    ("device", "used", "free"), [(None, 4000.0, 12000.0), (0, 1000.0, 7000.0), (1, 3000.0, 5000.0)]
)
def test_cards_are_added_up_or_read_one_by_one(
    device: int | None, used: float, free: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", driver)  # type: ignore[arg-type]
    assert NvidiaProbe(device=device).read_mb() == used
    assert NvidiaProbe(device=device).free_mb() == free
    assert driver.open == 0


@pytest.mark.parametrize(
    ("driver", "device", "words"),
    [
        (Driver(cards=0), None, "no NVIDIA card"),
        (Driver(), 2, "2 NVIDIA card\\(s\\), the last with index 1"),
        (Driver(fault="Not Supported"), None, "does not tell the memory in use: Not Supported"),
    ],
)
def test_what_the_driver_cannot_tell_is_no_zero(
    driver: Driver, device: int | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", driver)  # type: ignore[arg-type]
    with pytest.raises(PluginError, match=words):
        NvidiaProbe(device=device).read_mb()
    assert driver.open == 0


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(PluginError, match="not installed") as caught:
        NvidiaProbe().read_mb()
    assert "runq[nvidia]" in caught.value.remedy


def card(folder: Path, name: str, vram_mb: int, gtt_mb: int, total_mb: int) -> None:
    device = folder / name / "device"
    device.mkdir(parents=True)
    (device / "mem_info_vram_used").write_text(f"{vram_mb << 20}\n")
    (device / "mem_info_gtt_used").write_text(f"{gtt_mb << 20}\n")
    (device / "mem_info_vram_total").write_text(f"{total_mb << 20}\n")


def test_amd_adds_video_memory_and_gtt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card(tmp_path, "card0", 500, 20, 8000)
    card(tmp_path, "card1", 3000, 100, 16000)
    (tmp_path / "card1-HDMI-A-1").mkdir()  # a connector, as the kernel puts beside the cards
    monkeypatch.setattr(amd, "CARDS", tmp_path)
    assert AmdProbe().read_mb() == 3620.0
    assert AmdProbe(card="card1").read_mb() == 3100.0
    assert AmdProbe(card="card1").free_mb() == 13000.0
    assert AmdProbe().free_mb() == 7500.0 + 13000.0
    with pytest.raises(PluginError, match=r"no AMD card named card2 .* only card0, card1 does"):
        AmdProbe(card="card2").read_mb()


def test_amd_on_this_machine_reads_its_files_or_says_there_are_none() -> None:
    listed = subprocess.run(
        [
            "sh",
            "-c",
            "cat /sys/class/drm/card*/device/mem_info_vram_used /sys/class/drm/card*/device/mem_info_gtt_used",
        ],
        capture_output=True,
        text=True,
    ).stdout.split()
    if listed:
        assert AmdProbe().read_mb() == pytest.approx(sum(map(int, listed)) / 2**20, abs=64)
    else:
        with pytest.raises(PluginError, match="no AMD card tells its memory"):
            AmdProbe().read_mb()


def test_an_amd_file_that_is_no_number_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card(tmp_path, "card0", 1, 1, 2)
    (tmp_path / "card0/device/mem_info_gtt_used").write_text("-\n")
    monkeypatch.setattr(amd, "CARDS", tmp_path)
    with pytest.raises(PluginError, match="mem_info_gtt_used cannot be read"):
        AmdProbe().read_mb()
