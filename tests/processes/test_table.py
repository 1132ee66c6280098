"""The process table and signals that cannot hit the wrong process."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import attrs
import psutil
import pytest

from runq.processes import boot_id
from runq.processes import subreaper as subreaper_module
from runq.processes.ending import own_line, with_descendants
from runq.processes.subreaper import become_subreaper, is_subreaper
from runq.processes.table import ProcfsTable, PsutilTable, Row, system_table

BOTH = pytest.mark.parametrize("table", [ProcfsTable(), PsutilTable()], ids=["procfs", "psutil"])


@BOTH
def test_a_row_tells_what_the_system_knows(table):
    row = table.row(os.getpid())
    assert (row.ppid, row.group, row.session) == (os.getppid(), os.getpgrp(), os.getsid(0))
    assert not row.zombie
    assert not row.stopped
    assert table.rows()[os.getpid()] == row


@BOTH
def test_the_creation_time_is_that_of_psutil(table):
    assert table.created_at(table.row(os.getpid())) == pytest.approx(psutil.Process().create_time(), abs=1e-6)


@BOTH
def test_a_process_that_is_gone_has_no_row_no_mark_and_gets_no_signal(table):
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", ""]) as gone:
        row = table.row(gone.pid)
        gone.wait()
    assert table.row(gone.pid) is None
    assert table.mark(gone.pid) is None
    assert table.send(row, signal.SIGKILL) is False


@BOTH
def test_a_reused_pid_is_not_signalled(table, stage, alive):
    child = stage.start("step", "say('ready')\nlinger()")
    stage.heard("ready")
    row = attrs.evolve(table.row(child.pid), started=table.row(child.pid).started - 100)
    assert table.send(row, signal.SIGKILL) is False
    assert alive(child.pid)


@BOTH
def test_the_mark_is_read_and_absence_is_told(table, stage):
    child = stage.start("step", "say('ready')\nlinger()")
    bare = stage.start("bare", "say('bare_ready')\nlinger()", marked=False)
    stage.heard("ready")
    stage.heard("bare_ready")
    assert table.mark(child.pid) == child.mark != ""
    assert table.mark(bare.pid) is None


@BOTH
def test_the_mark_of_another_users_process_is_not_believed(table, stage, monkeypatch):
    child = stage.start("step", "say('ready')\nlinger()")
    stage.heard("ready")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert table.mark(child.pid) is None


def test_without_pidfd_psutil_sends_the_signal(stage, until, monkeypatch):
    def missing(_pid):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", missing)
    child = stage.start("step", "say('ready')\nlinger()")
    stage.heard("ready")
    assert ProcfsTable().send(ProcfsTable().row(child.pid), signal.SIGTERM) is True
    until(child.poll)


def test_a_refused_signal_is_a_permission_error(monkeypatch):
    def refuse(self, _number):
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "send_signal", refuse)
    with pytest.raises(PermissionError):
        PsutilTable().send(PsutilTable().row(os.getpid()), 0)


def test_a_process_that_dies_before_its_signal(monkeypatch):
    def vanish(_fd, _number):
        raise ProcessLookupError

    monkeypatch.setattr(signal, "pidfd_send_signal", vanish)
    assert ProcfsTable().send(ProcfsTable().row(os.getpid()), 0) is False


def test_any_name_can_be_parsed_and_a_living_thread_means_alive(tmp_path):
    def row(state: str, threads: int) -> Row:
        fields = f"{state} 1 2 3 0 0 0 0 0 0 0 0 0 0 0 0 0 {threads} 0 555 0"
        (tmp_path / "42").mkdir(exist_ok=True)
        (tmp_path / "42" / "stat").write_text(f"42 (a ) R (b) {fields}\n")
        return ProcfsTable(tmp_path).rows()[42]

    assert row("S", 1) == Row(42, 1, 2, 3, 555.0, zombie=False, stopped=False)
    assert row("Z", 1).zombie
    assert not row("Z", 4).zombie  # the main thread ended, three others run
    assert row("T", 1).stopped


def test_platforms_without_sessions(monkeypatch):
    monkeypatch.delattr(os, "getsid")
    row = PsutilTable().row(os.getpid())
    assert row.session == 0
    assert row.group == os.getpgrp()


def test_the_table_of_the_platform(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert isinstance(system_table(), ProcfsTable)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isinstance(system_table(), PsutilTable)


def line(pid: int, ppid: int, started: float = 0.0) -> Row:
    return Row(pid, ppid, pid, pid, started, zombie=False, stopped=False)


def test_descendants_stop_at_the_barred_and_at_pids_given_to_another():
    rows = {
        row.pid: row
        for row in (line(1, 0), line(2, 1), line(3, 2), line(4, 3), line(5, 2), line(6, 5, -1.0), line(7, 6))
    }
    assert with_descendants(rows, [2], {3}) == {2, 5}
    assert with_descendants(rows, [2, 3], set()) == {2, 3, 4, 5}


def test_our_own_line_goes_up_to_the_first_process():
    found = own_line(ProcfsTable().rows())
    assert {os.getpid(), os.getppid(), 1} <= found
    assert own_line({}) == {os.getpid()}


def test_becoming_a_subreaper(subreaper):
    assert become_subreaper() is True
    assert is_subreaper() is True


def test_no_subreaper_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert become_subreaper() is False
    assert is_subreaper() is False


def test_no_subreaper_without_libc(monkeypatch):
    def broken(*_args, **_options):
        raise OSError("no libc")

    monkeypatch.setattr(subreaper_module, "_libc", broken)
    assert become_subreaper() is False


def test_a_boot_has_one_name(tmp_path):
    assert boot_id() == boot_id() != ""
    assert boot_id(tmp_path / "missing").startswith("booted-")
