"""`runq salvage`."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runq.commands.arguments import journal_of, json_option, runs_option

if TYPE_CHECKING:
    from runq.salvaging import Outcome


@click.command("salvage")
@click.option(
    "--to",
    "into",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The new journal, which must not exist yet.  [default: journal.salvaged.db in the journal's folder]",
)
@click.option(
    "--replace", is_flag=True, help="Put it in the journal's place, and the damaged one aside under another name."
)
@runs_option
@json_option
def command(into: Path | None, replace: bool, runs: Path | None, as_json: bool) -> int:
    """Copy what a damaged journal still vouches for into a new one.

    Each event carries the hash of the one before it. The copy has every event up to the first that does not, and the
    memory readings that can be read. The damaged file is never written to. A journal that is whole is left alone.

    Nights of which events were lost are resumed as if the runner had died there: what is not in the journal runs again.
    """
    from runq.salvaging import run_salvage

    outcome = run_salvage(journal_of(runs), into=into, replace=replace, now=datetime.now().astimezone())
    if as_json:
        from runq.text import json_text

        click.echo(json_text(_data(outcome)))
    else:
        for line in _lines(outcome):
            click.echo(line)
    return 0


def _data(outcome: Outcome) -> dict[str, object]:
    saved = outcome.saved
    if saved is None:
        return {"journal": str(outcome.journal), "whole": True}
    return {
        "journal": str(outcome.journal),
        "whole": False,
        "salvaged": str(saved.path),
        "events": saved.events,
        "lost": saved.lost,
        "samples": saved.samples,
        "broken": saved.broken,
        "last_night": saved.last_night or None,
        "last_at": saved.last_at or None,
        "aside": None if outcome.aside is None else str(outcome.aside),
    }


def _lines(outcome: Outcome) -> list[str]:
    from runq.logs import one_line

    saved = outcome.saved
    if saved is None:
        return [f"{outcome.journal} is whole; nothing was written"]
    lost = "" if not saved.lost else f", {saved.lost} lost"
    lines = [f"{saved.path}: {saved.events} events saved{lost}, {saved.samples} memory readings"]
    if saved.broken:
        lines.append(f"  the chain ends there: {one_line(saved.broken)}")
    if saved.events:
        lines.append(f"  last event: {saved.last_at}, night {one_line(saved.last_night)}")
    if outcome.aside is not None:
        lines.append(f"  the damaged one is {outcome.aside}")
        lines.append("  check it with `runq status`; `runq night QUEUE --resume` goes on")
    else:
        runs = shlex.quote(str(outcome.journal.parent))
        lines.append(f"  `runq salvage --replace --runs {runs}` puts one like it in the journal's place")
    return lines
