"""Reads a file some times by ruamel.yaml's round-trip loader; prints the fastest in seconds."""

import sys
import time
from pathlib import Path

from ruamel.yaml import YAML

text = Path(sys.argv[1]).read_text(encoding="utf-8")
took = []
for _ in range(int(sys.argv[2])):
    started = time.perf_counter()
    YAML(typ="rt", pure=True).load(text)
    took.append(time.perf_counter() - started)
print(min(took))
