"""Plays a night on many machines:  python -m bench.fleet --entries 1000 --machines 100

The head is runq's own with its journal, the scheduler Dask's; the machines are Dask workers in one process, whose
entries sleep instead of loading a model, and write into outboxes of their own what a real entry writes. It prints how
long the night took beside the least that any scheduling could take, what the head used, and the journal's events per
second.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

from bench.laws import broken, read
from runq_journal import Journal
from runq_schemas import events as ev

SETTLE = "{ timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.02, epsilon_mb: 100000 }"


def lower_bound_s(seconds: list[float], machines: int) -> float:
    """The least time any schedule needs: the mean load, or the longest entry (Graham, 1969, Bounds on Multiprocessing
    Timing Anomalies).
    """
    return max(sum(seconds) / machines, *seconds)


def listed_s(seconds: list[float], machines: int) -> float:
    """What list scheduling takes that costs nothing: each machine takes the next entry of the queue when it is free."""
    free_s = [0.0] * machines
    for one in seconds:
        heapq.heapreplace(free_s, free_s[0] + one)
    return max(free_s)


def queue_text(seconds: list[float]) -> str:
    """A queue whose models are named after how long they take."""
    steps = "".join(
        f"      {name}: {{ argv: ['true'], artifacts: [{name}.txt] }}\n" for name in ("first", "second")
    )  # never run: the machines play
    entries = "".join(f"  - model: m{n}-{round(s * 1000)}\n" for n, s in enumerate(seconds))
    head = f'defaults:\n  reset_command: ""\n  settle: {SETTLE}\n  harness:\n    harness: command\n    steps:\n'
    return f"{head}{steps}entries:\n{entries}"


def head(address: str, queue: Path, runs: Path) -> None:
    """The head, in a process of its own: prints what it took as JSON."""
    from bench.fleet.machines import played_exchange, played_introduce, played_lease
    from runq.commands.arguments import prepared_queue
    from runq.fleet.dask_transport import DaskTransport, Own, Station
    from runq.fleet.executor import OnCluster
    from runq.fleet.head import FleetOptions
    from runq.host import versions
    from runq.night import NightRequest, run_night
    from runq.paths import private_folder
    from runq.processes import Interrupts

    prepared = prepared_queue(queue, None)
    private_folder(runs)
    token = runs / "journal.db.shared"
    token.write_text("t")
    own = Own(versions=versions(), plugins=frozenset(), token="t", token_path=token)
    played = Station(introduce=played_introduce, exchange=played_exchange, run_lease=played_lease)
    transport = DaskTransport(address, security=None, own=own, station=played)
    options = FleetOptions(queue=queue.read_text(), queue_path=str(queue))
    wall, cpu = time.monotonic(), time.process_time()
    with Interrupts() as interrupts:
        result = run_night(
            NightRequest(queue=prepared, runs=runs),
            interrupts=interrupts,
            executor=OnCluster(transport=transport, options=options),
        )
    used = resource.getrusage(resource.RUSAGE_SELF)
    wall = time.monotonic() - wall
    token.unlink()
    mb = used.ru_maxrss / (1024 if sys.platform.startswith("linux") else 2**20)
    print(
        json.dumps({"complete": result.complete, "wall_s": wall, "cpu_s": time.process_time() - cpu, "peak_mb": mb}),
        flush=True,
    )


def play(entries: int, machines: int, shortest_s: float, longest_s: float, folder: Path) -> int:
    """Play it and print the figures. Returns 1 when a law broke or an entry is missing."""
    rng = random.Random(1)
    seconds = [round(rng.uniform(shortest_s, longest_s), 3) for _ in range(entries)]
    queue, runs = folder / "queue.yaml", folder / "runs"
    queue.write_text(queue_text(seconds))
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    env = {**os.environ, "RUNQ_KEEP_AWAKE": "0", "DASK_DISTRIBUTED__WORKER__PROFILE__INTERVAL": "1h"}
    words = ["scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-show"]
    started = [subprocess.Popen([sys.executable, "-m", "dask", *words], env=env, stderr=subprocess.DEVNULL)]
    try:
        time.sleep(5)
        argv = [sys.executable, "-m", "bench.fleet.machines", address, str(machines), str(folder / "machines")]
        stations = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started.append(stations)
        assert stations.stdout is not None
        print(stations.stdout.readline().strip(), file=sys.stderr)
        argv = [sys.executable, "-m", "bench.fleet", "--head", address, str(queue), str(runs)]
        told = subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=True)
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()
    return report(json.loads(told.stdout.splitlines()[-1]), seconds, machines, runs / "journal.db")


def ceiling(path: Path, events: int = 2000) -> float:
    """Events per second that one writer can append, each on disk before the next."""
    with Journal.open(path) as journal:
        began = time.perf_counter()
        for number in range(events):
            journal.append(ev.StepFinished(status="ok", seconds=1.0), night="n", entry=number, step="first", attempt=1)
        return events / (time.perf_counter() - began)


def report(took: dict[str, float], seconds: list[float], machines: int, journal: Path) -> int:
    """Print the figures."""
    record = read(journal)
    found = broken(record)
    times = [datetime.fromisoformat(e.at) for e in record.events if e.kind in ("lease.granted", "lease.ended")]
    makespan_s = (max(times) - min(times)).total_seconds()
    least_s = lower_bound_s(seconds, machines)
    relayed = sum("origin" in e.data for e in record.events)
    print(f"entries                {len(seconds)} of {min(seconds):g} to {max(seconds):g} s, {machines} machines")
    print(f"complete               {took['complete']:g}")
    more = f"{makespan_s / least_s:.3f} times the lower bound of {least_s:.1f} s"
    print(f"makespan               {makespan_s:.1f} s, {more}")
    ideal_s = listed_s(seconds, machines)
    print(f"                       {makespan_s / ideal_s:.3f} times the {ideal_s:.1f} s of list scheduling at no cost")
    cores, rate = took["cpu_s"] / took["wall_s"], len(record.events) / makespan_s
    print(f"head, processor        {cores:.2f} cores ({took['cpu_s']:.1f} s of {took['wall_s']:.1f})")
    print(f"head, memory           {took['peak_mb']:.0f} MB at most")
    print(f"journal                {len(record.events)} events, {relayed} of them relayed, {rate:.1f}/s")
    print(
        f"                       {ceiling(journal.with_name('ceiling.db')):.0f}/s is what this disk lets one writer do"
    )
    for law, breaches in found.items():
        print(f"BROKEN {law}: {breaches[:3]}")
    return int(bool(found) or took["complete"] != len(seconds))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--shortest", type=float, default=10.0, metavar="S", help="seconds of the shortest entry")
    parser.add_argument("--longest", type=float, default=30.0, metavar="S", help="seconds of the longest entry")
    parser.add_argument("--head", nargs=3, metavar=("ADDRESS", "QUEUE", "RUNS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.head:
        head(asked.head[0], Path(asked.head[1]), Path(asked.head[2]))
        return 0
    with tempfile.TemporaryDirectory(prefix="runq-fleet-") as folder:
        return play(asked.entries, asked.machines, asked.shortest, asked.longest, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
