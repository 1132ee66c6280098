"""The sampler of a step over simulated time; prints JSON: CPU seconds, bytes in the journal, PSS in MB.

Arguments: journal, readings per second, seconds, ``probe`` or ``constant`` (a figure that costs nothing to read).
"""

import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runq.bounded_probe import BoundedProbe
from runq.discovery import Plugins
from runq.processes import Tree, spawn
from runq.sampling import SampleBatch, Sampler
from runq_journal.journal import Journal

WARM_READINGS = 20_000  # until SQLite's own cache of pages is full (2 MB)


def pss_mb():
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return None


class Constant:
    def read_mb(self):
        return 4000.0


path, rate, seconds, what = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
probe = Constant() if what == "constant" else BoundedProbe(Plugins().make("probe", "system", {}))
elapsed, start = 0.0, datetime(2026, 1, 1, tzinfo=UTC)
child = spawn(["/bin/sleep", "600"], cwd=path.parent, env=dict(os.environ), log_path=path.parent / "log")
tree = Tree(child)
found = {}
with Journal.open(path) as journal:
    batch = SampleBatch(journal=journal, night="n")
    sampler = Sampler(
        probes={"system": probe},
        now=lambda: start + timedelta(seconds=elapsed),
        keep=batch.of(0, "eval"),
    )
    for number in range(min(round(rate * seconds) // 2, WARM_READINGS)):
        elapsed = number / rate
        sampler.read()
    batch.flush()
    found["pss_before_mb"], bytes_before = pss_mb(), path.stat().st_size
    cpu, wall = time.process_time(), time.perf_counter()
    found["readings"] = round(rate * seconds)
    for number in range(found["readings"]):
        elapsed = number / rate
        sampler.read()
    batch.flush()
    found["reading_cpu_s"], found["reading_s"] = time.process_time() - cpu, time.perf_counter() - wall
    cpu = time.process_time()
    looks = min(round(rate * seconds), 3600)
    for _ in range(looks):
        tree.observe()
    found["observing_cpu_s"] = (time.process_time() - cpu) * rate * seconds / looks
    found["pss_after_mb"] = pss_mb()
    found["processes"] = len(tree.table.rows())
found["bytes"] = path.stat().st_size - bytes_before
child._popen.kill()
child._popen.wait()
print(json.dumps(found))
