"""What a queue asks of the machine before each entry: room on the disk, mains power."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from runq import paths
from runq.before_entry import needed_mb, took_by_pack, why_no_power
from runq.doctor.finding import Finding, Status
from runq.night_disk import MB
from runq.power import ReadsBattery, battery
from runq.prepared import PreparedQueue
from runq_journal.reserve import free_bytes
from runq_schemas.errors import RunqError

AREA = "queue"


def lacking_findings(
    queue: PreparedQueue,
    runs: Path,
    *,
    read_battery: ReadsBattery = battery,
    free: Callable[[Path], int] = free_bytes,
) -> Iterator[Finding]:
    """What a night on this queue would skip entries for.

    Args:
        runs: the runs folder, which need not exist yet.
        read_battery: the machine's battery now.
        free: the bytes that may still be written on the disk of a folder.
    """
    specs = [entry.spec for entry in queue.entries]
    if any(spec.require_ac for spec in specs):
        why = why_no_power(read_battery(), True)
        message = why or "require_ac: on mains power, as far as can be told"
        remedy = "plug the charger in; until then such entries are skipped" if why else ""
        yield Finding(area=AREA, name="require_ac", status="fail" if why else "ok", message=message, remedy=remedy)
    took_mb = _took(runs)
    need_mb = needed_mb([spec.pack for spec in specs], took_mb)
    least_mb = max((spec.min_free_disk_mb or 0.0 for spec in specs), default=0.0)
    if need_mb + least_mb > 0:
        place = next(folder for folder in (runs, *runs.parents) if folder.exists())
        yield _room(free(place) / MB, need_mb, least_mb)


def _room(free_mb: float, need_mb: float, least_mb: float) -> Finding:
    wants = [f"going by earlier nights one takes {need_mb:.1f} MB"] if need_mb else []
    wants += [f"min_free_disk_mb asks for {least_mb:g} MB"] if least_mb else []
    message = f"{free_mb:.0f} MB free; {' and '.join(wants)}"
    if free_mb >= need_mb + least_mb:
        return Finding(area=AREA, name="room", status="ok", message=message)
    remedy = "free space there (`runq prune` deletes what old nights left), or give another folder with --runs DIR"
    # Below the floor every entry that asks for it is skipped; below what all took together the last ones may be.
    status: Status = "fail" if free_mb < least_mb else "warn"
    return Finding(area=AREA, name="room", status=status, message=message, remedy=remedy)


def _took(runs: Path) -> Mapping[str, float]:
    from runq_journal.reader import JournalReader

    journal = runs / paths.JOURNAL_NAME
    try:
        if not paths.is_begun(journal):
            return {}
        with JournalReader.open(journal) as reader:
            return took_by_pack(reader)
    except (RunqError, OSError):  # said where the journal is looked at
        return {}
