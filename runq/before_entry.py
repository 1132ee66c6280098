"""What is looked at before an entry begins, and before the night: power and disk. What is lacking costs the entry.

An entry that is refused is skipped with its reason, the next one has its turn, and a resume runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from runq import power
from runq.endpoint_ready import NotReadyError
from runq.power import Battery

if TYPE_CHECKING:
    from runq.night_context import NightContext
    from runq.planning import Work
    from runq.prepared import PreparedEntry
    from runq_journal.reader import JournalReader


def took_by_pack(reader: JournalReader) -> dict[str, float]:
    """What the largest good bundle of each pack took, in MB; the pack as written, empty without one."""
    return {row["pack"] or "": float(row["mb"]) for row in reader.view("pack_disk")}


def why_no_room(free_mb: float | None, min_free_disk_mb: float | None, took_mb: float) -> str:
    """Why an entry has too little room on the disk; empty when it has enough, or nobody can tell."""
    least_mb = min_free_disk_mb or 0.0
    if free_mb is None or free_mb >= least_mb + took_mb:
        return ""
    wants = [f"min_free_disk_mb asks for {least_mb:g} MB"] if min_free_disk_mb is not None else []
    wants += [f"an earlier bundle of this pack took {took_mb:.1f} MB"] if took_mb else []
    return f"only {free_mb:.1f} MB are free on the disk of the runs folder; {' and '.join(wants)}"


def why_no_power(found: Battery | None, require_ac: bool) -> str:
    """Why an entry has not the power it needs; empty when it has, or nobody can tell."""
    if not require_ac or found is None or not found.discharges:
        return ""
    return f"require_ac: the machine runs on battery, at {found.percent:.0f} %"


def before_entry(context: NightContext, prepared: PreparedEntry, found: Battery | None) -> None:
    """Look, and tell what is worth telling.

    Args:
        found: the battery as it is now.

    Raises:
        NotReadyError: the entry is refused.
    """
    spec = prepared.spec
    took_mb = context.disk.took_mb.get(spec.pack or "", 0.0)
    reason = why_no_power(found, spec.require_ac) or why_no_room(context.disk.free_mb(), spec.min_free_disk_mb, took_mb)
    if reason:
        raise NotReadyError(reason, status="skipped")
    message, remedy = power.worth_telling(found)
    if message:
        context.recorder.warn(message, remedy, entry=prepared.entry.id)


def after_entry(context: NightContext, prepared: PreparedEntry, before: Battery | None) -> Battery | None:
    """Tell that the charger went while the entry ran. Returns the battery as it is now."""
    now = context.battery()
    if now is not None and now.discharges and not (before is not None and before.discharges):
        message, remedy = power.worth_telling(now)
        context.recorder.warn(message, remedy, entry=prepared.entry.id)
    return now


def before_night(context: NightContext, works: Sequence[Work]) -> None:
    """Warn where the disk has less room than all the entries took in earlier nights together."""
    with context.recorder.journal.reader() as reader:
        context.disk.took_mb = took_by_pack(reader)
    need_mb = needed_mb([work.prepared.spec.pack for work in works if work.runs], context.disk.took_mb)
    least_mb = max((work.prepared.spec.min_free_disk_mb or 0.0 for work in works if work.runs), default=0.0)
    free_mb = context.disk.free_mb()
    if free_mb is not None and need_mb + least_mb > 0 and free_mb < need_mb + least_mb:
        wants = [f"going by earlier ones this night takes {need_mb:.1f} MB"] if need_mb else []
        wants += [f"min_free_disk_mb asks for {least_mb:g} MB"] if least_mb else []
        context.recorder.warn(
            f"{free_mb:.1f} MB are free on the disk of {context.runs}; {' and '.join(wants)}",
            "free space there, for example with `runq prune`; an entry without room is skipped, and a resume runs it",
        )


def needed_mb(packs: Sequence[str | None], took_mb: Mapping[str, float]) -> float:
    """What entries on these packs take together, going by earlier ones; a pack without history counts nothing."""
    return sum(took_mb.get(pack or "", 0.0) for pack in packs)
