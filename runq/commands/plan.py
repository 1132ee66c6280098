"""`runq plan`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runq import completion
from runq.commands.arguments import (
    base_dir_option,
    chosen_window,
    entry_numbers,
    json_option,
    only_option,
    prepared_queue,
    queue_argument,
    runs_beside,
    runs_option,
    window_options,
)

if TYPE_CHECKING:
    from runq.deadline import TimeWindow


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
@window_options
@click.option("--with-set-aside", is_flag=True, help="With --resume: as `runq night` with this option would.")
@runs_option
@base_dir_option
@json_option
def command(
    queue: Path,
    resume: bool,
    night: str | None,
    only: str | None,
    until: str | None,
    span: str | None,
    start_at: str | None,
    hard: bool,
    with_set_aside: bool,
    runs: Path | None,
    base_dir: Path | None,
    as_json: bool,
) -> int:
    """Show what `runq night QUEUE` would run and why, every setting resolved, and how long it took before.

    With --until or --for it also tells which steps would not start, if every other took as long as usual.

    Checks everything that a night checks before it starts, and writes nothing. Exit code 2 when the night would be
    refused.
    """
    return show_plan(
        queue,
        resume=resume,
        night=night,
        only=only,
        window=chosen_window(until, span, start_at, hard),
        lift=with_set_aside,
        runs=runs,
        base_dir=base_dir,
        as_json=as_json,
    )


def show_plan(
    queue: Path,
    *,
    resume: bool,
    night: str | None,
    only: str | None,
    window: TimeWindow,
    lift: bool,
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
        window=window,
        lift=lift,
        environ=os.environ,
    )
    from runq.text import json_text

    click.echo(json_text(data) if as_json else plan_text(data))
    return 0
