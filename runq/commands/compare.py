"""`runq compare`."""

from __future__ import annotations

from pathlib import Path

import click

from runq import completion
from runq.commands.arguments import journal_of, json_option, runs_option


@click.command("compare")
@click.argument("a", required=False, shell_complete=completion.nights)
@click.argument("b", required=False, shell_complete=completion.nights)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="The chance of a single false alarm among all scores.",
)
@click.option(
    "--lower-is-better",
    "lower",
    multiple=True,
    metavar="SCORE",
    help="A score of which less is better, such as an error rate. May be given several times.",
)
@click.option("--fail-on-regression", is_flag=True, help="Exit with 1 when B is worse than A beyond chance.")
@runs_option
@json_option
def command(
    a: str | None,
    b: str | None,
    alpha: float,
    lower: tuple[str, ...],
    fail_on_regression: bool,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Compare two nights, or two models: scores, durations and memory side by side.

    A and B are nights (id or folder) or models (id; the latest result of each pack counts). Without B, the night A is
    compared with the one before it of the same queue; without both, the latest night is. Entries are compared that both
    have: of nights the same model with the same pack and configuration, of models the same pack.

    Whether a score's difference is beyond chance is told by the single answers where the harness keeps them (an exact
    sign test over the questions both answered: McNemar's test for right and wrong), else by the scores' standard
    errors, else by how many answers a score between 0 and 1 is over. All scores are judged together (Holm), so that
    many of them make no false alarm. A regression is a score that is worse beyond chance, or an entry that was complete
    and is not. Durations and memory are only shown.
    """
    from runq.comparing.comparison import compare
    from runq.comparing.sides import side_of, two_words
    from runq.discovery import Plugins
    from runq_journal.reader import JournalReader
    from runq_schemas.errors import UsageError

    plugins = Plugins()
    with JournalReader.open(journal_of(runs)) as reader:
        sides = [side_of(reader, word, plugins) for word in two_words(reader, a, b)]
    if sides[0].kind != sides[1].kind:
        raise UsageError(
            f"{sides[0].name} is a {sides[0].kind} and {sides[1].name} a {sides[1].kind}",
            remedy="compare two nights, or two models",
        )
    found = compare(*sides, alpha=alpha, lower=lower)
    if as_json:
        from runq.comparing.showing import to_data
        from runq.text import json_text

        click.echo(json_text(to_data(found)))
    else:
        from runq.comparing.showing import show

        show(found)
    return 1 if fail_on_regression and found.regressions else 0
