"""`runq log`."""

from __future__ import annotations

import time
from pathlib import Path

import click

from runq import completion
from runq.commands.arguments import entry_argument, entry_number, journal_of, runs_option
from runq_schemas.errors import UsageError

FOLLOW_EVERY_S = 0.5


@click.command("log")
@entry_argument
@click.argument("step", required=False, shell_complete=completion.logged_steps)
@click.option(
    "--night",
    metavar="NIGHT",
    shell_complete=completion.nights,
    help="The night, by id or folder.  [default: the latest]",
)
@click.option("--attempt", type=click.IntRange(min=1), help="The attempt.  [default: the last]")
@click.option("-f", "--follow", is_flag=True, help="Go on as the log grows, until the attempt ends.")
@runs_option
def command(
    entry: str, step: str | None, night: str | None, attempt: int | None, follow: bool, runs: Path | None
) -> int:
    """Show the log of ENTRY's STEP (by default its last step that ran), for example `runq log e1 judge -f`.

    ENTRY is its number from 0, as `e1` or `1`.

    STEP may be `server`: the log of the server that the reset backend started.
    """
    from runq.logs import follow as lines_of
    from runq.replay import chosen_night
    from runq_journal.reader import JournalReader

    number, journal = entry_number(entry), journal_of(runs)
    with JournalReader.open(journal) as reader:
        wanted = chosen_night(reader, night)
        started = [
            event
            for event in reader.events(night=wanted, entry=number, kinds=("step.started", "server.started"))
            if (event.step == step if step else event.kind == "step.started")
            and (attempt is None or event.attempt == attempt)
        ]
    if not started:
        what = f"step {step!r}" if step else "step"
        raise UsageError(f"no {what} of e{number} ran in {wanted}", remedy="`runq status` shows what ran")
    path = Path(started[-1].data["log"])
    where = (wanted, started[-1].entry, started[-1].step, started[-1].attempt)
    try:
        for line in lines_of(
            path, ended=lambda: not follow or _ended(journal, where), wait=lambda: time.sleep(FOLLOW_EVERY_S)
        ):
            click.echo(line)
    except FileNotFoundError:
        raise UsageError(f"the log {path} is gone", remedy="it was moved or pruned") from None
    return 0


def _ended(journal: Path, where: tuple[str, int | None, str | None, int | None]) -> bool:
    """Whether nothing more is to come: the attempt has its end, or the runner died and nobody will write it."""
    from runq.locks import holder_of, journal_lock_path
    from runq_journal.reader import JournalReader

    if holder_of(journal_lock_path(journal)) is None:
        return True
    night, entry, step, attempt = where
    with JournalReader.open(journal) as reader:
        return any(
            event.attempt == attempt
            for event in reader.events(night=night, entry=entry, step=step, kinds=("step.finished", "server.finished"))
        )
