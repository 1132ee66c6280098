"""The journal in Datasette, which takes this process's place: importing it beside runq would cost its memory twice.

Datasette asks this module what the journal's package cannot know (`runq_journal.datasette.starter`): `states`, `resume`
and `clean`.
"""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runq_schemas.errors import UsageError

if TYPE_CHECKING:
    from runq_journal.reader import JournalReader

HOST = "127.0.0.1"

SETTINGS = {
    "allow_download": "off",
    "default_cache_ttl": "0",  # a page that is loaded again shows what a running night has written since
    "max_returned_rows": "5000",  # as many as a chart draws
    "suggest_facets": "off",  # on views they cost a query for each column; the useful ones are set
    "sql_time_limit_ms": "10000",  # a view over years of nights takes longer than Datasette's one second
    "facet_time_limit_ms": "2000",
}


def datasette_argv(journal: Path, *, port: int, open_browser: bool = False) -> list[str]:
    """Datasette's command line: the journal by its plain path (``-i`` would ignore the WAL of a running night).

    Only where the folder cannot be written it is ``-i``: nobody writes there, and SQLite could not make the ``-shm``
    file that reading any other way takes.
    """
    from runq_journal.datasette import metadata_path, plugins_path, static_path, templates_path

    return [
        sys.executable,
        "-m",
        "datasette",
        "serve",
        *([] if os.access(journal.parent, os.W_OK) else ["-i"]),
        str(journal),
        "--host",
        HOST,
        "--port",
        str(port),
        "--metadata",
        str(metadata_path()),
        "--plugins-dir",
        str(plugins_path()),
        "--template-dir",
        str(templates_path()),
        "--static",
        f"runq:{static_path()}",
        *(word for name, value in SETTINGS.items() for word in ("--setting", name, value)),
        *(["--open"] if open_browser else []),
    ]


def serve(argv: Sequence[str]) -> int:
    """Become Datasette, so that every signal reaches it and nothing of runq can outlive it or be outlived.

    Returns only on Windows, whose `exec` would give the prompt back while the server runs: there the exit code.

    Raises:
        UsageError: another program listens on the port.
    """
    from runq_journal.datasette.starter import NOTE, OPENED

    _refuse_taken(int(argv[argv.index("--port") + 1]))
    # Datasette's own --open shows the page of the database, not the first one, and before anything listens.
    words = [word for word in argv if word != "--open"]
    words += ["--version-note", f"{NOTE}{__name__}{OPENED if '--open' in argv else ''}"]
    if sys.platform == "win32":
        return subprocess.run(words, check=False).returncode
    return os.execv(words[0], words)  # noqa: S606 - no shell is the point


def states(journal: Path, reader: JournalReader, recorded: Mapping[str, str]) -> dict[str, str]:
    """The state of each night, with ``died`` for one that is recorded as running and has no runner."""
    from runq.liveness import runner_of, state_of

    runner = runner_of(journal, reader)
    return {night: state_of(night, state, runner) for night, state in recorded.items()}


def resume(plan: Mapping[str, Any], night: str, journal: Path) -> str:
    """The command that goes on with a night."""
    from runq.resume_command import resume_command

    return resume_command(plan, night, journal.parent)


def clean(text: str) -> str:
    """The text of a log as it stood on a terminal in the end."""
    from runq.logs import last_state

    return "\n".join(last_state(line) for line in text.split("\n"))


def _refuse_taken(port: int) -> None:
    with socket.socket() as sock:
        if sys.platform != "win32":  # there it would allow a port that is in use
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, port))
        except OSError as exc:
            if exc.errno == errno.EADDRINUSE:
                raise UsageError(
                    f"another program listens on {HOST}:{port}, perhaps another `runq browse`",
                    remedy="end it, or take a free port with `runq browse --port 0`",
                ) from exc
            raise UsageError(
                f"nothing can listen on {HOST}:{port}: {exc}", remedy="take a free port with `runq browse --port 0`"
            ) from exc
