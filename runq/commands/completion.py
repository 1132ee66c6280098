"""`runq completion`."""

from __future__ import annotations

import click

from runq.shell_scripts import SCRIPTS


@click.command("completion")
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
def command(shell: str) -> int:
    """Print the script that lets SHELL (bash, zsh or fish) complete commands, options, nights, entries and steps.

    To have it in every new shell, once:

    \b
    bash   echo 'eval "$(runq completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(runq completion zsh)"' >> ~/.zshrc
    fish   runq completion fish > ~/.config/fish/completions/runq.fish
    """
    click.echo(SCRIPTS[shell], nl=False)
    return 0
