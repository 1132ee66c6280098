"""`runq unpause`."""

from __future__ import annotations

from pathlib import Path

import click

from runq.commands.arguments import journal_of, json_option, runs_option
from runq.commands.pause import show


@click.command("unpause")
@runs_option
@json_option
def command(runs: Path | None, as_json: bool) -> int:
    """Let a paused night go on, or take back a pause that has not begun."""
    from runq.control.asking import ask_runner
    from runq.control.told import answer_text

    answer = ask_runner(journal_of(runs), "unpause")
    show(answer, answer_text(answer), as_json=as_json)
    return 0
