"""`runq watch`."""

from __future__ import annotations

import contextlib
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runq.commands.arguments import journal_of, json_option, runs_option

if TYPE_CHECKING:
    from runq.watching.following import Following


@click.command("watch")
@runs_option
@json_option
def command(runs: Path | None, as_json: bool) -> int:
    """Watch the running night: what it does now, memory as a curve, its entries, the end of the step's log.

    Keys: p pauses, or lets a paused night go on; s stops it, now or after the step or the entry; k skips the rest of
    the entry; l gives the log the whole screen; q leaves. Leaving never ends the night.

    It ends with the night, and shows how that ended. Where there is no terminal it prints the status, then a line for
    each transition; --json prints the status as a line of JSON, and again after each change.

    Exit code 0 when somebody left or every entry is complete, 1 when the night ended and one is not. Without a running
    night it shows the latest, as `runq status` does.
    """
    from runq.liveness import runner_of
    from runq.progress import can_redraw, usual_seconds
    from runq.status import status_data, status_text
    from runq.text import json_text
    from runq.watching.following import Following
    from runq.watching.plain import print_json, print_lines
    from runq_journal.reader import JournalReader

    journal = journal_of(runs)
    with JournalReader.open(journal) as reader:
        runner = runner_of(journal, reader)
        if runner is None or runner.night not in reader.night_ids():
            data = status_data(journal, None)
            click.echo("no night runs now; this is the latest:", err=True)
            click.echo(json_text(data, indent=None) if as_json else status_text(data))
            return _exit_code(data)
        following = Following(
            reader, journal, runner.night, usual_seconds(reader), lambda: datetime.now(UTC), time.monotonic
        )
        if as_json:
            print_json(following, click.echo)
        elif can_redraw(sys.stdout):
            if not _on_terminal(following, journal):
                return 0
        else:
            print_lines(following, click.echo)
        return _exit_code(following.data)


def _exit_code(data: dict[str, Any]) -> int:
    return 0 if data["complete"] == data["total"] else 1


def _on_terminal(following: Following, journal: Path) -> bool:
    """Show it on the terminal; at its end print how it ended. Returns whether it ended."""
    from io import TextIOWrapper

    from rich.console import Console

    from runq.paths import queue_dir
    from runq.progress import closing
    from runq.watching.loop import watch_on

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may show fewer characters than a log holds
    if not watch_on(Console(), following, journal):
        return False
    data = following.data
    with contextlib.suppress(OSError):  # the terminal was closed
        if data["state"] == "died":
            click.echo("its runner died; what it ran may still go on until the night is resumed", err=True)
        closing(data, folder=queue_dir(journal.parent, data["night"]), resume=data["resume"], earlier=None, ran=True)
    return True
