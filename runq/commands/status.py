"""`runq status`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from runq.commands.arguments import journal_of, json_option, night_argument, runs_option
from runq_schemas.errors import UsageError


@click.command("status")
@night_argument
@runs_option
@click.option("--line", "as_line", is_flag=True, help="Print one short line, for a status bar.")
@click.option("--all", "everything", is_flag=True, help="Show every entry, also on a terminal too low for all.")
@json_option
def command(night: str | None, runs: Path | None, as_line: bool, everything: bool, as_json: bool) -> int:
    """Show a night on one screen: the latest, or NIGHT by id or folder. Works while it runs.

    On a terminal too low for all entries those are counted that matter least: first the complete ones, then those
    whose turn has not come.
    """
    from runq.status import status_data, status_line, status_text
    from runq.text import json_text

    if as_line and as_json:
        raise UsageError("--line and --json exclude each other", remedy="give one of them")
    data = status_data(journal_of(runs), night)
    if as_json:
        click.echo(json_text(data))
    elif as_line:
        click.echo(status_line(data))
    else:
        # One line stays for the prompt.
        fits = None if everything or not sys.stdout.isatty() else max(shutil.get_terminal_size().lines - 1, 1)
        click.echo(status_text(data, height=fits))
    return 0
