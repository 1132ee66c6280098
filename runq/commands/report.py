"""`runq report`."""

from __future__ import annotations

from pathlib import Path

import click

from runq.commands.arguments import journal_of, night_argument, runs_option


@click.command("report")
@night_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(("html", "md", "csv")),
    default="html",
    show_default=True,
    help="A whole page, or only its table in Markdown or CSV.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    help="The file to write; - is standard output, where md and csv go by themselves."
    "  [default: report.html in the night's folder]",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
@runs_option
def command(night: str | None, form: str, output: Path | None, open_browser: bool, runs: Path | None) -> int:
    """Write the morning page of a night: the latest, or NIGHT by id or folder. Works while it runs.

    One HTML file that needs nothing else, to read, print or send: what ran, what failed and why, scores, memory and
    time. With --format md or csv: its table alone.
    """
    from runq.report.making import write

    if form == "html":
        from runq.report.figures import missing

        if lack := missing():
            click.echo(f"the page is made {lack}", err=True)
    written = write(journal_of(runs), night=night, form=form, output=output)
    if isinstance(written, str):
        click.echo(written, nl=False)
        return 0
    click.echo(str(written))
    if open_browser:
        click.launch(written.absolute().as_uri())
    return 0
