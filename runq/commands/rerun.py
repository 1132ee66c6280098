"""`runq rerun`."""

from __future__ import annotations

from pathlib import Path

import click

from runq import completion
from runq.commands.arguments import (
    entry_argument,
    entry_number,
    journal_of,
    json_option,
    keep_awake_option,
    prepared_queue,
    runs_option,
)
from runq_schemas.errors import UsageError


@click.command("rerun")
@entry_argument
@click.argument("step", required=False, shell_complete=completion.steps)
@keep_awake_option
@runs_option
@json_option
def command(entry: str, step: str | None, keep_awake: bool, runs: Path | None, as_json: bool) -> int:
    """Run ENTRY, or its STEP and the steps after it, again in the latest night: `runq rerun e2 judge`.

    The queue file is read again as it is now. Earlier attempts, their logs and bundles stay.
    """
    from runq.commands.night import run_and_show
    from runq.night import NightRequest
    from runq.replay import chosen_night
    from runq_journal.reader import JournalReader

    number, journal = entry_number(entry), journal_of(runs)
    with JournalReader.open(journal) as reader:
        night = chosen_night(reader, None)
        plan = reader.latest_plan(night)
    queue = prepared_queue(Path(plan["queue_path"]), Path(plan["base_dir"]))
    planned = next((e for e in plan["entries"] if e["id"] == number), None)
    if planned is None:
        known = ", ".join(f"e{e['id']}" for e in plan["entries"])
        raise UsageError(f"the night {night} has no entry e{number}", remedy=f"its entries are {known}")
    names = [s["name"] for s in planned["steps"]]
    if step is not None and step not in names:
        raise UsageError(f"e{number} has no step {step!r}", remedy=f"its steps are {', '.join(names)}")
    request = NightRequest(
        queue=queue,
        runs=journal.parent,
        resume=True,
        night=night,
        only=frozenset({number}),
        forced={number: frozenset({step or names[0]})},
        keep_awake=keep_awake,
    )
    return run_and_show(request, as_json=as_json)
