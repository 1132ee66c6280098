"""Names of files and folders: the runs folder, nights, bundles, logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from runq_schemas.errors import UsageError

JOURNAL_NAME = "journal.db"

_NOT_SLUG = re.compile(r"[^A-Za-z0-9._-]+")  # touchstone's rule

_CHECK = "_check"

MAX_SLUG_CHARS = 80
"""Two slugs and the rest of a bundle's name stay below the 255 bytes that file systems allow."""


def slug(text: str) -> str:
    """touchstone's slug: every run of other characters becomes ``-``. Never empty, never ``.`` or ``..``."""
    made = _NOT_SLUG.sub("-", text)[:MAX_SLUG_CHARS]
    return made if made.strip(".") else "-"


def pack_id(pack: Path | None) -> str:
    """The pack's ``id`` field, else its file stem; ``nopack`` for an entry without a pack."""
    if pack is None:
        return "nopack"
    try:
        from strictyaml.ruamel import YAML

        # The bundled reader: a pack is touchstone's file and may hold anchors, which a queue file may not.
        data = YAML(typ="safe", pure=True).load(pack.read_text(encoding="utf-8"))
    except Exception:  # an unreadable pack is the entry's failure when it runs, not a reason to have no name
        return slug(pack.stem)
    named = data.get("id") if isinstance(data, dict) else None
    return slug(str(named)) if named not in (None, "") else slug(pack.stem)


def runs_dir(option: Path | None, *, environ: Mapping[str, str], beside: Path | None) -> Path:
    """The runs folder for a command: ``--runs``, ``$RUNQ_RUNS``, ``runs`` beside the queue file, ``./runs``.

    Raises:
        UsageError: no queue file says where, and none of the places has a journal.
    """
    if option is not None:
        return option.absolute()
    if environ.get("RUNQ_RUNS"):
        return Path(environ["RUNQ_RUNS"]).absolute()
    if beside is not None:
        return beside / "runs"
    here = Path("runs").absolute()
    if is_begun(here / JOURNAL_NAME):
        return here
    raise UsageError(
        f"no journal found: looked for --runs, $RUNQ_RUNS and {here / JOURNAL_NAME}",
        remedy="give the folder with --runs DIR, or start a night with `runq night QUEUE`",
    )


def is_begun(journal: Path) -> bool:
    """Whether there is a journal; a file with nothing in it is what a runner leaves that dies while it makes one.

    A file that is no journal, or cannot be read, counts as one: whoever opens it says what is wrong with it.
    """
    if not journal.exists() or journal.stat().st_size == 0:
        return False
    from runq_journal.connection import is_journal

    try:
        return is_journal(journal)
    except Exception:  # as above
        return True


def shared_token(journal: Path) -> Path:
    """What a cluster's machines read to prove that they see the same runs folder; there while a head is at work."""
    return journal.with_name(journal.name + ".shared")


def existing_journal(runs: Path) -> Path:
    """The journal of a runs folder.

    Raises:
        UsageError: the folder has none.
    """
    journal = runs / JOURNAL_NAME
    if not is_begun(journal):
        raise UsageError(
            f"{runs} has no {JOURNAL_NAME}",
            remedy="give the folder with --runs DIR, or start a night with `runq night QUEUE`",
        )
    return journal


def new_night_id(now: datetime, runs: Path, taken: frozenset[str]) -> str:
    """The night's id: its local start, with ``-2``, ``-3`` … behind it if that is taken."""
    first = now.strftime("%Y-%m-%d_%H%M%S")
    number = 1
    while True:
        night = first if number == 1 else f"{first}-{number}"
        # Any folder of that name counts, not the journal alone: a bundle must never meet an older one.
        if night not in taken and not any(runs.glob(f"{night}_*")):
            return night
        number += 1


def check_id(night: str) -> str:
    """The id of a check that starts when a night of this id would."""
    return f"{night}{_CHECK}"


def queue_dir(runs: Path, night: str) -> Path:
    """Where a night's summaries and logs are; a check's are in the folder of its id."""
    return runs / (night if night.endswith(_CHECK) else f"{night}_queue")


def bundle_dir(runs: Path, night: str, entry: int, model_id: str, pack: str, *, attempt: int) -> Path:
    """The folder an attempt of the first step writes into; no two attempts share one."""
    again = f"_a{attempt}" if attempt > 1 else ""
    return runs / f"{night}_e{entry}_{slug(model_id)}_eval_{slug(pack)}{again}"


def log_path(queue: Path, entry: int, step: str, attempt: int) -> Path:
    """The log of one attempt."""
    return queue / "logs" / f"e{entry}-{slug(step)}-{attempt}.log"


def private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, each for its user alone, whatever the umask.

    Raises:
        OSError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def shown(path: str | Path, base: Path) -> str:
    """A path for people: relative to ``base`` where it lies inside."""
    try:
        return str(Path(path).relative_to(base))
    except ValueError:
        return str(path)


def not_the_journal(path: Path, journal: Path) -> None:
    """Refuse an output file in the journal's own place, or in that of a file beside it, such as its WAL.

    Raises:
        UsageError: it is there.
    """
    if path.parent.absolute().resolve() == journal.parent.resolve() and path.name.startswith(journal.name):
        raise UsageError(f"{path} is the journal's own", remedy="give another file with -o")
