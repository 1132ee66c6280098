"""`runq night`."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runq import completion
from runq.commands.arguments import (
    base_dir_option,
    chosen_window,
    cluster_options,
    entry_numbers,
    json_option,
    keep_awake_option,
    lang_option,
    on_cluster,
    only_option,
    prepared_queue,
    queue_argument,
    runs_beside,
    runs_option,
    window_options,
)
from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from runq.detach import Begun
    from runq.executor import Executor
    from runq.night import NightRequest
    from runq.notify.notifier import Notifier
    from runq.record import Observer


@click.command("night")
@queue_argument
@click.option("--resume", is_flag=True, help="Continue the latest night of this queue that is not complete.")
@click.option(
    "--night",
    metavar="NIGHT",
    shell_complete=completion.nights,
    help="With --resume: the night to continue, by id or folder.",
)
@click.option("--dry-run", is_flag=True, help="Show what would run and write nothing; the same as `runq plan`.")
@only_option
@window_options
@click.option(
    "--max-failures",
    type=click.IntRange(min=1),
    metavar="N",
    help="End the night when N entries in a row were not complete; the rest stays to be done."
    "  [default: max_failures of the queue file]",
)
@click.option(
    "--with-set-aside",
    is_flag=True,
    help="With --resume: run entries too that were set aside because the runner died twice while they ran.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="Go on without this terminal; `runq status`, `runq log -f` and `runq stop` find the night.",
)
@cluster_options
@keep_awake_option
@lang_option
@runs_option
@base_dir_option
@json_option
def command(
    queue: Path,
    resume: bool,
    night: str | None,
    dry_run: bool,
    only: str | None,
    until: str | None,
    span: str | None,
    start_at: str | None,
    hard: bool,
    max_failures: int | None,
    with_set_aside: bool,
    detach: bool,
    cluster: str | None,
    insecure: bool,
    lease_s: float,
    keep_awake: bool,
    lang: str | None,
    runs: Path | None,
    base_dir: Path | None,
    as_json: bool,
) -> int:
    """Run the entries of QUEUE one by one.

    For each: reset the endpoint, wait until memory is proven back, run the steps, record. Whatever goes wrong costs
    its entry, never the night. Ctrl-C stops the running step and records it; a second Ctrl-C kills at once.

    With a deadline (--until, --for) each step is decided on its own: the next one that fits still starts. What was
    left, why, and how long it needs is in the summary. --start-at takes the locks and waits.

    With --cluster the entries go to the workers of a Dask scheduler, one per machine at a time, and what they write
    comes back into this journal; see docs/cluster.md.

    With --detach the night goes on in the background as soon as it has begun; what refuses it is told before that. What
    it shows is in night.log beside its summary.

    Exit code 0 when every entry is complete, or with --only every chosen one; 1 when one is not.

    Progress goes to standard error; --json prints the summary on standard output at the end.
    """
    if night and not resume:
        raise UsageError("--night names the night to resume", remedy="add --resume")
    if with_set_aside and not resume:
        raise UsageError("--with-set-aside is about a night that goes on", remedy="add --resume")
    window = chosen_window(until, span, start_at, hard)
    if dry_run:
        from runq.commands.plan import show_plan

        return show_plan(
            queue,
            resume=resume,
            night=night,
            only=only,
            window=window,
            lift=with_set_aside,
            runs=runs,
            base_dir=base_dir,
            as_json=as_json,
        )
    from runq.night import NightRequest

    request = NightRequest(
        queue=prepared_queue(queue, base_dir),
        runs=runs_beside(queue, runs),
        resume=resume,
        night=night,
        only=entry_numbers(only),
        lift=with_set_aside,
        window=window,
        max_failures=max_failures,
        keep_awake=keep_awake,
        lang=lang,
    )
    if cluster is None:
        return _detached(request, as_json=as_json) if detach else run_and_show(request, as_json=as_json)
    if detach:
        raise UsageError("--detach goes with a night on this machine", remedy="leave it out, and use tmux or nohup")
    with on_cluster(cluster, request.queue, request.runs, insecure=insecure, lease_s=lease_s) as executor:
        return run_and_show(request, as_json=as_json, executor=executor)


def _detached(request: NightRequest, *, as_json: bool) -> int:
    """Run a night in the background. Returns once it has begun."""
    from runq.detach import LettingGo, detach
    from runq.progress import dated_lines

    def told(begun: Begun) -> None:
        shown = {"night": begun.night, "pid": begun.pid, "runs": begun.runs, "output": begun.output}
        if as_json:
            click.echo(json.dumps(shown))
            return
        runs = f" --runs {shlex.quote(begun.runs)}"
        click.echo(f"night {begun.night} goes on without this terminal (pid {begun.pid})")
        click.echo(f"  how far it is   runq status{runs}")
        click.echo(f"  its steps' log  runq log -f{runs}")
        click.echo(f"  end it          runq stop{runs}")
        click.echo(f"  what it shows   {begun.output}")

    def work(report: Callable[[Begun], None]) -> int:
        return run_and_show(request, as_json=False, shown=LettingGo(dated_lines(), report))

    return detach(work, told)


def run_and_show(
    request: NightRequest, *, as_json: bool, shown: Observer | None = None, executor: Executor | None = None
) -> int:
    """Run a night with progress, and say how it ended and what to do next. Returns the exit code.

    Args:
        shown: shows the progress; by default what fits standard error.
        executor: runs the entries; by default this machine does.
    """
    from runq.night import run_night
    from runq.paths import JOURNAL_NAME, queue_dir
    from runq.processes import Interrupts
    from runq.progress import closing, observer
    from runq.resume_command import resume_command
    from runq.summary import build
    from runq_journal.reader import JournalReader

    watched = contextlib.nullcontext(shown) if shown else observer(_estimates(request.runs / JOURNAL_NAME))
    with Interrupts() as interrupts, watched as watching:
        result = run_night(request, interrupts=interrupts, observer=watching, notifier=notifier(), executor=executor)
    with JournalReader.open(result.runs / JOURNAL_NAME) as reader:
        summary = build(reader, result.night)
        resume, earlier = (
            resume_command(reader.latest_plan(night), night, result.runs) if night else None
            for night in (result.night, result.earlier)
        )
    with contextlib.suppress(OSError):  # the terminal was closed meanwhile; the exit code still tells
        closing(
            summary,
            folder=queue_dir(result.runs, result.night),
            resume=resume if result.complete < result.total else None,
            earlier=earlier,
            ran=result.ran,
        )
    if as_json:
        from runq.text import json_text

        click.echo(json_text(summary, indent=None))
    return result.exit_code


def notifier() -> Notifier:
    """Where this user's notifications go; a night must not fail for want of a readable list of them.

    Raises:
        UsageError: the file that was named cannot be read.
    """
    from runq.notify.notifier import AppriseNotifier, Notifier
    from runq.notify.urls import urls_of

    urls = urls_of(os.environ)
    return AppriseNotifier(urls=urls) if urls else Notifier()


def _estimates(journal: Path) -> dict[tuple[str, str, str], float]:
    """The usual duration of each (step, model id, pack), for the display; empty before the first night."""
    from runq.paths import is_begun
    from runq.progress import usual_seconds
    from runq_journal.reader import JournalReader

    if not is_begun(journal):
        return {}
    with JournalReader.open(journal) as reader:
        return usual_seconds(reader)
