"""`runq init`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runq.commands.arguments import json_option, url_options
from runq_schemas.errors import RunqError, UsageError

if TYPE_CHECKING:
    from runq.init import Choose, Written
    from runq.init.offers import Candidate
    from runq.init.writing import Harness
    from runq.seeking import SoughtBy


@click.command("init")
@click.argument("queue", required=False, default="queue.yaml", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--models",
    multiple=True,
    metavar="IDS",
    help="Take these models, separated by commas; '*' stands for any characters. Asks nothing.",
)
@click.option("--yes", is_flag=True, help="Take every model that is new. Asks nothing.")
@click.option("--pack", metavar="PACK", help="What the models answer: the harness's pack, or names of tasks.")
@click.option(
    "--harness",
    metavar="NAME",
    help="The harness, such as touchstone; without it a small script that needs nothing else.",
)
@url_options
@click.option("--dry-run", is_flag=True, help="Print the file as it would be, and write nothing.")
@json_option
def command(
    queue: Path,
    models: tuple[str, ...],
    yes: bool,
    pack: str | None,
    harness: str | None,
    urls: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> int:
    """Write QUEUE (by default queue.yaml) from what the servers of this machine offer.

    Looks for LM Studio, Ollama, llama.cpp, llama-swap, vLLM and mlx_lm on their usual ports, lists their models with
    size and quantisation, and asks which to take. One entry per model, the smallest first, with the reset backend of
    its server and a timeout by its size. Nothing is started or loaded.

    Where QUEUE is there already, models that are new get entries, those that are gone are marked by a comment, and
    every other line stays as it is. A model whose entry you removed is not added again, unless you name it.
    """
    from runq.discovery import Plugins
    from runq.init import Init, data_of, text_of
    from runq.init.offers import candidates
    from runq.looking import Look
    from runq.seeking import seek

    plugins = Plugins()
    if harness is not None and harness != "starter":
        plugins.find("harness", harness)
    found = list(seek(plugins, Look(urls=urls)))
    offered = candidates(found)
    if not offered:
        raise _nothing(found)
    path = queue.absolute()
    init = Init(
        path=path,
        offered=offered,
        servers=tuple(server for one in found if one.sought for server in one.sought.servers),
        harness=_harness(harness, pack, path),
        choose=_chooser(models, offered, yes=yes),
        plugins=plugins,
        dry_run=dry_run,
    )
    written = init.run(every=bool(models) or not yes)
    if as_json:
        from runq.text import json_text

        click.echo(json_text(data_of(written)))
    elif dry_run:
        click.echo(written.text, nl=False)
    else:
        click.echo(text_of(written))
        _closing(written, queue)
    return 0


def _harness(name: str | None, pack: str | None, path: Path) -> Harness | None:
    """The harness asked for; ``None`` when neither it nor a pack is."""
    from runq.init.writing import STARTER, STARTER_PACK, Harness

    if name is None and pack is None:
        return None
    if name in (None, STARTER):
        return Harness(name=STARTER, pack=pack or STARTER_PACK)
    # Inspect's harness reads packs of touchstone's format, which the starter's questions have.
    return Harness(name=str(name), pack=pack or (STARTER_PACK if name == "inspect" else None))


def _chooser(models: tuple[str, ...], offered: Sequence[Candidate], *, yes: bool) -> Choose:
    from runq.init.offers import named

    if models:
        patterns = [word for text in models for word in text.split(",") if word]
        wanted = named(offered, patterns)
        return lambda new: [candidate for candidate in new if candidate in wanted]
    if yes:
        return lambda new: new
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to ask which models to take", remedy="add --yes for all, or --models IDS")
    return _asked


def _asked(new: Sequence[Candidate]) -> Sequence[Candidate]:
    from runq.init.offers import numbered
    from runq.logs import one_line

    if not new:
        return ()
    width = min(50, max(len(candidate.model.id) for candidate in new))
    for number, candidate in enumerate(new, 1):
        click.echo(f"{number:>3}  {one_line(candidate.model.id):<{width}}  {candidate.about()}", err=True)
    while True:
        answer = click.prompt("Which? As 1,3-4, or all, or none", default="all", err=True)
        try:
            return numbered(new, answer)
        except UsageError as error:
            click.echo(f"{error.message}; {error.remedy}", err=True)


def _nothing(found: Sequence[SoughtBy]) -> RunqError:
    """No model to write an entry for: the doctor knows what to do."""
    from runq.doctor.servers import server_findings

    findings = [f for f in server_findings(found) if f.status != "ok"]
    worst = next((f for f in findings if f.status == "fail"), findings[0] if findings else None)
    if worst is None:
        return RunqError("the servers that answer offer no model that chats", remedy="get one there, then try again")
    return RunqError(f"{worst.name}: {worst.message}", remedy=worst.remedy.replace("\n", "\n  "))


def _closing(written: Written, queue: Path) -> None:
    done = "written" if written.created else "brought up to date" if written.changed else "up to date already"
    click.echo(f"\n{queue} is {done}. Next:", err=True)
    for words, about in (
        ("doctor", "is everything there that it needs?"),
        ("plan", "what would run"),
        ("check", "load and ask every model once"),
        ("night", "run it"),
    ):
        click.echo(f"  runq {words} {queue}".ljust(30 + len(str(queue)) - 10) + about, err=True)
