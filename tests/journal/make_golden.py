"""Write golden-v1.db: two nights told event by event, with a clock that stands still unless told to move.

    python tests/journal/make_golden.py

The file in the repository was written by the first version of the journal and must be readable for ever. Write a
new one beside it when the schema changes; never overwrite an old one.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from runq_journal import Journal, Sample
from runq_schemas import events as ev

GOLDEN = Path(__file__).with_name("golden-v1.db")
GOLDEN_UUID = "6f2f4d0e-8a53-4c0c-9f0e-0d5a1f5c7b11"

COMPLETE = "2026-09-01_220000"
RESUMED = "2026-09-02_223000"


class Clock:
    """Time that moves only when told."""

    def __init__(self, start: datetime) -> None:
        self.start = start
        self.seconds = 0.0

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return 1000.0 + self.seconds

    def tick(self, seconds: float) -> None:
        self.seconds += seconds


class Scribe:
    """Writes what happens in one night."""

    def __init__(self, path: Path, night: str, clock: Clock) -> None:
        self.clock = clock
        self.night = night
        self.journal = Journal.open(path, now=clock.now, monotonic=clock.monotonic)

    def close(self) -> None:
        self.journal.close()

    def say(
        self, event: ev.Event, entry: int | None = None, step: str | None = None, attempt: int | None = None
    ) -> int:
        return self.journal.append(event, night=self.night, entry=entry, step=step, attempt=attempt).id

    def plan(self, entries: list[ev.PlannedEntry], *, resumed: bool = False, **fields: Any) -> int:
        cls = ev.NightResumed if resumed else ev.NightStarted
        return self.say(
            cls(
                queue_path="/home/nora/queue.yaml",
                queue_sha256="ab" * 32,
                base_dir="/home/nora",
                runs_dir="/home/nora/runs",
                queue_dir=f"/home/nora/runs/{self.night}_queue",
                started_local=self.clock.now().strftime("%Y-%m-%d %H:%M:%S"),
                entries=tuple(entries),
                host=ev.Host(name="box", system="Linux", machine="x86_64", cpus=8, memory_mb=65536.0),
                boot_id="boot-1",
                pid=4711,
                versions={"runq": "0.1.0"},
                plugins=(),
                **fields,
            )
        )

    def baseline(self, entry: int, mb: float, *, verdict: ev.Verdict = "verified", proven: bool = True) -> None:
        self.say(ev.ResetStarted(backend="lms", before_step="eval"), entry)
        self.clock.tick(1)
        self.say(
            ev.ResetFinished(backend="lms", verdict=verdict, loaded_before=("m",), loaded_after=(), seconds=1.0),
            entry,
        )
        self.say(ev.SettleStarted(reference_mb={"system": None}), entry)
        self.clock.tick(4)
        probe = ev.SettledProbe(
            probe="system",
            status="settled",
            proven=proven,
            waited_s=4.0,
            start_mb=mb + 50,
            final_mb=mb,
            polls=3,
            reference_mb=None,
            still_loaded=(),
        )
        self.say(
            ev.SettleFinished(
                status="settled", proven=proven, waited_s=4.0, baseline_mb={"system": mb}, probes=(probe,)
            ),
            entry,
        )

    def start(self, entry: int, step: str, attempt: int = 1, identity: str | None = None, **fields: Any) -> int:
        event_id = self.say(
            ev.StepStarted(
                argv=("python", "-m", "touchstone", step),
                log=f"/home/nora/runs/{self.night}_queue/logs/e{entry}-{step}-{attempt}.log",
                bundle=fields.pop("bundle", f"/home/nora/runs/{self.night}_e{entry}"),
                timeout_s=fields.pop("timeout_s", 14400.0),
                stall_timeout_s=fields.pop("stall_timeout_s", None),
                identity=identity or f"1:{step}-{entry}",
                identity_parts={},
            ),
            entry,
            step,
            attempt,
        )
        self.say(
            ev.StepSpawned(pid=5000 + event_id, created_at=1788300000.25, boot_id="boot-1"),
            entry,
            step,
            attempt,
        )
        return event_id

    def finish(
        self,
        entry: int,
        step: str,
        status: ev.StepStatus = "ok",
        attempt: int = 1,
        *,
        seconds: float,
        **fields: Any,
    ) -> int:
        self.clock.tick(seconds)
        if status == "ok":
            fields.setdefault("exit_code", 0)
        return self.say(ev.StepFinished(status=status, seconds=seconds, **fields), entry, step, attempt)


def planned(
    entry: int, index: int, model: str, steps: tuple[str, ...] = ("eval", "judge"), **why: str
) -> ev.PlannedEntry:
    """An entry of a plan; a step's identity is ``1:<step>-<entry>`` unless ``identity_<step>`` says otherwise."""
    return ev.PlannedEntry(
        id=entry,
        index=index,
        model={"id": model},
        config="config.yaml",
        pack="packs/buero.yaml",
        judge_config="judge.yaml",
        judge_model="judge-27b",
        steps=tuple(
            ev.PlannedStep(
                name=step,
                identity=why.get(f"identity_{step}", f"1:{step}-{entry}"),
                run=True,
                why="has not run",
            )
            for step in steps
        ),
        settings={"retries": 0},
    )


