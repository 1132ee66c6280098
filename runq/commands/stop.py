"""`runq stop`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runq.commands.arguments import journal_of, json_option, runs_option
from runq.commands.pause import show
from runq_schemas.errors import RunqError, UsageError

if TYPE_CHECKING:
    from runq.control.wire import What

WAIT_S = 60.0
"""A step gets 10 s to end by itself and 2 more after SIGKILL; the rest is for servers, summaries and slow disks."""


@click.command("stop")
@click.option("--after-step", is_flag=True, help="Let the step that runs finish first.")
@click.option("--after-entry", is_flag=True, help="Let the entry that runs finish first.")
@runs_option
@json_option
def command(after_step: bool, after_entry: bool, runs: Path | None, as_json: bool) -> int:
    """End the running night as Ctrl-C does: the step is ended, its end recorded, the summary written.

    Waits until that is done, a minute at most; with --after-step or --after-entry it returns at once. Asked twice, it
    kills at once. Go on later with --resume.
    """
    from runq.control.asking import ask_runner, runner, wait_for_end
    from runq.control.told import answer_text

    if after_step and after_entry:
        raise UsageError("--after-step and --after-entry exclude each other", remedy="give one of them")
    what: What = "stop_after_step" if after_step else "stop_after_entry" if after_entry else "stop"
    journal = journal_of(runs)
    holder = runner(journal)
    answer = ask_runner(journal, what)
    if what == "stop":
        answer["ended"] = wait_for_end(holder, WAIT_S)
        if not answer["ended"]:
            raise RunqError(
                f"the runner (pid {holder.pid}) was asked to stop and has not ended within {WAIT_S:g} s",
                remedy="`runq status` shows what it does; `runq stop` once more kills its step at once",
            )
    ended = "the night has ended" if "night" not in answer else f"night {answer['night']} has ended"
    text = f"{ended}; `runq status` shows how to go on" if what == "stop" else answer_text(answer)
    show(answer, text, as_json=as_json)
    return 0
