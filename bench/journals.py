"""Journals of any size, written in one go: what a year of nights leaves, in seconds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runq_journal.chain import GENESIS, canonical, event_hash
from runq_journal.journal import Journal

EVENTS_AN_ENTRY = 12
"""entry, reset, settle: two each; two steps of three; and the settings a real plan has."""

SETTINGS = {
    "reset": {"name": "lms"},
    "probes": [{"name": "system"}],
    "harness": {"name": "touchstone"},
    "settle": {"timeout_s": 120.0, "plateau_polls": 3, "poll_interval_s": 2.0, "epsilon_mb": 200.0},
    "step_timeout_s": {"eval": 14400.0, "judge": 21600.0},
    "retries": 0,
    "on_dirty": "warn",
}
PARTS = {"version": 1, "harness": "touchstone", "files": [["pack.yaml", "0" * 64]], "model": {"id": "m"}}


def write(path: Path, *, events: int, entries: int = 40) -> tuple[Path, int]:
    """A journal of so many events or a few less, in nights of so many complete entries.

    Returns:
        The file, and the number of nights.
    """
    with Journal.open(path) as journal:
        conn = journal._conn
        conn.execute("PRAGMA synchronous = OFF")  # made to be read, not kept
        nights = max(1, events // (entries * EVENTS_AN_ENTRY + 2))
        conn.execute("BEGIN")
        conn.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _rows(nights, entries))
        conn.execute("COMMIT")
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path, nights


def night_id(number: int) -> str:
    """The id of a night of these journals."""
    return f"2026-01-01_{number:06}"


def _rows(nights: int, entries: int) -> Iterator[tuple[Any, ...]]:
    number, before = 0, GENESIS
    for night in range(nights):
        at = f"2026-01-01T00:00:00.{night % 1_000_000:06}Z"
        for kind, entry, step, attempt, data in _night(night, entries):
            number += 1
            row = (number, night_id(night), at, 1.5, kind, entry, step, attempt, data, before)
            before = event_hash(canonical(row))
            yield (*row, before)


def _night(night: int, entries: int) -> Iterator[tuple[str, int | None, str | None, int | None, str]]:
    identities = {"eval": f"v1:sha256:{night:064}", "judge": f"v1:sha256:{night + 1:064}"}
    plan = {
        "queue_path": "/home/me/queue.yaml",
        "queue_sha256": "0" * 64,
        "base_dir": "/home/me",
        "runs_dir": "/home/me/runs",
        "queue_dir": f"/home/me/runs/{night_id(night)}_queue",
        "started_local": "2026-01-01T00:00:00+00:00",
        "entries": [
            {
                "id": entry,
                "index": entry,
                "model": {"id": f"publisher/model-{entry}"},
                "config": "config.yaml",
                "pack": "packs/office.yaml",
                "judge_config": "judge.yaml",
                "judge_model": None,
                "steps": [
                    {"name": step, "identity": identity, "run": True, "why": "has not run"}
                    for step, identity in identities.items()
                ],
                "settings": SETTINGS,
            }
            for entry in range(entries)
        ],
        "host": {"name": "h", "system": "Linux", "machine": "x86_64", "cpus": 2, "memory_mb": 24000.0},
        "boot_id": "b",
        "pid": 1,
        "versions": {"runq": "0"},
        "plugins": [],
        "only": None,
    }
    yield "night.started", None, None, None, _text(plan)
    for entry in range(entries):
        yield "entry.started", entry, None, None, "{}"
        yield "reset.started", entry, None, None, _text({"backend": "lms", "before_step": "eval"})
        reset = {"backend": "lms", "verdict": "verified", "loaded_before": [], "loaded_after": [], "seconds": 1.0}
        yield "reset.finished", entry, None, None, _text({**reset, "reason": "", "remedy": "", "details": {}})
        yield "settle.started", entry, None, None, _text({"reference_mb": {"system": 4000.0}})
        settled = {"status": "settled", "proven": True, "waited_s": 4.0, "baseline_mb": {"system": 4000.0}}
        yield "settle.finished", entry, None, None, _text({**settled, "probes": []})
        bundle = f"/home/me/runs/{night_id(night)}_e{entry}_publisher-model-{entry}_eval_office"
        for step, identity in identities.items():
            started = {
                "argv": ["python", "-m", "touchstone", step, "--config", "/home/me/config.yaml", "--run-dir", bundle],
                "log": f"/home/me/runs/{night_id(night)}_queue/logs/e{entry}-{step}-1.log",
                "bundle": bundle,
                "timeout_s": 14400.0,
                "stall_timeout_s": None,
                "identity": identity,
                "identity_parts": PARTS,
            }
            yield "step.started", entry, step, 1, _text(started)
            yield "step.spawned", entry, step, 1, _text({"pid": 4242, "created_at": 1.0, "boot_id": "b"})
            finished = {
                "status": "ok",
                "exit_code": 0,
                "signal": None,
                "seconds": 3600.0,
                "reason": "",
                "artifacts": [{"path": "responses.jsonl", "bytes": 100000, "sha256": "0" * 64}],
                "outputs": ["responses.jsonl", "bundle.json"],
                "peak_mb": {"system": 9000.0},
                "model_delta_mb": {"system": 5000.0},
                "baseline_proven": True,
                "facts": {"answers": 120, "answers_failed": 0},
                "log_tail": [],
                "ended_pids": [],
                "survivors": [],
            }
            yield "step.finished", entry, step, 1, _text(finished)
        yield "entry.finished", entry, None, None, _text({"status": "complete", "reason": ""})
    yield "night.finished", None, None, None, _text({"total": entries, "complete": entries})


def _text(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


def scratch() -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """A folder for journals, and what removes it."""
    folder = tempfile.TemporaryDirectory(prefix="runq-bench-")
    return Path(folder.name), folder
