"""`runq cluster`."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import ModuleType

import click

from runq_schemas.errors import UsageError

tls_option = click.option(
    "--tls-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the certificates.  [default: $RUNQ_CLUSTER_TLS, else 'cluster' in runq's user configuration]",
)


@click.group("cluster")
def command() -> None:
    """Prepare the machines of a cluster; `runq night QUEUE --cluster ADDRESS` uses it.

    \b
    On every machine:  pip install 'runq[cluster]', the same version and the same plugins
    On one:            runq cluster init, and copy the folder it names to every other machine
    On all:            the commands that `runq cluster commands` prints
    """


@command.command("init")
@tls_option
def init(tls_dir: Path | None) -> int:
    """Make certificates; without them no machine can join, and nobody can hand out entries.

    One set for all machines: a certificate authority, one certificate and its key. Whoever has the key can run commands
    on every machine of the cluster: copy it as you would copy an SSH key.
    """
    secure = _secure()
    folder = secure.make_certificates(tls_dir or secure.certificates_folder())
    there = shlex.quote(str(folder.absolute().parent))
    click.echo(f"made {folder}")
    click.echo(f"  copy it to every machine   scp -rp {shlex.quote(str(folder))} HOST:{there}/")
    click.echo("  start the cluster          as `runq cluster commands` says")
    return 0


@command.command("commands")
@click.option("--head", default="HEAD", metavar="HOST", help="The head's name or address, as the machines see it.")
@click.option("--port", default=8786, show_default=True, help="The scheduler's port.")
@tls_option
def commands(head: str, port: int, tls_dir: Path | None) -> int:
    """Print the commands that start the scheduler, a worker and a night, with the certificates of this machine."""
    secure = _secure()
    folder = (tls_dir or secure.certificates_folder()).absolute()
    tls = [
        word
        for option, name in (("--tls-ca-file", secure.CA), ("--tls-cert", secure.CERT), ("--tls-key", secure.KEY))
        for word in (option, str(folder / name))
    ]
    scheduler = ["dask", "scheduler", "--protocol", "tls", "--port", str(port), "--no-dashboard", *tls]
    worker = ["dask", "worker", f"tls://{head}:{port}", "--name", "NAME", "--resources", "endpoint=1"]
    worker += ["--nthreads", "1", "--memory-limit", "0", "--no-dashboard", *tls]
    click.echo(f"on {head}:\n  {shlex.join(scheduler)}")
    click.echo(f"on every machine, with a NAME of its own:\n  {shlex.join(worker)}")
    click.echo(f"then:\n  runq night queue.yaml --cluster tls://{head}:{port}")
    return 0


def _secure() -> ModuleType:
    try:
        import cryptography  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"a cluster needs what is not installed: {error.name}", remedy="install it with pip install 'runq[cluster]'"
        ) from error
    from runq.fleet import secure

    return secure
