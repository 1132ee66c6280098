"""`runq plugins`."""

from __future__ import annotations

import click

from runq.commands.arguments import json_option


@click.command("plugins")
@json_option
def command(as_json: bool) -> int:
    """List reset backends, probes and harnesses with their options, and who brings them.

    A plugin that fails to import is listed as broken with its error; it stops only a queue that uses it.
    """
    from runq.plugin_list import plugin_rows, plugin_text

    rows = plugin_rows()
    from runq.text import json_text

    click.echo(json_text(rows) if as_json else plugin_text(rows))
    return 0
