"""The memory of a server's own processes; confirmed by ps, and by awk over /proc/PID/smaps_rollup."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from runq.plugin import PluginError
from runq_plugins.probe import footprint, process
from runq_plugins.probe.process import ProcessProbe

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SERVER = """
import mmap, os, socket, subprocess, sys
if sys.argv[1] == "server":
    listening = socket.create_server(("127.0.0.1", 0))
    child = subprocess.Popen([sys.executable, __file__, "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\\n"
    print(listening.getsockname()[1], child.pid, flush=True)
else:
    held = bytearray(b"x") * (200 << 20)
    with open(sys.argv[0], "rb") as file:
        pass
    print("ready", flush=True)
sys.stdin.read()
"""
"""A server whose worker holds 200 MB, as a router's does."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, list[int]]]:
    """Its port, and its pids."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    # A name of its own (proc_pid_comm(5): that of the file it was started by), for the search by name.
    named = tmp_path / f"srv-{os.getpid()}"
    named.symlink_to(Path(sys.executable).resolve())
    with subprocess.Popen(
        [str(named), "-I", "-S", str(script), "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as ran:
        assert ran.stdout is not None
        port, child = map(int, ran.stdout.readline().split())
        yield port, [ran.pid, child]
        ran.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, 9)


def test_ps_adds_up_to_the_same_resident_set(server: tuple[int, list[int]], missing: Callable[[str], NoReturn]) -> None:
    port, pids = server
    if not shutil.which("ps"):
        missing("ps (Debian's procps) is not installed")
    out = subprocess.check_output(["ps", "-o", "rss=", "-p", ",".join(map(str, pids))], text=True)
    by_ps = sum(int(word) for word in out.split()) / 1024  # ps(1): kibibytes
    by_port = ProcessProbe(port=port).read_mb()
    assert by_port > 200
    assert by_port == pytest.approx(by_ps, abs=2)
    by_name = ProcessProbe(name=f"srv-{os.getpid()}").read_mb()
    assert by_name == pytest.approx(by_ps, abs=2)


@linux
@pytest.mark.parametrize(("figure", "counters"), [("pss", "Pss"), ("uss", "Private_(Clean|Dirty)")])
def test_awk_adds_up_to_the_same_share(server: tuple[int, list[int]], figure: str, counters: str) -> None:
    port, pids = server
    files = [f"/proc/{pid}/smaps_rollup" for pid in pids]
    program = f'/^{counters}:/ {{sum += $2}} END {{printf "%.6f", sum / 1024}}'
    by_awk = float(subprocess.check_output(["awk", program, *files]))
    assert ProcessProbe(port=port, figure=figure).read_mb() == pytest.approx(by_awk, abs=2)  # type: ignore[arg-type]
    assert by_awk > 200


def test_a_server_that_is_gone_holds_nothing(server: tuple[int, list[int]]) -> None:
    port, pids = server
    for pid in pids:
        os.kill(pid, 9)
    probe = ProcessProbe(port=port)
    for _ in range(1000):  # the kernel gives it back within a second
        if probe.read_mb() == 0.0:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pids[0], os.WNOHANG)
    pytest.fail("the port of a dead server still has a process")


def test_a_server_of_another_user_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something answers, and whose process it is cannot be seen."""
    monkeypatch.setattr(process, "listener", lambda _port: None)
    with (
        socket.create_server(("127.0.0.1", 0)) as sock,
        pytest.raises(PluginError, match="belongs to another user"),
    ):
        ProcessProbe(port=sock.getsockname()[1]).read_mb()


@pytest.mark.parametrize("options", [{}, {"port": 1, "name": "x"}, {"port": 0}, {"port": 65536}])
def test_there_is_exactly_one_way_to_find_it(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="port"):
        ProcessProbe(**options)  # type: ignore[arg-type]


def test_the_footprint_is_macos_only_and_lies_where_its_header_says() -> None:
    """sys/resource.h, struct rusage_info_v2: 16 bytes of uuid, then 64-bit fields, ri_phys_footprint the eighth."""
    assert footprint.RusageInfo.phys_footprint.offset == 16 + 7 * 8
    assert footprint.RusageInfo.phys_footprint.size == 8
    if sys.platform == "darwin":
        assert footprint.footprint_mb(os.getpid()) > 1
    else:
        with pytest.raises(PluginError, match="only macOS"):
            footprint.footprint_mb(os.getpid())
