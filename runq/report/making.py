"""Writing a report: which form, and where it goes."""

from __future__ import annotations

from pathlib import Path

from runq.paths import not_the_journal, private_folder, queue_dir
from runq.status import status_data
from runq.summary import replace_file
from runq_schemas.errors import UsageError

PAGE_NAME = "report.html"


def write(journal: Path, *, night: str | None, form: str, output: Path | None) -> Path | str:
    """Make a report.

    Args:
        journal: the file.
        night: its id or folder; ``None`` for the latest.
        form: ``html``, ``md`` or ``csv``.
        output: where it goes; ``-`` is standard output, ``None`` the usual place.

    Returns:
        The file that was written, or the text itself where it is for standard output.

    Raises:
        UsageError: there is no such night, or the file cannot be written.
    """
    text, shown = _text(journal, night, form)
    if output is None and form == "html":
        folder = queue_dir(journal.parent, shown)
        private_folder(folder)
        output = folder / PAGE_NAME
    if output is None or str(output) == "-":
        return text
    not_the_journal(output, journal)
    try:
        replace_file(output, text)
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error.strerror or error}", remedy="give another file with -o FILE, or -o -"
        ) from error
    return output


def _text(journal: Path, night: str | None, form: str) -> tuple[str, str]:
    """The report and the night it is of."""
    from runq.report.table import to_csv, to_markdown

    if form == "html":
        from runq.report.gathered import gather
        from runq.report.page import to_html

        found = gather(journal, night)
        return to_html(found), found.data["night"]
    data = status_data(journal, night)
    return (to_markdown(data) if form == "md" else to_csv(data)), data["night"]
