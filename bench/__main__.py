"""`python -m bench`: every part, or some of them, beside what people would use instead."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from bench.measure import Table, as_json, machine

PARTS = {
    "steps": ("bench.steps", "what a step costs beside its own work, and how that grows"),
    "memory": ("bench.memory", "what the runner holds, and how that grows"),
    "startup": ("bench.startup", "what a user waits for at the prompt"),
    "replay": ("bench.replay", "what a journal of a million events costs to read"),
    "report": ("bench.report", "what the page of a long night costs to make and to open"),
    "parsing": ("bench.parsing", "what reading a queue file costs"),
    "ending": ("bench.ending", "how soon a step's end is noticed, and a tree of 200 processes is gone"),
    "sampler": ("bench.sampler", "what reading memory costs over an hour"),
}
"""Name: (module with ``run(*, quick)``, what it measures)."""

EPILOG = """\
The peers (task-spooler, nq, GNU parallel, doit, Snakemake, huey, DBOS, Prefect, ruamel.yaml, ...) are installed where
they are missing: from PyPI, each into an environment of its own below the user's cache folder, and by apt-get where
this user may. One that cannot be installed is named and left out. The environments stay for the next time.
"""


def main(words: Sequence[str] | None = None) -> int:
    """Run the bench. Returns the exit code: 0, or 1 when a part failed."""
    asked = _parser().parse_args(words)
    failed = 0
    tables: list[Table] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="runq-bench-") as folder:
        here = machine(Path(folder))
    if not asked.json:
        print(f"{here}\n", flush=True)
    for name in asked.only or PARTS:
        try:
            run: Callable[..., list[Table]] = import_module(PARTS[name][0]).run
            found = run(quick=asked.quick)
        except Exception as error:  # one part must not cost the others
            print(f"error: {name}: {type(error).__name__}: {error}", file=sys.stderr)
            failed += 1
            continue
        tables += found
        if not asked.json:
            print("\n".join(table.text() for table in found), flush=True)
    if asked.json:
        print(as_json(here, tables))
    print(f"{time.monotonic() - started:.0f} s in all", file=sys.stderr)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parts = "\n".join(f"  {name:9}{text}" for name, (_, text) in PARTS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=f"Measure runq beside what people would use instead; prints Markdown tables.\n\nparts:\n{parts}",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds, below 2 min")
    parser.add_argument("--only", action="append", choices=list(PARTS), metavar="PART", help="this part; repeatable")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    return parser


if __name__ == "__main__":
    sys.exit(main())
