"""`runq export`: what stands in the files, against what was written into the journal."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from runq_journal import Journal, JournalReader
from runq_journal.stored import Sample
from runq_journal.tables import TABLES
from runq_schemas import events as ev

A, B = "2026-10-01_220000", "2026-10-02_220000"
START = datetime(2026, 10, 1, 20, tzinfo=UTC)
HOSTILE = 'm,"x"\n=1+1\x1b[31m ü'
"""A model's name with what CSV, JSON and terminals take for something else."""

BEGUN = {
    A: ("2026-10-01T20:00:01.000000Z", START + timedelta(seconds=1)),
    B: ("2026-10-02T20:00:00.000000Z", START + timedelta(days=1)),
}


def plan(model: str, runs: Path, night: str) -> ev.NightStarted:
    entry = ev.PlannedEntry(
        id=0,
        index=0,
        model={"id": model},
        config="config.yaml",
        pack="packs/office.yaml",
        judge_config=None,
        judge_model=None,
        steps=(ev.PlannedStep(name="eval", identity="i", run=True, why="has not run"),),
        settings={},
    )
    return ev.NightStarted(
        queue_path="/queue.yaml",
        queue_sha256="ab" * 32,
        base_dir="/",
        runs_dir=str(runs),
        queue_dir=str(runs / f"{night}_queue"),
        started_local="2026-10-01T22:00:00+02:00",
        entries=(entry,),
        host=ev.Host(name="box", system="Linux", machine="x86_64", cpus=8, memory_mb=65536.0),
        boot_id="boot",
        pid=1,
        versions={},
        plugins=(),
    )


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two nights of one entry each, with scores; the first has three readings."""
    runs = tmp_path / "runs"
    clock = {"now": START}
    with Journal.open(runs / "journal.db", now=lambda: clock["now"], monotonic=lambda: 7.5) as journal:
        for night, model, scores in (
            (A, HOSTILE, (ev.Metric(name="acc", value=0.1 + 0.2, stderr=0.05, n=40), ev.Metric(name="f1", value=1.0))),
            (B, "gemma", (ev.Metric(name="acc", value=0.5),)),
        ):
            clock["now"] = BEGUN[night][1]
            journal.append(plan(model, runs, night), night=night)
            started = ev.StepStarted(
                argv=("x",),
                log="/log",
                bundle="/bundle",
                timeout_s=60.0,
                stall_timeout_s=None,
                identity="i",
                identity_parts={},
            )
            journal.append(started, night=night, entry=0, step="eval", attempt=1)
            if night == A:
                journal.add_samples(
                    Sample(
                        night=night,
                        at=START + timedelta(seconds=second, microseconds=5),
                        entry=0,
                        step="eval",
                        probe="system",
                        mb=1000.25 * second,
                    )
                    for second in (2, 3, 4)
                )
            journal.append(
                ev.StepFinished(status="ok", seconds=61.0, metrics=scores), night=night, entry=0, step="eval", attempt=1
            )
    return runs


def runq(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "runq", "export", *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60, **more)


def exported(runs: Path, *words: str) -> str:
    done = runq(*words, "--runs", str(runs))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_samples_as_csv(runs: Path) -> None:
    assert exported(runs, "samples", "--format", "csv") == (
        "id,night,at,entry,step,probe,mb\n"
        f"1,{A},2026-10-01T20:00:02.000005Z,0,eval,system,2000.5\n"
        f"2,{A},2026-10-01T20:00:03.000005Z,0,eval,system,3000.75\n"
        f"3,{A},2026-10-01T20:00:04.000005Z,0,eval,system,4001.0\n"
    )


def test_metrics_as_csv_hold_what_a_spreadsheet_would_not(runs: Path) -> None:
    first, second, third = csv.DictReader(io.StringIO(exported(runs, "metrics", "--format", "csv")))
    shared = {"night": A, "entry": "0", "step": "eval", "attempt": "1", "model_id": HOSTILE, "config": "config.yaml"}
    shared |= {"pack": "packs/office.yaml", "newest": "true", "imported": "false", "event": "3"}
    shared |= {"at": BEGUN[A][0]}
    assert first == {
        **shared, "position": "0", "name": "acc", "value": "0.30000000000000004", "stderr": "0.05", "n": "40",
    }  # fmt: skip
    assert second == {**shared, "position": "1", "name": "f1", "value": "1.0", "stderr": "", "n": ""}
    assert (third["night"], third["model_id"], third["value"], third["n"]) == (B, "gemma", "0.5", "")


def test_events_as_json_lines_are_the_journals_own(runs: Path) -> None:
    rows = [json.loads(line) for line in exported(runs, "events").splitlines()]
    with JournalReader.open(runs / "journal.db") as reader:
        stored = list(reader.events())
    assert [list(row) for row in rows] == [[column.name for column in TABLES["events"].columns]] * 6
    assert [row["data"] for row in rows] == [event.data for event in stored]
    assert rows[0]["data"]["entries"][0]["model"] == {"id": HOSTILE}
    assert [row["kind"] for row in rows] == ["night.started", "step.started", "step.finished"] * 2
    assert [(row["id"], row["night"], row["hash"]) for row in rows] == [(e.id, e.night, e.hash) for e in stored]
    assert rows[0] | {"data": 0, "hash": 0} == {
        "id": 1,
        "night": A,
        "at": BEGUN[A][0],
        "elapsed_s": 0.0,
        "kind": "night.started",
        "entry": None,
        "step": None,
        "attempt": None,
        "data": 0,
        "prev_hash": "sha256:" + "0" * 64,
        "hash": 0,
    }


def test_json_lines_obey_no_terminal(runs: Path) -> None:
    text = exported(runs, "metrics")
    assert "\x1b" not in text and text.count("\n") == 3
    first = json.loads(text.splitlines()[0])
    assert (first["model_id"], first["newest"], first["imported"], first["stderr"]) == (HOSTILE, True, False, 0.05)


def test_parquet_has_types_units_and_the_same_values(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    printed = exported(runs, "--format", "parquet", "-o", str(folder))
    files = [folder / f"{name}.parquet" for name in ("events", "samples", "metrics")]
    assert printed.splitlines() == [str(file) for file in files]
    events, samples, metrics = (pq.read_table(file) for file in files)
    assert samples.schema.field("mb").metadata[b"about"].endswith(b"in MB (2^20 bytes)")
    assert {f.name: str(f.type) for f in samples.schema} == {
        "id": "int64", "night": "string", "at": "timestamp[us, tz=UTC]", "entry": "int64", "step": "string",
        "probe": "string", "mb": "double",
    }  # fmt: skip
    assert samples["mb"].to_pylist() == [2000.5, 3000.75, 4001.0]
    assert samples["at"].to_pylist()[0] == START + timedelta(seconds=2, microseconds=5)
    assert metrics["value"].to_pylist() == [0.1 + 0.2, 1.0, 0.5]
    assert metrics["n"].to_pylist() == [40, None, None]
    assert metrics["newest"].to_pylist() == [True, True, True]
    assert metrics["model_id"].to_pylist() == [HOSTILE, HOSTILE, "gemma"]
    with JournalReader.open(runs / "journal.db") as reader:
        assert [json.loads(text) for text in events["data"].to_pylist()] == [e.data for e in reader.events()]
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)


def test_a_table_without_rows_still_says_what_it_would_hold(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "none.parquet"
    exported(runs, "samples", "-o", str(out), "--night", B)
    table = pq.read_table(out)
    assert table.num_rows == 0 and table.column_names == [column.name for column in TABLES["samples"].columns]
    assert exported(runs, "samples", "--format", "csv", "--night", B) == "id,night,at,entry,step,probe,mb\n"
    assert exported(runs, "samples", "--night", B) == ""


def test_only_the_nights_asked_for(runs: Path) -> None:
    def nights(*words: str) -> set[str]:
        return {json.loads(line)["night"] for line in exported(runs, "events", *words).splitlines()}

    assert nights("--night", A) == {A}
    assert nights("--night", f"runs/{B}_queue") == {B}
    assert nights("--night", A, "--night", B, "--night", A) == {A, B}
    assert nights() == {A, B}
    refused = runq("events", "--night", "2020-01-01_000000", "--runs", str(runs))
    assert refused.returncode == 2 and "there is no night '2020-01-01_000000'" in refused.stderr


@pytest.mark.parametrize(
    ("name", "begins"), [("x.csv", "id,night"), ("x.jsonl", '{"id": 1,'), ("x.ndjson", '{"id": 1,'), ("x", '{"id": 1,')]
)
def test_the_form_is_what_the_name_says(runs: Path, tmp_path: Path, name: str, begins: str) -> None:
    assert exported(runs, "events", "-o", str(tmp_path / name)) == f"{tmp_path / name}\n"
    assert (tmp_path / name).read_text().startswith(begins)


@pytest.mark.parametrize(
    ("words", "why", "remedy"),
    [
        (("events", "--format", "parquet"), "Parquet is no text to print", "-o FILE"),
        (("events", "metrics"), "several tables need a folder", "-o DIR"),
        ((), "several tables need a folder", "-o DIR"),
        (("events", "-o", "{runs}/journal.db"), "is the journal's own", "another file"),
        (("events", "-o", "{runs}/journal.db-wal"), "is the journal's own", "another file"),
        (("events", "-o", "{runs}"), "is a folder", "-o FILE"),
        (("events", "-o", "{runs}/journal.db/x"), "cannot be written", "another place"),
    ],
)
def test_what_cannot_be_is_refused_with_a_remedy(runs: Path, words: tuple[str, ...], why: str, remedy: str) -> None:
    before = (runs / "journal.db").read_bytes()
    refused = runq(*(word.format(runs=runs) for word in words), "--runs", str(runs))
    assert refused.returncode == 2
    assert why in refused.stderr and remedy in refused.stderr
    assert refused.stdout == "" and (runs / "journal.db").read_bytes() == before


def test_without_pyarrow_the_remedy_is_told_and_nothing_left_behind(runs: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules['pyarrow'] = None; from runq.cli import main; main(sys.argv[1:])"
    argv = [sys.executable, "-c", code, "export", "events", "-o", str(tmp_path / "e.parquet"), "--runs", str(runs)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "pip install 'runq[parquet]'" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_reader_that_goes_is_no_failure(runs: Path) -> None:
    argv = f"{sys.executable} -m runq export events --runs {runs} | head -c 10; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", argv], capture_output=True, text=True, check=True)
    assert done.stdout == '{"id": 1, 0\n' and done.stderr == ""


PEAK = """
import resource, sys
from runq.cli import run
code = run(sys.argv[1:])
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_memory_does_not_grow_with_the_rows(runs: Path, tmp_path: Path, form: str) -> None:
    """300,000 readings are over 100 MB as rows of Python; six groups of rows against one."""

    def peak_mb() -> int:
        argv = [sys.executable, "-c", PEAK, "export", "samples", "--runs", str(runs), "-o", str(tmp_path / f"s.{form}")]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        code, peak = done.stderr.splitlines()[-1].split()
        assert code == "0"
        return int(peak)

    def add(count: int) -> None:
        with sqlite3.connect(runs / "journal.db") as conn:
            conn.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                " INSERT INTO sample (night, at, entry, step, probe, mb)"
                " SELECT ?, strftime('%Y-%m-%dT%H:%M:%S.000000Z', 1790000000 + i, 'unixepoch'), 0, 'eval', 'system', i"
                " FROM n",
                (count, A),
            )
        conn.close()

    add(60_000)
    small = peak_mb()
    add(240_000)
    assert peak_mb() - small < 24
