"""The command line that goes on with a night."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def resume_command(plan: Mapping[str, Any], night: str, runs: Path) -> str:
    """The exact command that continues a night, from any folder.

    Args:
        plan: what its latest `night.started` or `night.resumed` says.
        night: its id.
        runs: the runs folder.
    """
    queue = Path(plan["queue_path"])
    words = ["runq", "night", str(queue), "--resume", "--night", night]
    if runs != queue.parent / "runs":
        words += ["--runs", str(runs)]
    if Path(plan["base_dir"]) != queue.parent:
        words += ["--base-dir", plan["base_dir"]]
    return shlex.join(words)
