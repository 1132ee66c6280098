"""The commands that read, one by one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from runq.commands.arguments import entry_number, entry_numbers
from runq.locks import night_locks, own_holder
from runq_journal import Journal
from runq_schemas import UsageError
from runq_schemas import events as ev

NIGHT = "2026-09-01_220000"


def test_entries_are_counted_from_nought() -> None:
    assert [entry_number(text) for text in ("e0", "0", " e12 ", "12")] == [0, 0, 12, 12]
    assert entry_numbers(None) is None
    assert entry_numbers("e0, 2,e2,") == {0, 2}
    for wrong in ("", "e", "-1", "ee1", "1.5", "e0 e1"):
        with pytest.raises(UsageError):
            entry_number(wrong)


def test_status(runq: Any, past: Path) -> None:
    ran = runq("status")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[:2] == [f"night {NIGHT}  finished", "1 of 2 entries complete, 1 failed, 0 pending"]
    assert lines[3] == "e0   gemma  eval ok 5 s  judge ok 5 s"
    assert lines[4:6] == ["e1   qwen   eval failed 5 s", "      it exited with 3"]
    assert lines[-1] == f"go on with: runq night {past.parent}/queue.yaml --resume --night {NIGHT}"
    assert max(map(len, lines[:-1])) <= 80


def test_status_of_another_folder(runq: Any, past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert runq("status").code == 2
    assert runq("status", "--runs", str(past)).code == 0
    assert runq("status", str(past / f"{NIGHT}_queue"), "--runs", str(past)).code == 0
    monkeypatch.setenv("RUNQ_RUNS", str(past))
    assert runq("status").code == 0


def test_nights(runq: Any, past: Path) -> None:
    ran = runq("nights")
    assert ran.out == f"{NIGHT}  finished     1/2 complete, 1 failed  {past.parent}/queue.yaml\n"


def test_a_journal_without_a_night(runq: Any, home: Path) -> None:
    (home / "runs").mkdir()
    Journal.open(home / "runs" / "journal.db").close()
    ran = runq("nights")
    assert (ran.code, ran.out, ran.err) == (0, "", "no night yet\n")
    assert json.loads(runq("nights", "--json").out) == []
    assert runq("status").code == 2


def test_log_shows_the_last_step_that_ran(runq: Any, past: Path) -> None:
    assert runq("log", "e0").out == "this is judge 1 of e0\nred\n"
    assert runq("log", "0", "eval").out == "this is eval 2 of e0\nred\n"
    assert runq("log", "e0", "eval", "--attempt", "1").out == "this is eval 1 of e0\nred\n"
    assert runq("log", "e1", "--night", NIGHT).out == "this is eval 1 of e1\nred\n"


def test_a_log_that_is_gone(runq: Any, past: Path) -> None:
    shutil.rmtree(past / f"{NIGHT}_queue" / "logs")
    ran = runq("log", "e0")
    assert (ran.code, ran.out) == (2, "")
    assert "is gone" in ran.err and "moved or pruned" in ran.err


def test_following_a_log_ends_with_its_attempt(runq: Any, past: Path) -> None:
    assert runq("log", "e0", "-f").out == "this is judge 1 of e0\nred\n"


def running_step(past: Path) -> Path:
    """A third attempt of e1's eval that has no end yet; its log."""
    log = past / f"{NIGHT}_queue" / "logs" / "e1-eval-2.log"
    log.write_text("one\n")
    started = ev.StepStarted(
        argv=("x",), log=str(log), bundle="/b", timeout_s=60.0, stall_timeout_s=None, identity="", identity_parts={}
    )
    with Journal.open(past / "journal.db") as journal:
        journal.append(started, night=NIGHT, entry=1, step="eval", attempt=2)
    return log


def test_following_a_log_whose_runner_died_ends(runq: Any, past: Path) -> None:
    running_step(past)
    assert runq("log", "e1", "-f").out == "one\n"


