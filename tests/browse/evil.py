"""A journal in which whatever a model, a file or a program can name has a hostile name."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from runq_journal import Journal, Sample
from runq_schemas import events as ev

EVIL = """<script>alert(1)</script>"'><img src=x onerror=alert(2)>&amp;{{ 7 * 7 }}"""


@pytest.fixture
def evil_runs(tmp_path: Path) -> Path:
    """A night and a check in which whatever a model, a file or a program can name has a hostile name."""
    plan: dict[str, Any] = {
        "queue_path": f"/q/{EVIL}.yaml",
        "queue_sha256": "ab" * 32,
        "base_dir": "/q",
        "runs_dir": "/q/runs",
        "queue_dir": f"/q/{EVIL}",
        "started_local": EVIL,
        "host": ev.Host(name=EVIL, system=EVIL, machine=EVIL, cpus=1, memory_mb=1.0),
        "boot_id": EVIL,
        "pid": 1,
        "versions": {EVIL: EVIL},
        "plugins": (),
    }
    steps = (ev.PlannedStep(name=EVIL, identity=EVIL, run=True, why=EVIL),)
    entry = ev.PlannedEntry(
        id=0,
        index=0,
        model={"id": EVIL},
        config=EVIL,
        pack=EVIL,
        judge_config=EVIL,
        judge_model=EVIL,
        steps=steps,
        settings={EVIL: EVIL},
    )
    probe = {
        "status": "settled",
        "proven": False,
        "waited_s": 1.0,
        "start_mb": 1.0,
        "final_mb": 1.0,
        "polls": 1,
        "reference_mb": None,
        "still_loaded": (EVIL,),
    }
    runs = tmp_path / "runs"
    with Journal.open(runs / "journal.db") as journal:
        for night in ("2026-10-01_220000", EVIL):
            journal.append(ev.NightStarted(entries=(entry,), **plan), night=night)
            journal.append(ev.Warned(message=EVIL, remedy=EVIL), night=night, entry=0, step=EVIL)
            settled = ev.SettledProbe(probe=EVIL, **probe)
            journal.append(
                ev.SettleFinished(
                    status="settled", proven=False, waited_s=1.0, baseline_mb={EVIL: 1.0}, probes=(settled,)
                ),
                night=night,
                entry=0,
            )
            started = ev.StepStarted(
                argv=(EVIL,),
                log=EVIL,
                bundle=EVIL,
                timeout_s=1.0,
                stall_timeout_s=None,
                identity=EVIL,
                identity_parts={EVIL: EVIL},
            )
            journal.append(started, night=night, entry=0, step=EVIL, attempt=1)
            now = journal.append(
                ev.StepFinished(status="failed", seconds=1.0, reason=EVIL, log_tail=(EVIL, EVIL), peak_mb={EVIL: 2.0}),
                night=night,
                entry=0,
                step=EVIL,
                attempt=1,
            ).at
            reading = {"night": night, "entry": 0, "step": EVIL, "probe": EVIL}
            moment = datetime.fromisoformat(now)
            journal.add_samples([Sample(at=moment, mb=float(mb), **reading) for mb in (1, 2)])
        check = ev.CheckedModel(
            model=EVIL,
            loaded=False,
            status=EVIL,
            content_chars=0,
            ram_before_mb=None,
            ram_after_mb=None,
            ram_delta_mb=None,
            ram_back_mb=None,
            baseline_proven=False,
            role=EVIL,
            endpoint=EVIL,
            answered_by=EVIL,
            loaded_models=(EVIL,),
            context_length=None,
            seconds=None,
            reset_verdict="failed",
            evict_verdict="failed",
            memory_back=False,
            verdict="fail",
            problem=EVIL,
            remedy=EVIL,
        )
        journal.append(check, night=f"{EVIL}_check", entry=0)
    return runs
