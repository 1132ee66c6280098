"""Reads a queue file some times with runq; prints the fastest in seconds."""

import sys
import time
from pathlib import Path

from runq_schemas.parse import parse_queue

path = Path(sys.argv[1])
text = path.read_text(encoding="utf-8")
took = []
for _ in range(int(sys.argv[2])):
    started = time.perf_counter()
    parse_queue(text, path)
    took.append(time.perf_counter() - started)
print(min(took))
