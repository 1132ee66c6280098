"""`runq skip`."""

from __future__ import annotations

from pathlib import Path

import click

from runq.commands.arguments import journal_of, json_option, runs_option
from runq.commands.pause import show


@click.command("skip")
@runs_option
@json_option
def command(runs: Path | None, as_json: bool) -> int:
    """Skip the rest of the entry that runs: its step is ended, and the night goes on with the next entry.

    What was skipped is left to do: --resume runs it.
    """
    from runq.control.asking import ask_runner
    from runq.control.told import answer_text

    answer = ask_runner(journal_of(runs), "skip")
    show(answer, answer_text(answer), as_json=as_json)
    return 0
