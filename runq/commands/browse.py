"""`runq browse`."""

from __future__ import annotations

from pathlib import Path

import click

from runq.commands.arguments import journal_of, runs_option


@click.command("browse")
@click.option("--port", default=8001, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free port.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
@runs_option
def command(port: int, open_browser: bool, runs: Path | None) -> int:
    """Browse the journal in Datasette on 127.0.0.1: read-only, also while a night runs. Ctrl-C ends it."""
    from runq.browse import datasette_argv, serve
    from runq_journal.reader import JournalReader

    journal = journal_of(runs)
    JournalReader.open(journal).close()  # what is wrong with the file is said here, not by Datasette's traceback
    return serve(datasette_argv(journal, port=port, open_browser=open_browser))
