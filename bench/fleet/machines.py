"""The played machines: Dask workers in one process, whose entries sleep and write what a real one writes.

python -m bench.fleet.machines ADDRESS HOW_MANY FOLDER
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from runq.fleet import station
from runq.fleet.agent import ENDED, JOB, read_terms, slot_folder, write_whole
from runq.fleet.lease import elapsed
from runq.fleet.wire import Ask, Job, Terms, Told, job_folder, outbox_folder
from runq_journal import Journal
from runq_schemas import events as ev

FOLDER = Path()
"""Where the outboxes of this process's machines are."""


def seconds_of(model: str) -> float:
    """How long an entry's two steps take together: its model is named after it."""
    return float(model.split("-")[1]) / 1000


_SAID: dict[str, Any] = {}


def played_introduce(token: str, path: str) -> dict[str, Any]:
    """As a real machine; looked up once, since a hundred share this process."""
    if not _SAID:
        _SAID.update(station.introduce(token, path))
    return {**_SAID, "now_s": elapsed()}


async def played_exchange(ask: Ask, dask_worker: Any = None) -> Told:
    """As a real machine, from a folder of its own."""
    return await station.exchange_from(FOLDER / str(dask_worker.name), ask)


def played_lease(job_text: str, terms: Terms) -> str:
    """An entry of two steps, each half as long as the entry is said to take."""
    from distributed import get_worker

    job = Job.from_json(job_text)
    folder = job_folder(outbox_folder(FOLDER / str(get_worker().name), job.journal, job.night), job.lease)
    folder.mkdir(parents=True, mode=0o700)
    station._started_here.add(folder)
    station._tell(folder, terms)
    write_whole(folder / JOB, job_text)
    model = next(line for number, line in _models(job.queue) if number == job.index)
    with Journal.open(slot_folder(folder, job.slot) / "journal.db") as journal:

        def write(event: ev.Event, step: str | None = None) -> None:
            journal.append(event, night=job.night, entry=job.entry, step=step, attempt=1 if step else None)

        write(ev.LeaseRenewed(lease=job.lease, host=job.host, until=""))
        write(ev.EntryStarted())
        write(ev.ResetStarted(backend="none", before_step="first"))
        write(
            ev.ResetFinished(backend="none", verdict="unverified", loaded_before=None, loaded_after=None, seconds=0.0)
        )
        write(ev.SettleStarted(reference_mb={}))
        write(ev.SettleFinished(status="settled", proven=False, waited_s=0.0, baseline_mb={"system": 1.0}, probes=()))
        for step in ("first", "second"):
            write(_started(job, step), step)
            write(ev.StepSpawned(pid=1, created_at=0.0, boot_id="played"), step)
            end = time.monotonic() + seconds_of(model) / 2
            while (left := end - time.monotonic()) > 0 and elapsed() < read_terms(folder).until_s:
                time.sleep(min(left, 5.0))
            write(ev.StepFinished(status="ok", exit_code=0, seconds=seconds_of(model) / 2), step)
        write(ev.EntryFinished(status="complete"))
    write_whole(folder / ENDED, json.dumps({"exit_code": 0}))
    return "ended"


def _models(queue: str) -> list[tuple[int, str]]:
    return list(enumerate(line.split()[-1] for line in queue.splitlines() if line.startswith("  - model: ")))


def _started(job: Job, step: str) -> ev.StepStarted:
    return ev.StepStarted(
        argv=("played",),
        log=f"{job.runs}/played.log",
        bundle=f"{job.runs}/played_e{job.entry}",
        timeout_s=60.0,
        stall_timeout_s=None,
        identity=job.identities[step] or "",
        identity_parts={},
    )


async def serve(address: str, count: int) -> None:
    """Run so many workers until the scheduler goes."""
    from distributed import Worker

    workers = [
        Worker(
            address, name=f"machine{n}", nthreads=1, resources={"endpoint": 1}, memory_limit=0, dashboard=False,
            local_directory=str(FOLDER / "dask"),
        )
        for n in range(count)
    ]  # fmt: skip
    await asyncio.gather(*workers)
    print("all there", flush=True)
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    import bench.fleet.machines as itself  # the module that Dask imports, not `__main__`

    itself.FOLDER = FOLDER = Path(sys.argv[3])
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
