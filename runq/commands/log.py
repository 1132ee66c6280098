"""`runq log`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runq import completion
from runq.commands.arguments import entry_number, journal_of, runs_option
from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from runq_journal.stored import StoredEvent

FOLLOW_EVERY_S = 0.5


@click.command("log")
@click.argument("entry", required=False, shell_complete=completion.entries)
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
    entry: str | None, step: str | None, night: str | None, attempt: int | None, follow: bool, runs: Path | None
) -> int:
    """Show the log of ENTRY's STEP (by default its last step that ran), for example `runq log e1 judge -f`.

    ENTRY is its number from 0, as `e1` or `1`. Without it: the step that runs now, or ran last; -f then goes on with
    the steps after it until the night ends.

    STEP may be `server`: the log of the server that the reset backend started.
    """
    from runq.replay import chosen_night
    from runq_journal.reader import JournalReader

    number, journal = None if entry is None else entry_number(entry), journal_of(runs)
    with JournalReader.open(journal) as reader:
        wanted = chosen_night(reader, night)
        started = [
            event
            for event in reader.events(night=wanted, entry=number, kinds=("step.started", "server.started"))
            if (event.step == step if step else event.kind == "step.started")
            and (attempt is None or event.attempt == attempt)
        ]
    if not started and number is None and follow:
        started = _next(journal, wanted, 0)
    if not started:
        what = f"step {step!r}" if step else "step"
        of = "" if number is None else f" of e{number}"
        raise UsageError(f"no {what}{of} ran in {wanted}", remedy="`runq status` shows what ran")
    shown = started[-1]
    _show(journal, shown, follow=follow, head=number is None)
    while follow and number is None and (later := _next(journal, wanted, shown.id)):
        shown = later[0]
        _show(journal, shown, follow=True, head=True)
    return 0


def _show(journal: Path, started: StoredEvent, *, follow: bool, head: bool) -> None:
    """Print the log of one attempt, while it grows too if it is to be followed."""
    from runq.logs import follow as lines_of

    path = Path(started.data["log"])
    if head:
        click.echo(f"==> e{started.entry} {started.step}, attempt {started.attempt} <==", err=True)
    while follow and not path.exists() and not _ended(journal, started):
        time.sleep(FOLLOW_EVERY_S / 10)  # a step is in the journal before its log is there
    try:
        for line in lines_of(
            path, ended=lambda: not follow or _ended(journal, started), wait=lambda: time.sleep(FOLLOW_EVERY_S)
        ):
            click.echo(line)
    except FileNotFoundError:
        raise UsageError(f"the log {path} is gone", remedy="it was moved or pruned") from None


def _next(journal: Path, night: str, after: int) -> list[StoredEvent]:
    """The steps of a night that started after an event; waits for one, and has none once the night's runner is gone."""
    from runq_journal.reader import JournalReader

    while True:
        runs = _runs(journal)  # asked first: what starts before it ends is seen below
        with JournalReader.open(journal) as reader:
            found = list(reader.events(night=night, kinds=("step.started",), after=after))
        if found or not runs:
            return found
        time.sleep(FOLLOW_EVERY_S)


def _runs(journal: Path) -> bool:
    from runq.locks import holder_of, journal_lock_path

    return holder_of(journal_lock_path(journal)) is not None


def _ended(journal: Path, started: StoredEvent) -> bool:
    """Whether nothing more is to come: the attempt has its end, or the runner died and nobody will write it."""
    from runq_journal.reader import JournalReader

    if not _runs(journal):
        return True
    kinds = ("step.finished", "server.finished")
    with JournalReader.open(journal) as reader:
        return any(
            event.attempt == started.attempt
            for event in reader.events(night=started.night, entry=started.entry, step=started.step, kinds=kinds)
        )