def complete_night(path: Path) -> None:
    """Two entries, eval and judge, all ok; the first baseline is not proven."""
    clock = Clock(datetime(2026, 9, 1, 20, 0, 0, tzinfo=UTC))
    scribe = Scribe(path, COMPLETE, clock)
    scribe.plan([planned(0, 0, "gemma-12b"), planned(1, 1, "qwen-27b")])
    scribe.say(ev.Warned(message="The machine runs on battery", remedy="Plug it in."))
    for entry, baseline, peak, seconds in ((0, 4000.0, 12500.0, 3600.04), (1, 4100.0, 21100.0, 5400.06)):
        scribe.say(ev.EntryStarted(), entry)
        scribe.baseline(entry, baseline, verdict="verified" if entry else "unverified", proven=bool(entry))
        scribe.start(entry, "eval")
        scribe.journal.add_samples(
            [Sample(night=COMPLETE, at=clock.now(), entry=entry, step="eval", probe="system", mb=peak)]
        )
        scribe.finish(
            entry,
            "eval",
            seconds=seconds,
            peak_mb={"system": peak},
            model_delta_mb={"system": peak - baseline},
            baseline_proven=bool(entry),
            facts={"answers": 40, "answers_failed": 3 * entry},
        )
        scribe.start(entry, "judge", timeout_s=21600.0)
        scribe.finish(entry, "judge", seconds=1800.0, peak_mb={"system": 9000.0})
        scribe.say(ev.EntryFinished(status="complete"), entry)
    scribe.say(ev.NightFinished(total=2, complete=2))
    scribe.close()


def resumed_night(path: Path) -> None:
    """The runner dies in a judge; the resumed night has a failed, a timed-out and a refused entry, in another order."""
    clock = Clock(datetime(2026, 9, 2, 20, 30, 0, tzinfo=UTC))
    scribe = Scribe(path, RESUMED, clock)
    scribe.plan([planned(0, 0, "gemma-12b"), planned(1, 1, "broken-1b"), planned(2, 2, "slow-70b", ("eval",))])
    scribe.say(ev.EntryStarted(), 0)
    scribe.baseline(0, 4000.0)
    scribe.start(0, "eval")
    scribe.finish(
        0,
        "eval",
        seconds=3000.0,
        peak_mb={"system": 12000.0},
        model_delta_mb={"system": 8000.0},
        baseline_proven=True,
        facts={"answers": 40, "answers_failed": 0},
    )
    scribe.start(0, "judge", timeout_s=21600.0)
    scribe.close()  # the runner was killed here

    clock = Clock(datetime(2026, 9, 3, 5, 0, 0, tzinfo=UTC))
    scribe = Scribe(path, RESUMED, clock)
    scribe.finish(0, "judge", "interrupted", seconds=0.0, reason="The runner died while the step ran.")
    scribe.say(ev.NightInterrupted(reason="The runner died."))
    scribe.plan(
        [
            planned(0, 0, "gemma-12b"),
            planned(2, 1, "slow-70b", ("eval",)),
            planned(1, 2, "broken-1b"),
            planned(3, 3, "gone-3b"),
        ],
        resumed=True,
    )
    scribe.say(ev.EntryStarted(), 0)
    scribe.start(0, "judge", 2, timeout_s=21600.0)
    scribe.finish(0, "judge", attempt=2, seconds=1500.0)
    scribe.say(ev.EntryFinished(status="complete"), 0)
    scribe.say(ev.EntryStarted(), 2)
    scribe.baseline(2, 4050.0)
    scribe.start(2, "eval")
    scribe.finish(
        2,
        "eval",
        "timeout",
        seconds=14400.5,
        signal="SIGTERM",
        reason="The step ran longer than 14400 s and was ended.",
        peak_mb={"system": 50050.0},
        model_delta_mb={"system": 46000.0},
        baseline_proven=True,
    )
    scribe.say(ev.EntryFinished(status="incomplete"), 2)
    scribe.say(ev.EntryStarted(), 1)
    scribe.baseline(1, 4060.0)
    scribe.start(1, "eval")
    scribe.finish(
        1,
        "eval",
        "failed",
        seconds=12.34,
        exit_code=1,
        reason="The process exited with 1.",
        log_tail=("Traceback (most recent call last):", "ConnectionRefusedError"),
    )
    scribe.say(ev.StepSkipped(reason="eval is not ok"), 1, "judge")
    scribe.say(ev.EntryFinished(status="failed"), 1)
    scribe.say(ev.EntryStarted(), 3)
    scribe.say(ev.EntryFinished(status="failed", reason="The pack packs/buero.yaml cannot be read."), 3)
    scribe.say(ev.NightFinished(total=4, complete=1))
    scribe.close()


def make(path: Path) -> None:
    """Write both nights into a new journal at ``path``."""
    complete_night(path)
    resumed_night(path)
    # What a journal makes up when it is new would differ with every run of this script.
    conn = sqlite3.connect(path)
    with conn:
        conn.execute("UPDATE meta SET value = ? WHERE key = 'uuid'", (GOLDEN_UUID,))
        conn.execute("UPDATE _sqlite_migrations SET applied_at = '2026-09-01 20:00:00.000000+00:00'")
    conn.close()


if __name__ == "__main__":
    if GOLDEN.exists():
        raise SystemExit(f"{GOLDEN} exists; a golden journal is never written again")
    make(GOLDEN)
