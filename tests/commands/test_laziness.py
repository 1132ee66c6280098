"""What a command imports: whoever waits at the prompt waits for nothing that the command does not use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runq_journal import Journal
from runq_schemas import events as ev

RUN = """
import json, sys
from runq.cli import run
code = run(json.loads(sys.argv[1]))
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""

QUEUE = """
entries:
  - config: config.yaml
    pack: pack.yaml
    model: m
"""

PAGES = {"datasette", "sqlite_utils", "rich", "altair", "dask", "distributed", "cryptography", "starlette", "jinja2"}
YAML = {"strictyaml", "cattrs", "runq_schemas.parse", "runq_schemas.queue"}
NIGHT = {"runq.night", "runq.processes", "runq.settle", "runq_schemas.events", "psutil"}
"""What only a night or a journal's writer needs; `runq_schemas.events` makes fifty classes."""
HTTP = {"urllib3", "ssl", "http.client", "runq.http", "runq.looking", "runq.heartbeat"}
PLUGINS = {"importlib.metadata", "runq.discovery", "runq.plugin"}


def imported(*words: str) -> set[str]:
    # Without coverage, which would load modules of its own into what is looked at.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE"))}
    argv = [sys.executable, "-c", RUN, json.dumps(words)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=env)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A journal with one night, complete: its only entry had nothing to do."""
    folder = tmp_path / "runs"
    entry = ev.PlannedEntry(
        id=0,
        index=0,
        model={"id": "m"},
        config=None,
        pack=None,
        judge_config=None,
        judge_model=None,
        steps=(ev.PlannedStep(name="eval", identity="", run=False, why="is done"),),
        settings={},
    )
    with Journal.open(folder / "journal.db") as journal:
        plan = ev.NightStarted(
            queue_path="/q.yaml",
            queue_sha256="0" * 64,
            base_dir="/",
            runs_dir=str(folder),
            queue_dir=str(folder / "q"),
            started_local="2026-09-01T22:00:00+02:00",
            entries=(entry,),
            host=ev.Host(name="h", system="Linux", machine="x86_64", cpus=2, memory_mb=1024.0),
            boot_id="b",
            pid=1,
            versions={},
            plugins=(),
        )
        journal.append(plan, night="2026-09-01_220000")
    return folder


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    for name in ("config.yaml", "pack.yaml"):
        (tmp_path / name).write_text("id: office\n")
    path = tmp_path / "queue.yaml"
    path.write_text(QUEUE)
    return path


def test_help_imports_the_command_line_alone() -> None:
    modules = imported("--help")
    assert "click" in modules
    assert not modules & (PAGES | YAML | NIGHT | HTTP | PLUGINS | {"attrs", "sqlite3", "runq_journal"})
    assert not [name for name in modules if name.startswith("runq.commands.")]


@pytest.mark.parametrize("words", [("status",), ("nights",)])
def test_looking_at_nights_reads_the_journal_alone(runs: Path, words: tuple[str, ...]) -> None:
    modules = imported(*words, "--runs", str(runs))
    assert "runq_journal.reader" in modules
    assert not modules & (PAGES | YAML | NIGHT | HTTP | PLUGINS | {"runq_journal.journal"})


def test_a_plan_with_the_default_plugins_asks_no_endpoint(queue: Path, tmp_path: Path) -> None:
    modules = imported("plan", str(queue), "--runs", str(tmp_path / "none"))
    assert {"strictyaml", "cattrs", "runq_plugins.reset.lms", "runq_plugins.probe.system"} <= modules
    assert not modules & (PAGES | NIGHT | HTTP | {"runq_journal.journal", "runq_schemas.event_parts"})


def test_a_plan_on_a_journal_reads_it(queue: Path, runs: Path) -> None:
    modules = imported("plan", str(queue), "--runs", str(runs))
    assert "runq_journal.reader" in modules
    assert not modules & (PAGES | NIGHT | HTTP | {"runq_journal.journal"})
