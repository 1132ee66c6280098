"""Where an attempt writes, so that nothing good is ever overwritten."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from runq import artifacts, paths
from runq.plugin import Step
from runq.prepared import PreparedEntry
from runq_schemas.errors import RunqError

if TYPE_CHECKING:
    from runq.night_context import NightContext


@attrs.frozen(kw_only=True)
class Done:
    """A step that is ok: what the step after it builds on."""

    identity: str
    bundle: Path
    outputs: tuple[str, ...]


def attempt_bundle(
    context: NightContext, prepared: PreparedEntry, step: Step, number: int, identity: str, before: Done | None
) -> Path:
    """Where an attempt writes: never where an attempt of other content, or one that is ok, wrote.

    A first step always gets a fresh folder. A later one begins in its predecessor's. An attempt with the same
    identity that was not ok is gone on with where it was, so that a judge that was cut short can use what it had.
    In every other case (an edited judge configuration, `runq rerun`) it begins in a copy of what the predecessor
    left: nothing good is overwritten, and no old judgement is taken for a new one.
    """
    entry = prepared.entry
    if before is None:
        fresh = paths.bundle_dir(
            context.runs,
            context.recorder.night,
            entry.id,
            entry.model.id,
            prepared.pack_id,
            attempt=number,
        )
        return fresh.with_name(fresh.name + context.mark)
    if number == 1:
        return before.bundle
    with context.recorder.journal.reader() as reader:
        tried = [
            (row["identity"], row["bundle"], row["status"])
            for row in reader.attempts_of(context.recorder.night, entry.id, step.name)
            if row["bundle"]
        ]
    copies = f"{before.bundle}_{step.name}_a"
    here = [row for row in tried if row[1] == str(before.bundle) or row[1].startswith(copies)]
    if not here:
        return before.bundle
    same = [(at, status) for was, at, status in here if was == identity]
    if same and same[-1][1] != "ok":
        return Path(same[-1][0])
    return _copy(before, Path(f"{copies}{number}"))


def _copy(before: Done, target: Path) -> Path:
    """A folder of its own with what the step before left.

    The copy gets its name when it is whole: a runner that dies meanwhile leaves only a `.part` folder that no attempt
    ever wrote in, and this very attempt, not yet journalled, begins it anew.
    """
    if target.exists():
        return target
    if len(before.outputs) >= artifacts.MAX_OUTPUTS:
        raise RunqError(f"{before.bundle} holds too many files to be copied for another attempt")
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    for name in before.outputs:
        (part / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(before.bundle / name, part / name)
    part.rename(target)
    return target
