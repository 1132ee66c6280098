"""`python -m bench.probes`: which probe sees which kind of memory, how soon it falls again, and what a reading costs.

A process of its own takes some hundred MB in four ways that servers use: anonymous memory (weights read in, KV cache),
a file mapped and read (llama.cpp's default for weights), shared memory, and a file that is only read through the page
cache. Each probe is read before, with the memory held, and 0.5 s and 5 s after the process was killed. A probe that
cannot run here says why. The table is Markdown, as docs/memory.md shows it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from runq.plugin import PluginError

SIZE_MB = 512
LOOKS_S = (0.5, 5.0)
READINGS = 200

HOLD = """
import mmap, sys, tempfile
kind, path, size = sys.argv[1], sys.argv[2], int(sys.argv[3]) << 20
print("up", flush=True)
sys.stdin.readline()
page = mmap.PAGESIZE
if kind == "anonymous":
    held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
elif kind == "mapped":
    file = open(path, "rb")
    held = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
elif kind == "shared":
    held = mmap.mmap(-1, size)
else:
    with open(path, "rb") as file:
        while file.read(1 << 20):
            pass
    held = None
for at in range(0, size if held is not None else 0, page):
    if kind == "mapped":
        held[at]
    else:
        held[at] = 1
print("held", flush=True)
sys.stdin.readline()
"""

KINDS = {
    "anonymous": "anonymous memory",
    "mapped": "a file mapped and read",
    "shared": "shared memory",
    "cache": "a file read, in the page cache",
}


def probes(pid_name: str) -> dict[str, Callable[[], float]]:
    """Every installed probe that reads MB, by the label of its row."""
    options: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "process": [(f"process, {figure}", {"name": pid_name, "figure": figure}) for figure in ("rss", "uss", "pss")]
    }
    found: dict[str, Callable[[], float]] = {}
    for point in sorted(entry_points(group="runq.probe"), key=lambda point: point.name):
        made = point.load()
        for label, given in options.get(point.name, [(point.name, {})]):
            probe = made(**given)
            if hasattr(probe, "read_mb"):
                found[label] = probe.read_mb
    return found


def read_all(reads: Mapping[str, Callable[[], float]], errors: dict[str, str]) -> dict[str, float]:
    figures = {}
    for label, read in reads.items():
        try:
            figures[label] = read()
        except PluginError as error:
            errors[label] = error.message
    return figures


def measure(kind: str, file: Path, program: Path, errors: dict[str, str]) -> dict[str, list[float]]:
    """Per probe: what it rose by, and what was left of that after each look."""
    reads = probes(program.name)
    argv = [str(program), "-I", "-S", "-c", HOLD, kind, str(file), str(SIZE_MB)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdout.readline()
        before = read_all(reads, errors)
        holder.stdin.write(b"\n")
        holder.stdin.flush()
        if holder.stdout.readline() != b"held\n":
            raise RuntimeError(f"the holder of {kind} memory failed; its message is above")
        held = read_all(reads, errors)
        holder.kill()
        holder.wait()
        killed = time.monotonic()
    rows = {label: [held[label] - before[label]] for label in held if label in before}
    for look_s in LOOKS_S:
        time.sleep(max(0.0, killed + look_s - time.monotonic()))
        after = read_all(reads, errors)
        for label, row in rows.items():
            row.append(after.get(label, 0.0) - (0.0 if label.startswith("process") else before[label]))
    return rows


def cost_ms(read: Callable[[], float]) -> float:
    """Processor time of one reading, in milliseconds."""
    start = time.process_time()
    for _ in range(READINGS):
        read()
    return (time.process_time() - start) / READINGS * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, help="where the file lies (default: the temporary folder); not a tmpfs")
    arguments = parser.parse_args()
    errors: dict[str, str] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        file, program = Path(folder) / "weights", Path(folder) / "memory-holder"
        program.symlink_to(Path(sys.executable).resolve())
        with file.open("wb") as stream:
            for _ in range(SIZE_MB):
                stream.write(bytes(1 << 20))
        found = {kind: measure(kind, file, program, errors) for kind in KINDS}
    labels = [label for label in probes(program.name) if label not in errors]
    looks = ", ".join(f"{look_s:g} s" for look_s in LOOKS_S)
    print(
        f"{SIZE_MB} MB held by another process: what each probe rose by / what was left {looks} after its end, in MB\n"
    )
    print(f"| probe | {' | '.join(KINDS.values())} | one reading, ms of processor |")
    print("| --- |" + " ---: |" * (len(KINDS) + 1))
    for label in labels:
        cells = [
            f"{rose:.0f} / {', '.join(f'{left:.0f}' for left in rest)}"
            for rose, *rest in (found[kind][label] for kind in KINDS)
        ]
        print(f"| `{label}` | {' | '.join(cells)} | {cost_ms(probes('no-such-process')[label]):.2f} |")
    for label, why in errors.items():
        print(f"\n`{label}` cannot run here: {why}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
