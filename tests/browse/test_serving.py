"""How `runq browse` starts, whom it answers, and what it does while a night writes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runq_journal import Journal, JournalReader
from runq_schemas import events as ev

from .conftest import RUNQ, Browse, environment, golden_runs


def refused(runs: Path, *words: str, state: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(RUNQ), "browse", "--runs", str(runs), *words],
        env=environment(state),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


# --- the terminal -----------------------------------------------------------------------------------------------


def test_one_line_says_where_it_is(browse: Callable[..., Browse], tmp_path: Path) -> None:
    served = browse(golden_runs(tmp_path, upgraded=True))
    for path in ("/", "/journal/event", "/night/nope"):
        served.get(path)
    assert served.said == [f"{served.runs / 'journal.db'} is at {served.url} (read-only; Ctrl-C ends it)"]
    assert urlsplit(served.url).hostname == "127.0.0.1"


def test_a_port_that_is_taken_is_refused_with_a_remedy(golden: Browse, tmp_path: Path) -> None:
    ran = refused(golden.runs, "--port", str(urlsplit(golden.url).port), state=tmp_path)
    assert ran.returncode == 2
    assert "another program listens on 127.0.0.1:" in ran.stderr
    assert "runq browse --port 0" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_damaged_journal_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "journal.db").write_text("this is no journal")
    ran = refused(tmp_path, "--port", "0", state=tmp_path)
    assert ran.returncode == 4
    assert "not a journal" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_open_shows_the_front_page_once_it_is_there(browse: Callable[..., Browse], tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    fetch = "import sys, urllib.request as r; print(sys.argv[1], r.urlopen(sys.argv[1]).status)"
    browser.write_text(f"#!/bin/sh\n{sys.executable} -c '{fetch}' \"$1\" > {opened}.new && mv {opened}.new {opened}\n")
    browser.chmod(0o755)
    served = browse(golden_runs(tmp_path, upgraded=True), "--open", BROWSER=f"{browser} %s &")
    deadline = time.monotonic() + 30
    while not opened.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert opened.read_text().split() == [served.url, "200"]


# --- who is answered --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8001", "127.0.0.1", "127.0.0.1:1", "[::1]:8001", "[::1]"])
def test_this_machine_is_answered(golden: Browse, host: str) -> None:
    assert golden.get("/", Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8001",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "localhost:8001.evil.example",
        "evil.example:80:80",
        "127.0.0.1@evil.example",
        "0.0.0.0",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/", "/journal/event.json", "/runq/browse.css", "/nope"])
def test_another_name_is_refused(golden: Browse, host: str, path: str) -> None:
    answer = golden.get(path, Host=host)
    assert answer.status == 400
    assert "night" not in answer.body


def test_nothing_else_of_the_disk_is_served(golden: Browse) -> None:
    for path in ("/runq/../metadata.yaml", "/runq/%2e%2e/metadata.yaml", "/journal.db", "/runs/journal.db"):
        assert golden.get(path).status in {403, 404}


# --- while a night writes ---------------------------------------------------------------------------------------

WRITER = """
import sys
from runq_journal import Journal
from runq_schemas import events as ev
with Journal.open(sys.argv[1]) as journal:
    for number, _ in enumerate(sys.stdin):
        journal.append(ev.Warned(message=f"warning {number}"), night="2026-09-02_223000")
        print("written", flush=True)
"""
"""Appends an event for each line that it reads."""


def event_count(served: Browse) -> int:
    found = re.search(r'id="event-count">([\d,]+)<', served.get("/").body)
    assert found is not None
    return int(found[1].replace(",", ""))


def test_the_page_follows_another_process_that_writes(browse: Callable[..., Browse], tmp_path: Path) -> None:
    served = browse(golden_runs(tmp_path, upgraded=True))
    assert event_count(served) == 68
    words = [sys.executable, "-c", WRITER, str(served.runs / "journal.db")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for number in range(1, 21):
            writer.stdin.write("next\n")
            assert writer.stdout.readline() == "written\n"
            assert event_count(served) == 68 + number
        writer.stdin.close()
    assert writer.returncode == 0
    assert "warning 19" in served.page("/").text


QUEUE = """\
defaults:
  reset: none
  settle: { timeout_s: 5, plateau_polls: 1, poll_interval_s: 0.1, epsilon_mb: 100000 }
  harness:
    harness: command
    steps:
      eval:
        argv: [python, -c, "import sys, time; time.sleep(600)", "{bundle}"]
        artifacts: [a.txt]
entries:
  - model: first
  - model: second
"""


def test_a_night_runs_dies_and_can_be_gone_on_with(browse: Callable[..., Browse], tmp_path: Path) -> None:
    queue = tmp_path / "queue.yaml"
    queue.write_text(QUEUE)
    runs = tmp_path / "runs"
    night = subprocess.Popen(
        [str(RUNQ), "night", str(queue)],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not list(runs.glob("*/logs/e0-eval-1.log")):
            assert night.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        served = browse(runs)
        page = served.page("/")
        assert "runs. Load this page again" in page.text
        assert ["e0", "first", "eval", "running", "it has not ended"] in page.tables["Steps to run"]
        assert not page.preformatted, "a night that runs is not resumed"
    finally:
        night.send_signal(signal.SIGKILL)
        night.wait()
        with JournalReader.open(runs / "journal.db") as reader:
            (step,) = reader.unfinished()
        os.kill(step["pid"], signal.SIGKILL)  # it outlives its runner
    page = served.page("/")
    assert "died" in page.tables["The newest first"][1]
    (name,) = (path.name.removesuffix("_queue") for path in runs.glob("*_queue"))
    assert page.preformatted == [f"runq night {queue} --resume --night {name}"]
    done = subprocess.run(
        [str(RUNQ), *page.preformatted[0].split()[1:], "--dry-run"], env=environment(tmp_path), capture_output=True
    )
    assert done.returncode == 0, done.stderr


def test_an_empty_journal_has_a_front_page(browse: Callable[..., Browse], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    Journal.open(runs / "journal.db").close()
    assert "There is no night yet" in browse(runs).page("/").text


def test_a_journal_with_a_check_only_has_a_front_page(browse: Callable[..., Browse], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with Journal.open(runs / "journal.db") as journal:
        journal.append(ev.CheckFinished(failed=0), night="2026-10-01_220000_check")
    served = browse(runs)
    assert "There is no night yet" in served.page("/").text
    assert served.page("/night/2026-10-01_220000_check").headings[0] == "Check 2026-10-01_220000_check"


def test_a_journal_in_a_folder_that_cannot_be_written_is_shown(
    browse: Callable[..., Browse], read_only: Callable[[Path], None], tmp_path: Path
) -> None:
    runs = golden_runs(tmp_path, upgraded=True)
    before = sorted(path.name for path in runs.iterdir())
    read_only(runs)
    assert browse(runs).page("/").headings[0] == "runq journal"
    assert sorted(path.name for path in runs.iterdir()) == before
