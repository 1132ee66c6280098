"""The check before the first real night: every model is loaded once, asked once, and proven gone again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq import paths
from runq.check_context import CheckContext
from runq.check_run import CheckItem, CheckRun
from runq.host import this_host, versions
from runq.locks import endpoint_name
from runq.night_context import GRACE_S
from runq.opening import opened_journal
from runq.prepared import PreparedQueue
from runq.record import Observer, Recorder, Silent
from runq_schemas.events import CheckedModel, CheckFinished, CheckStarted

if TYPE_CHECKING:
    from runq.plugin import Target
    from runq.processes import Stopper

LOAD_TIMEOUT_S = 300.0
"""What one model may take to load and answer: Ollama's own limit for a load (OLLAMA_LOAD_TIMEOUT, 5 minutes)."""


@attrs.frozen(kw_only=True)
class CheckResult:
    """How a check ended; ``rows`` are in the order of the queue file."""

    check: str
    folder: Path
    rows: tuple[CheckedModel, ...]
    interrupted: str | None = None

    @property
    def exit_code(self) -> int:
        """0 when no model failed, 130 when interrupted, else 1."""
        if self.interrupted:
            return 130
        return 1 if any(row.verdict == "fail" for row in self.rows) else 0


def items(queue: PreparedQueue) -> tuple[CheckItem, ...]:
    """Every distinct model and judge model of a queue: by endpoint, model id and reset backend with its options."""
    found: dict[tuple[str, str, str], CheckItem] = {}
    for prepared in queue.entries:
        reset = repr(prepared.settings()["reset"])
        targets: list[tuple[Target | None, str]] = [(t, t.step) for t in prepared.harness.targets(prepared.entry)]
        for target, role in targets or [(None, prepared.steps[0].name)]:
            model = (target.model if target else None) or prepared.entry.model
            key = (endpoint_name(target.base_url) if target else "", model.id, reset)
            if key not in found:
                entry = attrs.evolve(prepared.entry, id=len(found), model=model)
                found[key] = CheckItem(prepared=attrs.evolve(prepared, entry=entry), target=target, role=role)
    return tuple(found.values())


def run_check(
    queue: PreparedQueue,
    runs: Path,
    *,
    interrupts: Stopper,
    observer: Observer | None = None,
    load_timeout_s: float = LOAD_TIMEOUT_S,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    grace_s: float = GRACE_S,
    environ: Mapping[str, str] = os.environ,
) -> CheckResult:
    """Check every model of a queue; every figure goes to the journal under the check's own id.

    Raises:
        LockedError: a night holds the journal or an endpoint.
        JournalError: the journal cannot be written.
    """
    from runq.processes import Interrupted, boot_id

    started = now()
    with opened_journal(queue, runs, started, interrupts) as journal:
        with journal.reader() as reader:
            taken = frozenset(reader.night_ids())
        check = paths.check_id(paths.new_night_id(started, runs, taken))
        context = CheckContext(
            recorder=Recorder(journal=journal, night=check, observer=observer or Silent()),
            interrupts=interrupts,
            clock=clock,
            boot_id=boot_id(),
            runs=runs,
            environ=dict(environ),
            grace_s=grace_s,
        )
        wanted = items(queue)
        context.recorder.event(
            CheckStarted(
                queue_path=str(queue.spec.path),
                queue_sha256=queue.spec.sha256,
                started_local=started.isoformat(timespec="seconds"),
                models=tuple(item.prepared.entry.model.id for item in wanted),
                host=this_host(),
                boot_id=context.boot_id,
                versions=versions(),
                plugins=queue.plugins,
            )
        )
        rows: list[CheckedModel] = []
        interrupted: str | None = None
        run = CheckRun(context, load_timeout_s)
        try:
            for item in wanted:
                rows.append(run.model(item))  # noqa: PERF401 - what was found so far must survive an interruption
        except Interrupted as error:
            interrupted = str(error)
            run.leave()
        finally:
            context.servers.stop_all()
        failed = sum(row.verdict == "fail" for row in rows)
        context.recorder.event(CheckFinished(failed=failed, interrupted=interrupted or ""))
    return CheckResult(check=check, folder=context.queue_dir, rows=tuple(rows), interrupted=interrupted)
