"""Runs `lm_eval run` for one step and gives its results file a name that does not change."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from driver_key import read_key, split

OUT, RESULTS = "lm-eval", "lm-eval.json"


def main() -> int:
    """Read the command line and run the step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--key", default="")
    own, more = split(sys.argv[1:])
    given = parser.parse_args(own, argparse.Namespace(args=more))
    bundle = Path(given.bundle)
    os.environ["OPENAI_API_KEY"] = read_key(given.key)
    argv = [sys.executable, "-m", "lm_eval", "run", *given.args, "--output_path", str(bundle / OUT)]
    code = subprocess.run(argv, check=False).returncode
    if code != 0:
        return code
    found = sorted((bundle / OUT).rglob("results_*.json"), key=lambda path: path.stat().st_mtime_ns)
    if not found:
        print("lm_eval wrote no results", file=sys.stderr)
        return 1
    shutil.copyfile(found[-1], bundle / RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
