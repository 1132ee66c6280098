"""`runq plan`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from runq import completion
from runq.commands.arguments import (
    base_dir_option,
    entry_numbers,
    json_option,
    only_option,
    prepared_queue,
    queue_argument,
    runs_beside,
    runs_option,
)


@click.command("plan")
@queue_argument
@click.option("--resume", is_flag=True, help="Show what a resume would run.")
@click.option(
    "--night",
    metavar="NIGHT",
    shell_complete=completion.nights,
    help="With --resume: the night to continue, by id or folder.",
)
@only_option
@runs_option
@base_dir_option
@json_option
def command(
    queue: Path,
    resume: bool,
    night: str | None,
    only: str | None,
    runs: Path | None,
    base_dir: Path | None,
    as_json: bool,
) -> int:
    """Show what `runq night QUEUE` would run and why, every setting resolved, and how long it took before.

    Checks everything that a night checks before it starts, and writes nothing. Exit code 2 when the night would be
    refused.
    """
    return show_plan(queue, resume=resume, night=night, only=only, runs=runs, base_dir=base_dir, as_json=as_json)


def show_plan(
    queue: Path,
    *,
    resume: bool,
    night: str | None,
    only: str | None,
    runs: Path | None,
    base_dir: Path | None,
    as_json: bool,
) -> int:
    """Print a plan. Returns the exit code."""
    from runq.planned import plan_data, plan_text

    data = plan_data(
        prepared_queue(queue, base_dir),
        runs_beside(queue, runs),
        resume=resume,
        night=night,
        only=entry_numbers(only),
        environ=os.environ,
    )
    click.echo(json.dumps(data, indent=2, ensure_ascii=False) if as_json else plan_text(data))
    return 0
