"""`runq status`."""

from __future__ import annotations

from pathlib import Path

import click

from runq.commands.arguments import journal_of, json_option, night_argument, runs_option


@click.command("status")
@night_argument
@runs_option
@json_option
def command(night: str | None, runs: Path | None, as_json: bool) -> int:
    """Show a night on one screen: the latest, or NIGHT by id or folder. Works while it runs."""
    from runq.status import status_data, status_text

    data = status_data(journal_of(runs), night)
    from runq.text import json_text

    click.echo(json_text(data) if as_json else status_text(data))
    return 0
