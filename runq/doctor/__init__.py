"""Looks over what a night needs, and says what is missing and what to do. Reads only; loads no model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from runq.doctor.finding import Finding

if TYPE_CHECKING:
    from runq.discovery import Plugins
    from runq.looking import Look


def examine(
    plugins: Plugins, look: Look, *, runs: Path, queue: Path | None = None, base_dir: Path | None = None
) -> Iterator[Finding]:
    """Everything that can be told before a night.

    Args:
        plugins: the plugins of this environment.
        look: where to look for servers.
        runs: the runs folder, which need not exist yet.
        queue: a queue file: what it needs is looked at, and must be there. Without it: what is there at all.
        base_dir: what relative paths in the queue file are relative to.
    """
    from runq.doctor.journal import journal_findings
    from runq.doctor.machine import machine_findings
    from runq.doctor.needs import harness_findings
    from runq.doctor.servers import server_findings
    from runq.seeking import seek

    if queue is not None:
        sizes_mb: dict[str, float] = {}
        needed = list(_of_queue(queue, base_dir, plugins, sizes_mb, runs))
        largest = max(sizes_mb.items(), key=lambda one: one[1], default=None)
        yield from machine_findings(runs, largest)
        yield from needed
    else:
        found = list(seek(plugins, look))
        yield from machine_findings(runs)
        yield from server_findings(found)
        yield from harness_findings(plugins, Path.cwd())
    yield from journal_findings(runs)


def _of_queue(
    path: Path, base_dir: Path | None, plugins: Plugins, sizes_mb: dict[str, float], runs: Path
) -> Iterator[Finding]:
    from runq.doctor.lacking import lacking_findings
    from runq.doctor.queue import queue_findings, refused_findings
    from runq.prepare import prepare
    from runq_schemas.errors import QueueFileError
    from runq_schemas.parse import load_queue

    try:
        spec = load_queue(path)
        queue = prepare(
            spec,
            base_dir=(base_dir or path.parent).absolute(),
            plugins=plugins,
            environ=os.environ,
            cwd=Path.cwd(),
        )
    except QueueFileError as error:
        yield from refused_findings(error)
        return
    wanted = {entry.spec.model.id for entry in queue.entries}
    wanted |= {step.model.id for entry in queue.entries for step in entry.steps if step.model is not None}
    told: dict[str, float] = {}
    yield from queue_findings(queue, plugins, told)
    yield from lacking_findings(queue, runs)
    sizes_mb.update({model: mb for model, mb in told.items() if model in wanted})
