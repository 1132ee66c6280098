"""One long night as a journal: so many entries with everything that happens in one, and readings of its memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from runq_journal import Journal, Sample
from runq_schemas import events as ev

NIGHT = "2026-01-01_220000"
START = datetime(2026, 1, 1, 22, tzinfo=UTC)

FAILS_EVERY, HANGS_EVERY, DIRTY_EVERY = 10, 25, 20
"""Each tenth entry fails, each 25th times out, each 20th begins on a baseline that is not proven."""

PACKS = 4
"""The entries take turns on so many packs, so that scores can be compared."""

BASE_MB, MODEL_MB = 4000.0, 8000.0

LOG_TAIL = tuple(f"line {number} of a log that says what went wrong, at some length" for number in range(20))


@attrs.define
class Teller:
    """Writes events at a time that the tale itself moves on."""

    journal: Journal = attrs.field(init=False)
    seconds: float = 0.0

    def open(self, path: Path) -> Journal:
        """The journal, on the tale's own clock."""
        self.journal = Journal.open(path, now=self.now, monotonic=lambda: self.seconds)
        return self.journal

    def now(self) -> datetime:
        """The tale's time."""
        return START + timedelta(seconds=self.seconds)

    def say(self, event: ev.Event, entry: int | None = None, step: str | None = None) -> None:
        """An event, now."""
        self.journal.append(event, night=NIGHT, entry=entry, step=step, attempt=1 if step else None)


def write(path: Path, *, entries: int, samples: int) -> Path:
    """A night of so many entries and so many readings, one a second; a few less where they do not come out even.

    Returns:
        The file.
    """
    step_s = samples / sum(2 if _status(entry) == "ok" else 1 for entry in range(entries))
    tale = Teller()
    with tale.open(path) as journal:
        journal._conn.execute("PRAGMA synchronous = OFF")  # made to be read, not kept
        tale.say(_plan(entries, path.parent))
        for entry in range(entries):
            _entry(tale, entry, step_s, path.parent)
        tale.say(ev.NightFinished(total=entries, complete=0))
    return path


def _entry(tale: Teller, entry: int, step_s: float, runs: Path) -> None:
    dirty = entry % DIRTY_EVERY == DIRTY_EVERY - 1
    base = BASE_MB + 10 * (entry % 7) + (600 if dirty else 0)
    tale.say(ev.EntryStarted(), entry)
    tale.say(ev.ResetStarted(backend="lms", before_step="eval"), entry)
    tale.seconds += 2
    verdict: Any = "unverified" if dirty else "verified"
    tale.say(
        ev.ResetFinished(backend="lms", verdict=verdict, loaded_before=("m",), loaded_after=(), seconds=2.0), entry
    )
    tale.say(ev.SettleStarted(reference_mb={"system": BASE_MB}), entry)
    tale.seconds += 6
    settled = ev.SettledProbe(
        probe="system",
        status="dirty" if dirty else "settled",
        proven=not dirty,
        waited_s=6.0,
        start_mb=base + MODEL_MB,
        final_mb=base,
        polls=4,
        reference_mb=BASE_MB,
        still_loaded=None if dirty else (),
    )
    tale.say(
        ev.SettleFinished(
            status=settled.status, proven=not dirty, waited_s=6.0, baseline_mb={"system": base}, probes=(settled,)
        ),
        entry,
    )
    for step in ("eval", "judge"):
        status = _status(entry) if step == "eval" else "ok"
        _step(tale, entry, step, status, step_s, base, proven=not dirty, runs=runs)
        if status != "ok":
            tale.say(ev.StepSkipped(reason=f"eval: it ended {status}"), entry, "judge")
            break
    tale.say(ev.EntryFinished(status="complete" if _status(entry) == "ok" else "incomplete"), entry)


def _status(entry: int) -> Any:
    if entry % HANGS_EVERY == HANGS_EVERY - 1:
        return "timeout"
    return "failed" if entry % FAILS_EVERY == FAILS_EVERY - 1 else "ok"


