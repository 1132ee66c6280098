"""What makes a step the same step: its identity, computed from content, never from place or time."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runq.plugin import Step
from runq.redact import HIDDEN
from runq_schemas.queue import ModelSpec

IDENTITY_VERSION = 1
"""Raised whenever the parts or their encoding change, so that old and new identities never compare equal."""


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes; of a folder, over the names and digests of all files in it (64 hex digits).

    Raises:
        OSError: the file cannot be read.
    """
    if path.is_dir():
        tree = hashlib.sha256()
        for inner in sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            # A name need not be UTF-8, and does not stop a night for that.
            tree.update(os.fsencode(inner.relative_to(path).as_posix()) + f"\0{file_digest(inner)}\n".encode())
        return tree.hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def step_parts(
    *,
    harness: str,
    step: Step,
    model: ModelSpec,
    predecessor: str | None,
    digest: Callable[[Path], str] = file_digest,
) -> dict[str, Any]:
    """What a step's result depends on, as JSON data.

    ``files`` pairs each file's name (for people; not part of the identity) with its digest. Timeouts, paths,
    environment and the reset are left out on purpose: changing them does not change what was asked and answered.

    Raises:
        OSError: a file the step reads cannot be read.
    """
    return {
        "version": IDENTITY_VERSION,
        "harness": harness,
        "step": step.name,
        "settings": dict(step.settings),
        "artifacts": list(step.artifacts),
        "model": model.canonical(),
        "files": [[path.name, digest(path)] for path in step.reads],
        "predecessor": predecessor,
    }


def identity_of(parts: Mapping[str, Any]) -> str:
    """The identity of a step: ``v1:sha256:`` and 64 hexadecimal digits over its canonical parts."""
    nameless = {**parts, "files": [digest for _, digest in parts["files"]]}
    text = json.dumps(nameless, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return f"v{parts['version']}:sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Why two identities differ, in words: ``judge.yaml changed``. Empty when the parts are equal.

    Args:
        before: the parts as the journal gives them back: secrets hidden, tuples as lists.
        now: the parts now.
    """
    if before.get("version") != now["version"]:
        return "runq computes identities differently now"
    changes: list[str] = []
    if before.get("harness") != now["harness"]:
        changes.append(f"the harness is now {now['harness']}")
    if not _alike(before.get("model"), now["model"]):
        changes.append("the model's settings changed")
    old_files = [list(pair) for pair in before.get("files", [])]
    new_files = [list(pair) for pair in now["files"]]
    if [digest for _, digest in old_files] != [digest for _, digest in new_files]:
        old_digests = {digest for _, digest in old_files}
        names = [name for name, digest in new_files if digest not in old_digests]
        changes.append(f"{', '.join(names) or 'the list of files it reads'} changed")
    if not _alike(before.get("settings"), now["settings"]) or not _alike(before.get("artifacts"), now["artifacts"]):
        changes.append("the harness's settings changed")
    if not changes and before.get("predecessor") != now["predecessor"]:
        changes.append("the step before it changed")
    return "; ".join(changes)


def _alike(before: Any, now: Any) -> bool:
    """Whether a value of the journal may have been this one: a hidden secret in it stands for any value."""
    if isinstance(before, str) and HIDDEN in before:
        pattern = ".*".join(re.escape(part) for part in before.split(HIDDEN))
        return re.fullmatch(pattern, str(now), re.DOTALL) is not None
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return before.keys() == now.keys() and all(_alike(before[key], now[key]) for key in before)
    if isinstance(before, list | tuple) and isinstance(now, list | tuple):
        return len(before) == len(now) and all(_alike(a, b) for a, b in zip(before, now, strict=True))
    return type(before) is type(now) and bool(before == now)
