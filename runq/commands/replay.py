"""`runq replay`."""

from __future__ import annotations

from pathlib import Path

import click

from runq.commands.arguments import journal_of, lang_option, night_argument, runs_option
from runq_schemas.errors import UsageError


@click.command("replay")
@night_argument
@click.option("--all", "every", is_flag=True, help="Rebuild the summaries of every night.")
@click.option("--at", type=click.IntRange(min=1), metavar="EVENT", help="Print the summary as it was after this event.")
@click.option("--verify", is_flag=True, help="Only check the hash chain; writes nothing, exit code 4 on a break.")
@lang_option
@runs_option
def command(night: str | None, every: bool, at: int | None, verify: bool, lang: str | None, runs: Path | None) -> int:
    """Rebuild summary.json and summary.md from the journal alone.

    They come out byte for byte as the night wrote them; with --lang, summary.md in that language. Without NIGHT: the
    latest night's.
    """
    from runq import replay

    if sum((bool(night), every, at is not None, verify)) > 1:
        raise UsageError("NIGHT, --all, --at and --verify exclude each other", remedy="give one of them")
    journal = journal_of(runs)
    if verify:
        count = replay.verify(journal)
        click.echo(f"{journal}: {count} events, hash chain whole")
    elif at is not None:
        click.echo(replay.summary_at(journal, at), nl=False)
    else:
        for rebuilt in replay.rebuild(journal, night=night, every=every, lang=lang):
            for file in rebuilt.files:
                click.echo(str(file))
    return 0
