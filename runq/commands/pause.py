"""`runq pause` and `runq unpause`: ask the running night to start nothing new, and to go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from runq.commands.arguments import journal_of, json_option, runs_option


@click.command("pause")
@runs_option
@json_option
def command(runs: Path | None, as_json: bool) -> int:
    """Let the running night pause: the step that runs finishes, and nothing new starts until `runq unpause`.

    The pause counts against no step. After it the endpoint is reset before the next step, whatever was loaded
    meanwhile.
    """
    from runq.control.asking import ask_runner
    from runq.control.told import answer_text

    answer = ask_runner(journal_of(runs), "pause")
    show(answer, answer_text(answer), as_json=as_json)
    return 0


def show(answer: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print the runner's answer: as it is for programs, in a sentence for people."""
    from runq.logs import one_line

    click.echo(json.dumps(answer) if as_json else one_line(text))
