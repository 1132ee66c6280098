"""The files that prove a step: a snapshot before, what changed after, and whether they are still intact."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import attrs

from runq.identity import file_digest

if TYPE_CHECKING:
    from runq_schemas.events import Artifact

MAX_OUTPUTS = 10_000
"""A bundle with more files than this is listed only so far; no harness known writes nearly as many."""

Stamp = tuple[int, int, int]


@attrs.frozen(kw_only=True)
class Proof:
    """The artifacts a step left, and which of the declared ones are missing or older than the step."""

    artifacts: tuple[Artifact, ...]
    missing: tuple[str, ...]
    stale: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why the artifacts do not prove the step; empty when they do."""
        if self.missing:
            return f"it left no {', '.join(self.missing)}"
        if self.stale:
            return f"it did not write {', '.join(self.stale)}: the file is older than the step"
        return ""


def stamps(bundle: Path, names: Sequence[str]) -> dict[str, Stamp | None]:
    """(inode, bytes, mtime in ns) of each artifact now, ``None`` where it is not there."""
    return {name: _stamp(bundle / name) for name in names}


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def prove(bundle: Path, before: Mapping[str, Stamp | None]) -> Proof:
    """What the bundle proves, compared with the stamps taken before the spawn."""
    from runq_schemas.events import Artifact

    artifacts: list[Artifact] = []
    missing: list[str] = []
    stale: list[str] = []
    for name, stamp in before.items():
        path = bundle / name
        now = _stamp(path)
        if now is None or not path.is_file():
            missing.append(name)
        elif now == stamp:
            stale.append(name)
        else:
            artifacts.append(Artifact(path=name, bytes=now[1], sha256=file_digest(path)))
    return Proof(artifacts=tuple(artifacts), missing=tuple(missing), stale=tuple(stale))


def outputs(bundle: Path) -> tuple[str, ...]:
    """The names of all files in the bundle, sorted, relative to it."""
    names: list[str] = []
    root = str(bundle)
    for folder, _, files in os.walk(root):
        inside = PurePath(os.path.relpath(folder, root)).as_posix() + "/" if folder != root else ""
        # os.path: a bundle may hold thousands of files, and each Path costs more than asking for the file itself.
        names += [inside + file for file in files if os.path.isfile(os.path.join(folder, file))]  # noqa: PTH113, PTH118
    return tuple(sorted(names)[:MAX_OUTPUTS])


def damage(bundle: str | None, artifacts: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with recorded artifacts now; empty when every one has its size and SHA-256."""
    if bundle is None:
        return "its bundle is not recorded"
    for artifact in artifacts:
        path = Path(bundle) / artifact["path"]
        try:
            if path.stat().st_size != artifact["bytes"] or file_digest(path) != artifact["sha256"]:
                return f"{artifact['path']} has changed since"
        except OSError:
            return f"{artifact['path']} is gone"
    return ""
