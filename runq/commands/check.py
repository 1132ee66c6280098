"""`runq check`."""

from __future__ import annotations

from pathlib import Path

import click

from runq.commands.arguments import (
    base_dir_option,
    json_option,
    prepared_queue,
    queue_argument,
    runs_beside,
    runs_option,
)


@click.command("check")
@queue_argument
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=1.0),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="What one model may take to load and answer.",
)
@runs_option
@base_dir_option
@json_option
def command(queue: Path, timeout_s: float, runs: Path | None, base_dir: Path | None, as_json: bool) -> int:
    """Try every model of QUEUE before the first real night, judge models too.

    For each: evict what is loaded and prove it, wait until memory is back, load the model by one tiny request, compare
    the model that answered with the one asked for, evict it again, prove that its memory came back. Takes about as
    long as loading each model once. Exit code 1 when any model fails.

    --timeout bounds the load and the answer; evicting and settling have their own limits, `timeout_s` of the reset
    backend and of `settle` in the queue file.
    """
    from runq.check import run_check
    from runq.check_report import to_json, write
    from runq.paths import JOURNAL_NAME
    from runq.processes import Interrupts
    from runq.progress import check_closing, observer
    from runq_journal.reader import JournalReader

    folder = runs_beside(queue, runs)
    prepared = prepared_queue(queue, base_dir)
    with Interrupts() as interrupts, observer() as watching:
        result = run_check(prepared, folder, interrupts=interrupts, observer=watching, load_timeout_s=timeout_s)
    with JournalReader.open(folder / JOURNAL_NAME) as reader:
        rows = reader.checks(result.check)
    files = write(rows, result.folder)
    check_closing(rows, files=files)
    if as_json:
        click.echo(to_json(rows), nl=False)
    return result.exit_code
