"""What `runq browse` says on its terminal: one line when it listens, and no more until something is wrong."""

from __future__ import annotations

import logging
import sys
import webbrowser


class Listening(logging.Filter):
    """Lets only warnings through, and turns uvicorn's word that it listens into ours.

    A filter, because uvicorn sets up its loggers after every hook of Datasette has run; and its own word, because only
    that knows the port when 0 was asked for.
    """

    def __init__(self, journal: str, *, open_browser: bool) -> None:
        super().__init__()
        self.journal = journal
        self.open_browser = open_browser

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is logged."""
        if record.levelno >= logging.WARNING:
            return True
        if str(record.msg).startswith("Uvicorn running on ") and isinstance(record.args, tuple):
            scheme, host, port = record.args
            url = f"{scheme}://{host}:{port}/"
            sys.stderr.write(f"{self.journal} is at {url} (read-only; Ctrl-C ends it)\n")
            sys.stderr.flush()
            if self.open_browser:
                webbrowser.open(url)
        return False


def quieten(journal: str, *, open_browser: bool) -> None:
    """Put the filter before uvicorn's loggers."""
    listening = Listening(journal, open_browser=open_browser)
    for name in ("uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).addFilter(listening)
