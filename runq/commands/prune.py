"""`runq prune`."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runq.commands.arguments import journal_of, json_option, runs_option
from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from runq.pruning import Plan

MB = 2**20


@click.command("prune")
@click.option(
    "--older-than",
    default="30d",
    metavar="AGE",
    help="Only of nights that ended longer ago than this: 30d, 8w or 12h; 30d where it is not given.",
)
@click.option("--bundles", is_flag=True, help="Bundles: what steps wrote, answers and judgements among them.")
@click.option("--logs", is_flag=True, help="Logs: what steps, servers and restarts printed.")
@click.option(
    "--samples", is_flag=True, help="Memory readings in the journal; peaks and baselines are events and stay."
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@runs_option
@json_option
def command(
    older_than: str,
    bundles: bool,
    logs: bool,
    samples: bool,
    dry_run: bool,
    yes: bool,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Delete bundles, logs and memory readings of old nights, after showing them and asking.

    With none of --bundles, --logs and --samples: all three. Events are never touched, so summaries, scores and
    durations stay. The bundles of a night that is not complete stay, and those of the latest night of each queue file:
    a resume needs them.

    The journal's file keeps its size; later nights use the room in it again. Exit code 1 when something could not be
    deleted, 3 when a night runs.
    """
    from runq.locks import night_locks, own_holder
    from runq.pruning import KINDS, carry_out, cutoff, make_plan
    from runq_journal.journal import Journal
    from runq_journal.reader import JournalReader

    if yes and dry_run:
        raise UsageError("--yes and --dry-run exclude each other", remedy="give one of them")
    chosen = {kind for kind, given in zip(KINDS, (bundles, logs, samples), strict=True) if given} or set(KINDS)
    now = datetime.now().astimezone()
    before, journal_path = cutoff(older_than, now), journal_of(runs)
    holder = own_holder(since=now.isoformat(timespec="seconds"), queue="runq prune", journal=journal_path)
    failed: list[str] = []
    with night_locks(journal_path, (), holder):
        with JournalReader.open(journal_path, at_rest=True) as reader:
            plan = make_plan(reader, journal_path.parent, before=before, kinds=chosen)
        if not as_json:
            click.echo("\n".join(_lines(plan)))
        deleted = not (plan.empty or dry_run) and (yes or _agreed(as_json=as_json))
        if deleted:
            with Journal.open(journal_path) as journal:
                failed = carry_out(plan, journal)
    if as_json:
        from runq.text import json_text

        click.echo(json_text(_data(plan, deleted=deleted, failed=failed)))
    for one in failed:
        click.echo(f"could not be deleted: {one}", err=True)
    return 1 if failed else 0


def _agreed(*, as_json: bool) -> bool:
    """Ask whether to delete.

    Raises:
        UsageError: nobody can be asked.
    """
    if as_json or not sys.stdin.isatty():
        raise UsageError(
            "nobody can be asked here whether to delete this", remedy="add --yes, or --dry-run to look only"
        )
    return click.confirm("Delete this?", err=True)


def _lines(plan: Plan) -> list[str]:
    from runq.logs import one_line

    day = plan.before.astimezone().strftime("%Y-%m-%d %H:%M")
    lines = [f"of nights that ended before {day}:"]
    lines += [f"  {one.night}  {len(one.paths):>5} {one.kind:<7}  {_size(one.bytes)}" for one in plan.items]
    if plan.samples:
        lines.append(f"  {plan.samples} memory readings in the journal")
    if plan.empty:
        lines.append("  nothing to delete")
    elif plan.items:
        lines.append(f"  together {_size(sum(one.bytes for one in plan.items))}")
    lines += [f"  the bundles of {one_line(night)} stay: {why}" for night, why in plan.kept.items()]
    return lines


def _size(count: int) -> str:
    return f"{count / MB:.1f} MB" if count >= MB / 10 else f"{count / 1024:.1f} KB"


def _data(plan: Plan, *, deleted: bool, failed: list[str]) -> dict[str, Any]:
    return {
        "before": plan.before.isoformat(timespec="seconds"),
        "deleted": deleted,
        "items": [
            {"kind": one.kind, "night": one.night, "paths": [str(path) for path in one.paths], "bytes": one.bytes}
            for one in plan.items
        ],
        "samples": plan.samples,
        "kept": dict(plan.kept),
        "failed": failed,
    }