def _step(
    tale: Teller, entry: int, step: str, status: Any, seconds: float, base: float, *, proven: bool, runs: Path
) -> None:
    tale.say(
        ev.StepStarted(
            argv=("python", "-m", "touchstone", step),
            log=str(runs / f"{NIGHT}_queue" / "logs" / f"e{entry}-{step}-1.log"),
            bundle=str(runs / f"{NIGHT}_e{entry}_model-{entry}_eval_office"),
            timeout_s=14400.0,
            stall_timeout_s=None,
            identity=f"{step}-{entry}",
            identity_parts={},
        ),
        entry,
        step,
    )
    tale.say(ev.StepSpawned(pid=4242, created_at=1.0, boot_id="boot"), entry, step)
    peak = base + MODEL_MB + 40 * (entry % 11)
    tale.journal.add_samples(_readings(tale, entry, step, int(seconds), base, peak))
    tale.seconds += seconds
    score = 0.4 + 0.5 * (entry * 37 % 101) / 101
    tale.say(
        ev.StepFinished(
            status=status,
            exit_code=0 if status == "ok" else 1,
            seconds=seconds,
            reason="" if status == "ok" else f"it ended with {status}, for a reason told in a sentence",
            peak_mb={"system": peak},
            model_delta_mb={"system": peak - base},
            baseline_proven=proven,
            facts={"answers": 120, "answers_failed": 0, "tokens_per_second": 20.0 + entry % 13},
            metrics=()
            if status != "ok"
            else (ev.Metric(name=f"{step}/score", value=score, stderr=0.02, n=120), ev.Metric(name="f1", value=score)),
            log_tail=() if status == "ok" else LOG_TAIL,
        ),
        entry,
        step,
    )


def _readings(tale: Teller, entry: int, step: str, count: int, base: float, peak: float) -> Iterator[Sample]:
    """A model that loads within a minute and then moves a little; one reading is the peak."""
    begin = tale.now()
    for second in range(count):
        mb = base + (peak - base) * min(1.0, second / 60) * (0.95 + 0.04 * (second * 7919 % 97) / 97)
        at = begin + timedelta(seconds=second)
        yield Sample(
            night=NIGHT, at=at, entry=entry, step=step, probe="system", mb=peak if second == count // 2 else mb
        )


def _plan(entries: int, runs: Path) -> ev.NightStarted:
    steps = ("eval", "judge")
    settings = {
        "reset": {"name": "lms"},
        "probes": [{"name": "system"}],
        "harness": {"name": "touchstone"},
        "settle": {"timeout_s": 120.0, "plateau_polls": 3, "poll_interval_s": 2.0, "epsilon_mb": 200.0},
        "step_timeout_s": {"eval": 14400.0, "judge": 21600.0},
    }
    return ev.NightStarted(
        queue_path=str(runs.parent / "queue.yaml"),
        queue_sha256="ab" * 32,
        base_dir=str(runs.parent),
        runs_dir=str(runs),
        queue_dir=str(runs / f"{NIGHT}_queue"),
        started_local=START.isoformat(),
        entries=tuple(
            ev.PlannedEntry(
                id=entry,
                index=entry,
                model={"id": f"publisher/model-{entry}"},
                config="config.yaml",
                pack=f"packs/pack-{entry % PACKS}.yaml",
                judge_config="judge.yaml",
                judge_model="judge",
                steps=tuple(
                    ev.PlannedStep(name=step, identity=f"{step}-{entry}", run=True, why="new") for step in steps
                ),
                settings=settings,
            )
            for entry in range(entries)
        ),
        host=ev.Host(name="box", system="Linux", machine="x86_64", cpus=8, memory_mb=65536.0),
        boot_id="boot",
        pid=1,
        versions={"runq": "0"},
        plugins=(),
    )
