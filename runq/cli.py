"""The command line: declares the commands and loads each only when it is called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("runq.commands.init", "Write a queue file from what the servers of this machine offer."),
    "doctor": ("runq.commands.doctor", "Look over this machine before a night, and say what is missing."),
    "night": ("runq.commands.night", "Run a queue file through the night, or resume one."),
    "cluster": ("runq.commands.cluster", "Make the certificates of a cluster, or show how to start it."),
    "check": ("runq.commands.check", "Load and ask every model once, and prove that it goes again."),
    "plan": ("runq.commands.plan", "Show what a night would run, and why."),
    "status": ("runq.commands.status", "Show the latest night, also while it runs."),
    "watch": ("runq.commands.watch", "Watch the running night; its keys pause, stop and skip."),
    "pause": ("runq.commands.pause", "Let the running step finish and start nothing new."),
    "unpause": ("runq.commands.unpause", "Let a paused night go on."),
    "skip": ("runq.commands.skip", "Skip the rest of the entry that runs."),
    "stop": ("runq.commands.stop", "End the running night as Ctrl-C does; --resume goes on later."),
    "nights": ("runq.commands.nights", "List all nights."),
    "log": ("runq.commands.log", "Show the log of an entry's step; -f follows it."),
    "rerun": ("runq.commands.rerun", "Run one entry, or one step of it, again in the latest night."),
    "replay": ("runq.commands.replay", "Rebuild the summaries from the journal, or verify it."),
    "report": ("runq.commands.report", "Write the morning page of a night: one HTML file, or Markdown or CSV."),
    "compare": (
        "runq.commands.compare",
        "Compare two nights or models, and say what is beyond chance.",
    ),
    "export": ("runq.commands.export", "Write events, samples or metrics as CSV, JSON Lines or Parquet."),
    "notify": ("runq.commands.notify", "Show where notifications go, or try it with --test."),
    "salvage": ("runq.commands.salvage", "Copy what a damaged journal still vouches for into a new one."),
    "browse": ("runq.commands.browse", "Browse the journal in Datasette on this machine."),
    "plugins": ("runq.commands.plugins", "List reset backends, probes and harnesses."),
    "import": ("runq.commands.import_", "Take over results of touchstone and Inspect into the journal."),
    "prune": ("runq.commands.prune", "Delete bundles, logs and memory readings of old nights, after asking."),
    "schema": ("runq.commands.schema", "Print the JSON Schema of queue files, for an editor."),
    "completion": ("runq.commands.completion", "Print the completion script for bash, zsh or fish."),
}
"""Name: (module that holds ``command``, one line of help). The line stands here so that `--help` imports nothing."""

EPILOG = """
\b
A first night:
  runq init                 write queue.yaml from what your servers offer
  runq plan queue.yaml      what would run, every setting resolved
  runq check queue.yaml     load and ask every model once, before the first real night
  runq night queue.yaml     run it; Ctrl-C stops, --resume goes on
  runq status               how far it is, from any terminal; `runq watch` goes on looking
  runq report               the morning page: what failed and why, scores, memory, time
  runq browse               all nights in the browser

\b
Exit codes: 0 every entry complete, 1 at least one is not, 2 wrong queue file or usage,
3 another night holds the lock, 4 the journal can't be written or is damaged, 130 interrupted.
"""


class ReaderGoneError(Exception):
    """Whoever read our output has gone, as in `runq nights | head`."""


@contextmanager
def _noticing_gone_reader() -> Iterator[None]:
    # click ends the process with 1 where it meets a broken pipe itself; to us that is no failure.
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGoneError from error


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line, or show the help."""
        with _noticing_gone_reader():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _noticing_gone_reader():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of a user's night."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command for a mistyped one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"runq {version('runq')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error; also after a command.")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Evaluate local language models one by one through the night.

    For each entry of a queue file: reset the endpoint, wait until memory is really back, run the harness's steps,
    record every transition in an append-only journal. In the morning there is a summary you can trust.

    Without a command: the status of the latest night.
    """
    if ctx.invoked_subcommand is None:
        command = importlib.import_module(COMMANDS["status"][0]).command
        ctx.invoke(command)


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with the code the design promises; no traceback without ``--debug``."""
    sys.exit(run(args))


def run(args: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code."""
    words = sys.argv[1:] if args is None else args
    debug = "--debug" in words
    try:
        result: Any = cli.main(args=[w for w in words if w != "--debug"], prog_name="runq", standalone_mode=False)
        return int(result or 0)
    except ReaderGoneError:
        _silence_stdout()  # nothing is left to say, and nowhere to say it
        return 0
    except (Exception, KeyboardInterrupt) as error:
        with suppress(OSError):  # the terminal may be gone
            if debug:
                import traceback

                traceback.print_exception(error)
            return _told(error)
        return 1


def _told(error: BaseException) -> int:
    """Say what went wrong and what to do next. Returns the exit code."""
    from runq_schemas.errors import RunqError

    if isinstance(error, RunqError):
        _show(error)
        return error.exit_code
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    if isinstance(error, OSError):
        click.echo(f"error: {error}", err=True)
        click.echo("  check the path and its permissions; --debug shows the traceback", err=True)
        return 1
    from runq.text import clean_lines

    click.echo(f"error: unforeseen: {type(error).__name__}: {clean_lines(str(error))}", err=True)
    click.echo("  a fault of runq or of a plugin; please report it with what --debug shows", err=True)
    return 1


def _show(error: Any) -> None:
    from runq.text import clean_lines

    problems = getattr(error, "problems", (error,))
    for problem in problems:
        # What is wrong may quote a file or a server.
        where = clean_lines(f"{problem.where}: ") if problem.where else ""
        click.echo(f"error: {where}{clean_lines(problem.message)}", err=True)
        if problem.remedy:
            click.echo(f"  {clean_lines(problem.remedy)}", err=True)
    if len(problems) > 1:
        click.echo(f"{len(problems)} problems", err=True)


def _silence_stdout() -> None:
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())


if __name__ == "__main__":
    main()
