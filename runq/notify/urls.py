"""Where notifications go: Apprise URLs from the environment or a file. They hold passwords and tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from runq_schemas.errors import UsageError

VARIABLE = "RUNQ_NOTIFY"
FILE_VARIABLE = "RUNQ_NOTIFY_FILE"
FILE_NAME = "notify.txt"


def default_file() -> Path:
    """The file that is read without any setting."""
    from platformdirs import user_config_path

    return user_config_path("runq") / FILE_NAME


def urls_of(environ: Mapping[str, str], default: Path | None = None) -> tuple[str, ...]:
    """The URLs: those in ``RUNQ_NOTIFY``, between blanks; else the lines of the file ``RUNQ_NOTIFY_FILE`` or of the
    default one. A line that begins with ``#`` is a comment. ``RUNQ_NOTIFY`` set to nothing switches all off.

    Raises:
        UsageError: the file that was named cannot be read.
    """
    if VARIABLE in environ:
        return tuple(environ[VARIABLE].split())
    named = environ.get(FILE_VARIABLE)
    path = Path(named).expanduser() if named else (default or default_file())
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        if named:
            raise UsageError(f"{path} does not exist", remedy=f"correct {FILE_VARIABLE}, or unset it") from error
        return ()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="make it yours to read") from error
    return tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))


def kind_of(url: str) -> str:
    """What a URL's service is, which may be shown: the word before ``://``."""
    found = re.match(r"[A-Za-z0-9.+-]+(?=://)", url)
    return found[0] if found else "a text that is no URL"
