"""What watching memory costs a step: an hour of simulated time at one reading a second, and at ten."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench.measure import Table, clean_environment
from bench.peers import python_of

SCRIPT = Path(__file__).parent / "peers" / "runq_sampler.py"
HOUR_S = 3600.0


def run(*, quick: bool) -> list[Table]:
    """CPU time of the readings, of the looks for descendants beside them, and what the journal gains."""
    seconds = 600.0 if quick else HOUR_S
    table = Table(title=f"The sampler over {seconds:,.0f} s of simulated time (ratio: to the step's own time)")
    for rate in (1.0, 10.0):
        found = simulated(rate, seconds, "probe")
        label = f"{rate:g} Hz"
        reading, observing = found["reading_cpu_s"], found["observing_cpu_s"]
        table.add(f"{label}: readings, journalled", reading, "CPU s", ratio=reading / seconds)
        note = f"{found['processes']} processes on this machine"
        table.add(f"{label}: looks for descendants", observing, "CPU s", ratio=observing / seconds, note=note)
        table.add(f"{label}: the journal grows by", found["bytes"] / 2**20, "MB")
    table.notes.append("- runq reads once a second; ten times a second is what it would cost.")
    return [table]


def simulated(rate_hz: float, seconds: float, probe: str) -> dict[str, Any]:
    """What `peers/runq_sampler.py` prints."""
    with tempfile.TemporaryDirectory(prefix="runq-bench-") as name:
        argv = [str(python_of("runq")), str(SCRIPT), f"{name}/journal.db", str(rate_hz), str(seconds), probe]
        done = subprocess.run(argv, env=clean_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"the sampler's script: {done.stderr[-800:]}")
    return dict(json.loads(done.stdout))
