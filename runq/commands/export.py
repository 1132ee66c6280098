"""`runq export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, cast

import click

from runq import completion
from runq.commands.arguments import journal_of, runs_option

TABLES = ("events", "samples", "metrics")
FORMS = ("csv", "jsonl", "parquet")


@click.command("export")
@click.argument("table", nargs=-1, type=click.Choice(TABLES))
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="How rows are written; by default what the name of the file says, else jsonl.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    help="The file of one table, or the folder of several; - is standard output, where one table goes by itself.",
)
@click.option(
    "--night",
    "nights",
    multiple=True,
    metavar="NIGHT",
    shell_complete=completion.nights,
    help="Only of this night, by id or folder. May be given several times; by default all.",
)
@runs_option
def command(
    table: tuple[str, ...], form: str | None, output: Path | None, nights: tuple[str, ...], runs: Path | None
) -> int:
    """Write events, samples or metrics of the journal as CSV, JSON Lines or Parquet, for other programs.

    \b
      runq export metrics > metrics.jsonl
      runq export samples -o samples.parquet --night 2026-12-01_230000
      runq export -o exported --format parquet      all three tables into a folder

    TABLE: events (every transition), samples (every reading of a memory probe), metrics (every score); without one all
    three, which need a folder. A file is written whole or not at all; memory does not grow with the number of rows, and
    a night may run meanwhile. Parquet needs the extra: pip install 'runq[parquet]'.
    """
    from runq.exporting.making import export, form_of

    where = None if output is None or str(output) == "-" else output
    tables = tuple(dict.fromkeys(table)) or TABLES
    stdout = cast(IO[str], _Plain()) if sys.stdout.isatty() else sys.stdout
    shown = form_of(form, where)
    for one in export(journal_of(runs), tables, form=shown, nights=nights, output=where, stdout=stdout):
        if one.path is not None:
            click.echo(str(one.path))
            click.echo(f"  {one.rows} {one.table}", err=True)
    return 0


class _Plain:
    """Standard output where it is a terminal: nothing that a name from outside holds is obeyed there."""

    def write(self, text: str) -> None:
        from runq.text import clean_lines

        sys.stdout.write(clean_lines(text))
