"""`runq schema`."""

from __future__ import annotations

import click


@click.command("schema")
def command() -> int:
    """Print the JSON Schema of queue files.

    An editor with a YAML language server completes and checks a queue file that begins with
    `# yaml-language-server: $schema=PATH`.
    """
    from runq.text import json_text
    from runq_schemas.json_schema import queue_json_schema

    click.echo(json_text(queue_json_schema()))
    return 0
