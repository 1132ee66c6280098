"""What reading a queue file costs, beside ruamel.yaml's round-trip loader, and how it grows with the entries."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from bench import queues
from bench.measure import Table, alternate, clean_environment
from bench.peers import python_of

PEERS = Path(__file__).parent / "peers"


def run(*, quick: bool) -> list[Table]:
    """Queue files as touchstone's users have them, from 10 entries to 10,000."""
    sizes = (10, 100, 300) if quick else (10, 100, 1_000, 10_000)
    table = Table(title="Reading a queue file")
    with tempfile.TemporaryDirectory(prefix="runq-bench-") as name:
        for size in sizes:
            path = queues.like_touchstone(Path(name) / "queue.yaml", size)
            # Short files are read several times by one process, and the fastest counts: the first also imports.
            again = max(1, min(20, 300 // size))
            found = alternate(
                {
                    "ruamel.yaml": lambda path=path, again=again: _printed("ruamel.yaml", "ruamel_yaml", path, again),
                    "runq": lambda path=path, again=again: _printed("runq", "runq_parse", path, again),
                },
                3 if size < 10_000 else 1,
            )
            for label in found.figures:
                per_entry = found.median(label) * 1e3 / size
                limit = "at most 3.5" if label == "runq" else ""
                ratio = found.ratio(label, "ruamel.yaml")
                table.add(f"{size:,} entries: {label}", per_entry, "ms an entry", ratio=ratio, limit=limit)
    return [table]


def _printed(peer: str, script: str, path: Path, again: int) -> float:
    argv = [str(python_of(peer)), str(PEERS / f"{script}.py"), str(path), str(again)]
    done = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{peer}: {done.stderr[-800:]}")
    return float(done.stdout)