def test_following_a_log_shows_what_is_added(runq: Any, past: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = running_step(past)
    looks: list[float] = []

    def wait(seconds: float) -> None:
        looks.append(seconds)
        with log.open("a") as stream:
            stream.write("two\n" if len(looks) == 1 else "three, not ended")
        if len(looks) == 2:
            with Journal.open(past / "journal.db") as journal:
                journal.append(ev.StepFinished(status="ok"), night=NIGHT, entry=1, step="eval", attempt=2)

    monkeypatch.setattr("time.sleep", wait)
    holder = own_holder(since="", queue="", journal=past / "journal.db")
    with night_locks(past / "journal.db", [], holder):
        assert runq("log", "e1", "-f").out == "one\ntwo\nthree, not ended\n"
    assert len(looks) == 2


def test_plan(runq: Any, home: Path) -> None:
    ran = runq("plan", "queue.yaml")
    assert (ran.code, ran.err) == (0, "")
    assert "e0  gemma · packs/office.yaml" in ran.out
    assert ran.out.splitlines()[-1] == "2 entries, 3 steps to run"
    assert runq("night", "queue.yaml", "--dry-run").out == ran.out
    assert not (home / "runs").exists()


def test_plan_of_a_resume(runq: Any, past: Path) -> None:
    ran = runq("plan", "queue.yaml", "--resume")
    assert ran.code == 0
    assert f"resumes {NIGHT}" in ran.out
    assert "failed in attempt 1" in ran.out


def test_replay_writes_beside_the_journal(runq: Any, past: Path) -> None:
    folder = past / f"{NIGHT}_queue"
    ran = runq("replay")
    assert ran.out.splitlines() == [str(folder / "summary.json"), str(folder / "summary.md")]
    written = (folder / "summary.json").read_text()
    assert runq("replay", "--all").out == ran.out
    assert (folder / "summary.json").read_text() == written
    with Journal.open(past / "journal.db") as journal, journal.reader() as reader:
        last = reader.last_event_id
    assert runq("replay", "--at", str(last)).out == written
    first = json.loads(runq("replay", "--at", "1").out)
    assert (first["state"], first["done"]) == ("running", 0)


def test_replay_verifies(runq: Any, past: Path) -> None:
    ran = runq("replay", "--verify")
    assert ran.code == 0
    assert ran.out == f"{past / 'journal.db'}: 12 events, hash chain whole\n"
    assert not (past / f"{NIGHT}_queue" / "summary.json").exists(), "it writes nothing"


def test_plugins(runq: Any) -> None:
    ran = runq("plugins")
    assert (ran.code, ran.err) == (0, "")
    for word in ("reset\n", "probe\n", "harness\n", "ollama", "psutil_used", "touchstone", "[runq "):
        assert word in ran.out
    rows = json.loads(runq("plugins", "--json").out)
    assert {"kind", "name", "distribution", "version", "about", "options", "error"} == set(rows[0])


def test_a_broken_plugin_breaks_no_command(
    runq: Any, past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "bad-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[runq.reset]\nbroken = no_such_module:X\n[runq.probe]\nsystem = bad:X\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    text = runq("plugins")
    assert text.code == 0
    assert "broken: ModuleNotFoundError: No module named 'no_such_module'" in text.out
    assert "offered by more than one distribution" in text.out
    for words in (["--help"], ["status"], ["nights"], ["schema"]):
        assert runq(*words).code == 0
    refused = runq("plan", "queue.yaml")
    assert refused.code == 2
    assert "the probe plugin 'system' is offered twice, by bad 1.0 and runq" in refused.err
    assert refused.err.count("error:") == 1, "a default's problem is told once"


def test_browse_is_read_only_and_on_this_machine(past: Path, monkeypatch: pytest.MonkeyPatch, runq: Any) -> None:
    served: list[list[str]] = []
    monkeypatch.setattr("runq.browse.serve", lambda argv: served.append(argv) or 0)
    assert runq("browse", "--port", "0").code == 0
    (argv,) = served
    assert argv[1:5] == ["-m", "datasette", "serve", str(past / "journal.db")]
    assert argv[argv.index("--host") + 1] == "127.0.0.1"
    assert argv[argv.index("--port") + 1] == "0"
    assert "-i" not in argv and "--open" not in argv, "-i would ignore what a running night has just written"
    runq("browse", "--open")
    assert "--open" in served[1]


def test_schema_describes_every_key(runq: Any) -> None:
    schema = json.loads(runq("schema").out)
    assert {"defaults", "entries"} <= set(schema["properties"])
