"""`runq import`."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import click

from runq.commands.arguments import json_option, runs_option


@click.command("import")
@click.argument("path", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--python",
    metavar="PROGRAM",
    help="The interpreter that has inspect-ai, for logs that only it can read; by default the PATH's 'python'.",
)
@runs_option
@json_option
def command(path: tuple[Path, ...], python: str | None, runs: Path | None, as_json: bool) -> int:
    """Take over results from elsewhere, so that durations and scores have a history before the first night.

    PATH is a summary.json of touchstone, a log of Inspect (.eval or .json), or a folder that is searched for both. What
    was taken over before is recognised by its content and left out. Of an import nothing is resumed, and no memory
    figure is used.

    Exit code 1 when a file could not be taken over; the others are.
    """
    from runq import paths
    from runq.importing import run_import
    from runq.logs import one_line

    folder = paths.runs_dir(runs, environ=os.environ, beside=Path.cwd())
    taken = run_import(path, folder, python=python, now=datetime.now().astimezone())
    if as_json:
        rows = [
            {name: getattr(one, name) for name in ("status", "reason", "entries", "steps", "scores")}
            | {"path": str(one.path)}
            for one in taken
        ]
        from runq.text import json_text

        click.echo(json_text(rows))
    else:
        for one in taken:
            told = {
                "new": f"{one.entries} entries, {one.steps} steps, {one.scores} scores",
                "known": "taken over before",
                "refused": one.reason,
            }[one.status]
            sign = {"new": "+", "known": "=", "refused": "!"}[one.status]
            click.echo(f"{sign} {one_line(str(one.path))}: {one_line(told)}")
    return 1 if any(one.status == "refused" for one in taken) else 0
