"""`runq notify`."""

from __future__ import annotations

import os

import click


@click.command("notify")
@click.option("--test", is_flag=True, help="Send one notification everywhere, and say what came of it.")
def command(test: bool) -> int:
    """Show where notifications go, or try it with --test.

    A night sends one when it is finished, when an entry fails, and when two in a row do. Where to is told by Apprise
    URLs (https://github.com/caronc/apprise/wiki), in the environment variable RUNQ_NOTIFY with blanks between them, or
    a line each in the file that RUNQ_NOTIFY_FILE names, else in notify.txt of runq's configuration folder. They hold
    passwords: never give one on a command line. Only their kind is ever shown.
    """
    from runq.notify.messages import message
    from runq.notify.notifier import send_all
    from runq.notify.urls import FILE_VARIABLE, VARIABLE, default_file, kind_of, urls_of
    from runq_schemas.errors import UsageError

    urls = urls_of(os.environ)
    if not urls:
        raise UsageError(
            "there is no URL to notify",
            remedy=f"set {VARIABLE} or {FILE_VARIABLE}, or write a line like ntfy://host/topic to {default_file()}",
        )
    if not test:
        for url in urls:
            click.echo(kind_of(url))
        return 0
    failed = send_all(urls, message("runq: a test", "If you can read this, the night can reach you.", "info"))
    for kind in failed:
        click.echo(f"{kind}: not sent; check the URL and the service", err=True)
    click.echo(f"{len(urls) - len(failed)} of {len(urls)} sent")
    return 1 if failed else 0
