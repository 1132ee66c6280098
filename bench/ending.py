"""How soon the end of a step is noticed, and how soon a large tree is gone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Rounds, Table, alternate
from runq.processes import Child, Interrupts, Tree, become_subreaper, end_tree, spawn, watch

PROCESSES = 200

# Tells the monotonic time in nanoseconds and is gone: no interpreter is wound up in between.
_STEP = "import os, sys, time; time.sleep(float(sys.argv[1])); os.write(1, b'%d' % time.monotonic_ns()); os._exit(0)"

# Children, and as many orphans that live in groups of their own; none heeds SIGTERM. The first process tells when all
# are there.
_TREE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(int(sys.argv[1]) // 2):
    if os.fork() == 0:
        time.sleep(600)
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            os.setpgid(0, 0)
            time.sleep(600)
        os._exit(0)
    os.waitpid(middle, 0)
print("there", flush=True)
time.sleep(600)
"""


def run(*, quick: bool) -> list[Table]:
    """The end of a step, and of a tree; both with what `runq night` itself calls."""
    become_subreaper()
    with tempfile.TemporaryDirectory(prefix="runq-bench-") as name:
        return [_detection(Path(name), 15 if quick else 100), _trees(Path(name), 3 if quick else 9)]


def _detection(folder: Path, steps: int) -> Table:
    table = Table(title=f"From a step's end to its notice ({steps} steps of 50 to 250 ms)")
    lengths = random.Random(1)

    def ours() -> float:
        with Interrupts() as interrupts:
            child = _spawn(folder, "step", [_STEP, str(lengths.uniform(0.05, 0.25))])
            watch(
                child,
                timeout_s=60,
                stall_timeout_s=None,
                activity=lambda: None,
                every_s=1,
                on_tick=lambda _: None,
                interrupts=interrupts,
            )
            return time.monotonic() - int((folder / "step.log").read_text()) / 1e9

    def popen(timeout_s: float | None) -> float:
        argv = [sys.executable, "-c", _STEP, str(lengths.uniform(0.05, 0.25))]
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
            process.wait(timeout_s)
            now = time.monotonic()
            assert process.stdout is not None
            return now - int(process.stdout.read()) / 1e9

    floor = "wait4(2), which blocks"
    subject = "runq"
    found = alternate(
        {floor: lambda: popen(None), subject: ours, "subprocess's wait(timeout), which polls": lambda: popen(60)}, steps
    )
    for label in found.figures:
        limit = "below 5 ms" if label == subject else ""
        worst = max(found.figures[label]) * 1e3
        table.add(
            label,
            found.median(label) * 1e3,
            "ms",
            ratio=found.median(label) / found.median(floor),
            limit=limit,
            note=f"the slowest {worst:.1f} ms",
        )
    return table


def _trees(folder: Path, rounds: int, *, processes: int = PROCESSES) -> Table:
    table = Table(title=f"From SIGKILL to the last of {processes} processes gone, half of them orphans")

    def ours() -> float:
        tree = Tree(_tree(folder, processes))
        started = time.perf_counter()
        ended = end_tree(tree, kill_now=lambda: True)
        took = time.perf_counter() - started
        if ended.survivors or len(ended.ended_pids) != processes + 1:
            raise RuntimeError(f"{len(ended.ended_pids)} of {processes + 1} ended, {ended.survivors} survived")
        return took

    def groups() -> float:
        child = _tree(folder, processes)
        tree = Tree(child)
        members = tree.members(tree.table.rows())
        started = time.perf_counter()
        for group in {row.group for row in members.values()}:
            os.killpg(group, signal.SIGKILL)
        left = set(members) - {child.pid}
        child._popen.wait()
        while left:
            left -= {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]}
        return time.perf_counter() - started

    floor = "SIGKILL to every group, known beforehand, and each reaped"
    subject = "runq: found, killed, reaped, and looked for again"
    found: Rounds = alternate({floor: groups, subject: ours}, rounds)
    for label in found.figures:
        limit = "below 200 ms" if label == subject else ""
        table.add(label, found.median(label) * 1e3, "ms", ratio=found.ratio(label, floor), limit=limit)
    return table


def _tree(folder: Path, processes: int) -> Child:
    child = _spawn(folder, "tree", [_TREE, str(processes)])
    while "there" not in (folder / "tree.log").read_text():
        time.sleep(0.01)
    return child


def _spawn(folder: Path, name: str, arguments: list[str]) -> Child:
    log = folder / f"{name}.log"
    log.unlink(missing_ok=True)
    return spawn([sys.executable, "-c", *arguments], cwd=folder, env=dict(os.environ), log_path=log)
