"""`runq nights`."""

from __future__ import annotations

from pathlib import Path

import click

from runq.commands.arguments import journal_of, json_option, runs_option


@click.command("nights")
@runs_option
@json_option
def command(runs: Path | None, as_json: bool) -> int:
    """List all nights of the journal, newest first."""
    from runq.liveness import runner_of, state_of
    from runq.logs import one_line
    from runq_journal.reader import JournalReader

    journal = journal_of(runs)
    with JournalReader.open(journal) as reader:
        rows = reader.night_summaries()
        runner = runner_of(journal, reader)
    for row in rows:
        row["state"] = state_of(row["night"], row["state"], runner)
    if as_json:
        from runq.text import json_text

        click.echo(json_text(rows))
        return 0
    for row in rows:
        counts = f"{row['complete']}/{row['total']} complete"
        failed = f", {row['failed']} failed" if row["failed"] else ""
        click.echo(f"{row['night']}  {row['state']:<11}  {counts}{failed}  {one_line(row['queue_path'])}")
    if not rows:
        click.echo("no night yet", err=True)
    return 0
