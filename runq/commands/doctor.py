"""`runq doctor`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from runq.commands.arguments import base_dir_option, json_option, runs_option, url_options


@click.command("doctor")
@click.argument("queue", required=False, type=click.Path(path_type=Path))
@url_options
@runs_option
@base_dir_option
@json_option
def command(
    queue: Path | None,
    urls: tuple[str, ...],
    runs: Path | None,
    base_dir: Path | None,
    as_json: bool,
) -> int:
    """Look over this machine before a night: what is missing, and what to do about it.

    Python, disk, memory, mains power, sleep; servers on their usual ports; the harnesses and the interpreter that has
    them; the journal. With QUEUE: exactly what this queue file needs. No model is loaded, and nothing is changed.

    Exit code 1 when a night would fail, 0 when it would not; what is only worth a look does not count.
    """
    from runq import paths
    from runq.discovery import Plugins
    from runq.doctor import examine
    from runq.doctor.finding import as_data, as_text
    from runq.looking import Look

    beside = queue.absolute().parent if queue is not None else Path.cwd()
    folder = paths.runs_dir(runs, environ=os.environ, beside=beside)
    path = None if queue is None else Path(os.path.abspath(queue))  # noqa: PTH100 - as a night takes it
    findings = list(examine(Plugins(), Look(urls=urls), runs=folder, queue=path, base_dir=base_dir))
    data = as_data(findings)
    from runq.text import json_text

    click.echo(json_text(data) if as_json else as_text(findings))
    return 0 if data["ok"] else 1
