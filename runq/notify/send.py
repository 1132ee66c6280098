"""`python -m runq.notify.send`: sends one notification, told by standard input, in a process of its own.

Apprise and its hundred services stay out of the runner's memory that way, one that hangs can be killed, and the URLs
are on no command line. Reads ``{"urls": [...], "title": ..., "body": ..., "urgency": ...}``; prints the kinds that
failed as a JSON list. Apprise: about 100 services behind one URL each, kept up since 2017.
"""

from __future__ import annotations

import json
import logging
import sys

from runq.notify.urls import kind_of


def main() -> int:
    """Send to each URL. Returns 0."""
    import apprise

    logging.disable(logging.CRITICAL)  # its words quote URLs
    given = json.load(sys.stdin)
    failed = []
    for url in given["urls"]:
        service = apprise.Apprise()
        sent = service.add(url) and service.notify(
            title=given["title"],
            body=given["body"],
            notify_type=given["urgency"],
            body_format=apprise.NotifyFormat.TEXT,
        )
        if not sent:
            failed.append(kind_of(url))
    sys.stdout.write(json.dumps(failed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
