"""The command line that goes on with a night."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def resume_command(plan: Mapping[str, Any], night: str, runs: Path, environ: Mapping[str, str] = os.environ) -> str:
    """The exact command that continues a night, from any folder.

    Args:
        plan: what its latest `night.started` or `night.resumed` says.
        night: its id.
        runs: the runs folder.
        environ: the environment of the shell it will be pasted into: `$RUNQ_RUNS` would choose another folder.
    """
    queue = Path(plan["queue_path"])
    words = ["runq", "night", str(queue), "--resume", "--night", night]
    if runs != queue.parent / "runs" or environ.get("RUNQ_RUNS"):
        words += ["--runs", str(runs)]
    if Path(plan["base_dir"]) != queue.parent:
        words += ["--base-dir", plan["base_dir"]]
    return shlex.join(words)
