"""Arguments and options that several commands share, and how they find the queue and the journal."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runq import completion, paths
from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from runq.deadline import TimeWindow
    from runq.executor import Executor
    from runq.prepared import PreparedQueue

F = TypeVar("F", bound=Callable[..., Any])

queue_argument = click.argument("queue", type=click.Path(path_type=Path))

runs_option = click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    help="The runs folder, with journal and bundles.  [default: $RUNQ_RUNS, else 'runs' beside the queue file]",
)
base_dir_option = click.option(
    "--base-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="What relative paths in the queue file are relative to, and the steps' working directory."
    "  [default: the queue file's folder]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
lang_option = click.option(
    "--lang",
    type=click.Choice(("en", "de")),
    help="What summary.md is written in: English, or German as touchstone writes it. By default what the night was told"
    " when it began, else English.",
)
night_argument = click.argument("night", required=False, shell_complete=completion.nights)
entry_argument = click.argument("entry", shell_complete=completion.entries)


def _urls(ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """`--url` and `--port` as URLs."""
    for url in given:
        if not url.startswith(("http://", "https://")):
            raise click.BadParameter(f"{url!r} must begin with http:// or https://", ctx)
    return (*given, *(f"http://127.0.0.1:{port}" for port in ctx.params.pop("ports", ())))


def url_options(function: F) -> F:
    """``--url URL`` and ``--port PORT``, both as often as there are servers: ``urls``."""
    ports = click.option(
        "--port",
        "ports",
        multiple=True,
        is_eager=True,  # read first: `--url` takes it up
        type=click.IntRange(1, 65535),
        metavar="PORT",
        help="A server's port on this machine, where it is not the usual one. May be given several times.",
    )
    urls = click.option(
        "--url",
        "urls",
        multiple=True,
        callback=_urls,
        metavar="URL",
        help="A server's address, such as http://host:8080, in place of the usual ones. May be given several times.",
    )
    return ports(urls(function))


def only_option(function: F) -> F:
    """``--only e0,e2``."""
    return click.option(
        "--only",
        metavar="ENTRIES",
        shell_complete=completion.only,
        help="Run these entries only, for example 'e0,e2' or '0,2'; counted from 0.",
    )(function)


def window_options(function: F) -> F:
    """``--until``, ``--for``, ``--start-at`` and ``--hard``; `time_window` reads them."""
    hard = click.option("--hard", is_flag=True, help="With --until or --for: end a step that still runs then.")
    start = click.option(
        "--start-at", metavar="TIME", help="Wait until then: the next 23:00, or a date and time as for --until."
    )
    span = click.option("--for", "span", metavar="LENGTH", help="The same, so long after the start: 8h, 90m, 1h30m.")
    until = click.option(
        "--until",
        metavar="TIME",
        help="Start no step that, going by earlier nights, would not end by then: the next 07:00, or a date and time"
        " such as 2026-12-24T07:00. A step without history starts.",
    )
    return until(span(start(hard(function))))


def keep_awake_option(function: F) -> F:
    """``--keep-awake / --no-keep-awake``."""
    return click.option(
        "--keep-awake/--no-keep-awake",
        default=True,
        envvar="RUNQ_KEEP_AWAKE",
        help="Keep the machine from falling asleep until the night ends; RUNQ_KEEP_AWAKE=0 says no too.",
    )(function)


def cluster_options(function: F) -> F:
    """``--cluster``, ``--insecure`` and ``--lease``; `on_cluster` reads them."""
    lease = click.option(
        "--lease",
        "lease_s",
        type=click.FloatRange(min=5),
        default=300.0,
        show_default=True,
        metavar="SECONDS",
        help="With --cluster: how long a machine that is cut off may go on with its step. Only then does its entry go"
        " to another.",
    )
    insecure = click.option(
        "--insecure", is_flag=True, help="With --cluster: accept a tcp:// scheduler on another machine, without TLS."
    )
    cluster = click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Run the entries on the workers of this Dask scheduler, for example tls://head:8786.",
    )
    return cluster(insecure(lease(function)))


def on_cluster(
    address: str, queue: PreparedQueue, runs: Path, *, insecure: bool, lease_s: float
) -> AbstractContextManager[Executor]:
    """The workers of a scheduler.

    Raises:
        UsageError: Dask is not installed. What else may be wrong is raised when it is entered.
    """
    try:
        from runq.fleet.executor import dask_cluster
        from runq.fleet.secure import certificates_folder
    except ImportError as error:
        raise UsageError(
            f"a cluster needs what is not installed: {error.name}", remedy="install it with pip install 'runq[cluster]'"
        ) from error
    return dask_cluster(address, queue, runs, certificates=certificates_folder(), insecure=insecure, lease_s=lease_s)


def chosen_window(until: str | None, span: str | None, start_at: str | None, hard: bool) -> TimeWindow:
    """What the `window_options` ask for, counted from now.

    Raises:
        UsageError: one of them cannot be read, or they contradict each other.
    """
    from runq.deadline import time_window

    return time_window(until=until, span=span, start_at=start_at, hard=hard, now=datetime.now().astimezone())


def entry_number(text: str) -> int:
    """``e3`` or ``3`` as 3.

    Raises:
        UsageError: it is neither.
    """
    digits = text.strip().removeprefix("e")
    if not digits.isdecimal():
        raise UsageError(f"{text!r} is not an entry", remedy="give its number from 0, for example e2")
    return int(digits)


def entry_numbers(text: str | None) -> frozenset[int] | None:
    """The entries of ``--only``; ``None`` when it is not given.

    Raises:
        UsageError: it names no entry, or something else.
    """
    if text is None:
        return None
    numbers = frozenset(entry_number(word) for word in text.split(",") if word.strip())
    if not numbers:
        raise UsageError("--only names no entry", remedy="give numbers from 0, for example --only e0,e2")
    return numbers


def prepared_queue(queue: Path, base_dir: Path | None) -> PreparedQueue:
    """Read and prepare a queue file.

    Raises:
        QueueFileError: with every problem.
    """
    from runq.discovery import Plugins
    from runq.prepare import prepare
    from runq_schemas.parse import load_queue

    path = Path(os.path.abspath(queue))  # noqa: PTH100 - takes `..` away and leaves links, as Path has no way to
    spec = load_queue(path)
    base = (base_dir or path.parent).absolute()
    return prepare(spec, base_dir=base, plugins=Plugins(), environ=os.environ, cwd=Path.cwd())


def runs_beside(queue: Path, option: Path | None) -> Path:
    """The runs folder of a command with a queue file."""
    return paths.runs_dir(option, environ=os.environ, beside=queue.absolute().parent)


def journal_of(option: Path | None) -> Path:
    """The journal for a command without a queue file.

    Raises:
        UsageError: there is none.
    """
    return paths.existing_journal(paths.runs_dir(option, environ=os.environ, beside=None))
