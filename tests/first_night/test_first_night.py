"""A whole night with a real model: llama.cpp's server, SmolLM2, the real command line, and Datasette on the journal.

Nothing here is skipped: without the server or the weights these tests fail and say what to run.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest

from .conftest import EXAMPLE, copy_example, free_port, user_env

pytestmark = [pytest.mark.real_model, pytest.mark.slow, pytest.mark.timeout(1500)]

RUNQ = Path(sys.executable).with_name("runq")

NIGHT_TIMEOUT_S = 1200  # about one minute on two idle cores

MODEL_DELTA_MB = (100, 400)
"""The weights are 94 MB and all of them are touched; context, buffers and two Pythons come on top."""

FACTS_RIGHT = 6
"""Of eight facts. The model knows all eight at temperature 0; two may fall to another build's rounding."""


@attrs.frozen
class Night:
    folder: Path
    env: dict[str, str]
    done: subprocess.CompletedProcess[str]

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def queue_dir(self) -> Path:
        (found,) = self.runs.glob("*_queue")
        return found

    @property
    def summary(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.queue_dir / "summary.json").read_text(encoding="utf-8"))
        return data

    def bundle(self, pack: str) -> Path:
        (found,) = self.runs.glob(f"*_eval_{pack}")
        return found

    def runq(self, *words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(RUNQ), *map(str, words)],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=NIGHT_TIMEOUT_S,
        )


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Night:
    """The night of examples/first-night on a free port, in a copy of that folder."""
    remedy = "run `python3 tests/run.py`, which installs the server and fetches the weights"
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.fail(f"xllamacpp is not installed: {remedy}")
    weights = subprocess.run([sys.executable, EXAMPLE / "download_model.py"], capture_output=True, text=True)
    if weights.returncode != 0:
        pytest.fail(f"the weights are missing: {weights.stderr}\n{remedy}")

    folder = copy_example(tmp_path_factory.mktemp("first-night") / "example")
    queue = folder / "queue.yaml"
    queue.write_text(queue.read_text(encoding="utf-8").replace("8099", str(free_port())), encoding="utf-8")
    env = user_env(tmp_path_factory.mktemp("state"))
    unfinished: Any = None
    found = Night(folder, env, unfinished)
    return attrs.evolve(found, done=found.runq("night", "queue.yaml", "--json"))


def test_every_entry_is_complete(night: Night) -> None:
    assert night.done.returncode == 0, night.done.stderr
    summary = night.summary
    assert (summary["total"], summary["done"]) == (3, 3)
    for entry in summary["entries"]:
        assert entry["status"] == "complete"
        assert (entry["eval_status"], entry["judge_status"], entry["error"]) == ("ok", "ok", None)
        assert entry["eval_seconds"] > 0
    assert json.loads(night.done.stdout) == summary


def test_every_reset_is_verified_and_every_baseline_proven(night: Night) -> None:
    for entry in night.summary["entries"]:
        assert entry["reset_verdict"] == "verified"
        assert entry["settle_status"] == "settled"
        assert entry["baseline_proven"]


def test_the_answers_are_the_models_own(night: Night) -> None:
    for pack in ("facts", "arithmetic", "instructions"):
        asked = json.loads((night.folder / "packs" / f"{pack}.json").read_text(encoding="utf-8"))["prompts"]
        rows = read_rows(night.bundle(pack) / "responses.jsonl")
        assert [row["prompt_id"] for row in rows] == [prompt["id"] for prompt in asked]
        assert all(row["ok"] and row["response_text"].strip() and row["error"] is None for row in rows)
        assert all(row["decode_tps"] > 0 and row["ttft_s"] > 0 for row in rows)
        assert len({row["response_text"] for row in rows}) > len(rows) / 2  # not one text for everything


def test_the_model_knows_plain_facts(night: Night) -> None:
    with (night.bundle("facts") / "scores.csv").open(newline="", encoding="utf-8") as file:
        scores = list(csv.DictReader(file))
    assert sum(row["passed"] == "true" for row in scores) >= FACTS_RIGHT, scores


def test_the_marks_are_in_the_formats_the_scripts_promise(night: Night) -> None:
    for pack in ("facts", "arithmetic", "instructions"):
        reports = read_rows(night.bundle(pack) / "reports.jsonl")
        with (night.bundle(pack) / "scores.csv").open(newline="", encoding="utf-8") as file:
            scores = list(csv.DictReader(file))
        assert len(reports) == len(scores) == 8
        for report, score in zip(reports, scores, strict=True):
            assert set(report) == {"prompt_id", "judge_score", "passed", "answer"}
            assert list(score) == ["prompt_id", "judge_score", "passed"]
            assert report["judge_score"] in range(1, 6)
            assert score["judge_score"] == str(report["judge_score"])
            assert score["passed"] == {True: "true", False: "false", None: ""}[report["passed"]]


def test_the_model_delta_is_that_of_a_small_model(night: Night) -> None:
    low, high = MODEL_DELTA_MB
    deltas = [entry["model_delta_mb"] for entry in night.summary["entries"]]
    # The probe reads the whole machine: the median forgives one entry that a neighbour disturbed.
    assert low < statistics.median(deltas) < high, deltas


def test_nothing_is_left_running(night: Night) -> None:
    left = [process.info for process in psutil.process_iter(["pid", "cmdline", "cwd"]) if of_night(process.info, night)]
    assert not left


def of_night(info: dict[str, Any], night: Night) -> bool:
    return info["cwd"] == str(night.folder) and "server.py" in " ".join(info["cmdline"] or ())


def test_replay_rebuilds_the_summaries_byte_for_byte(night: Night) -> None:
    files = [night.queue_dir / name for name in ("summary.json", "summary.md")]
    before = [file.read_bytes() for file in files]
    for file in files:
        file.unlink()

    done = night.runq("replay")

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(file) for file in files]
    assert [file.read_bytes() for file in files] == before


def test_replay_verifies_the_chain(night: Night) -> None:
    done = night.runq("replay", "--verify")
    assert done.returncode == 0, done.stderr
    assert "hash chain whole" in done.stdout


# --- browse -----------------------------------------------------------------------------------------------------


@attrs.frozen
class Browse:
    port: int

    def get(self, path: str, **query: str) -> tuple[int, str]:
        words = f"?{urllib.parse.urlencode(query)}" if query else ""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}{words}", timeout=30) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        status, text = self.get("/journal.json", sql=sql, _shape="array")
        assert status == 200, text
        rows: list[dict[str, Any]] = json.loads(text)
        return rows


@pytest.fixture(scope="module")
def browse(night: Night) -> Iterator[Browse]:
    """`runq browse` on the journal of the night, until the tests are done."""
    port = free_port()
    log = night.folder / "browse.log"  # a file: Datasette says so much about refused SQL that a pipe would fill up
    with log.open("w") as stream:
        process = subprocess.Popen(
            [str(RUNQ), "browse", "--port", str(port)],
            cwd=night.folder,
            env=night.env,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=heed_ctrl_c,
        )
    deadline = time.monotonic() + 60
    while not listens("127.0.0.1", port):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            pytest.fail(f"runq browse does not answer: {log.read_text()}")
        time.sleep(0.1)
    yield Browse(port)
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(timeout=30) == 0  # Ctrl-C is its ordinary end
        assert not listens("127.0.0.1", port)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def heed_ctrl_c() -> None:
    """A shell that starts the tests in the background has them ignore Ctrl-C, and their children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def listens(host: str, port: int) -> bool:
    with socket.socket() as sock:
        sock.settimeout(2)
        return sock.connect_ex((host, port)) == 0


def test_browse_shows_tables_views_and_what_they_mean(browse: Browse) -> None:
    status, page = browse.get("/journal/event")
    assert status == 200
    assert "night.started" in page

    status, text = browse.get("/journal/entry_result.json", _shape="array")
    assert status == 200
    rows = json.loads(text)
    assert [row["status"] for row in rows] == ["complete"] * 3
    assert [row["model_id"] for row in rows] == ["smollm2-135m"] * 3

    status, page = browse.get("/journal/entry_result")
    assert status == 200
    assert "result of each entry" in page.lower()

    status, text = browse.get("/-/metadata.json")
    described = json.loads(text)["databases"]["journal"]
    shown = {name: table for name, table in described["tables"].items() if not table.get("hidden")}
    assert {"event", "sample", "entry_result", "todo"} <= set(shown)
    assert not [name for name, table in shown.items() if not table.get("description")]
    status, text = browse.get("/journal/last_night.json", _shape="array")
    assert status == 200
    assert len(json.loads(text)) == 3


@pytest.mark.parametrize(
    "sql",
    [
        "delete from event",
        "update event set kind = 'x'",
        "insert into sample values (1, 'n', 'a', 0, 's', 'p', 1)",
        "drop view todo",
        "pragma journal_mode = delete",
        "with x as (select 1) delete from event",
    ],
)
def test_browse_refuses_to_write(browse: Browse, sql: str) -> None:
    before = browse.rows("select count(*) as n, max(hash) as h from event")
    status, _ = browse.get("/journal.json", sql=sql, _shape="array")
    assert status == 400
    assert browse.rows("select count(*) as n, max(hash) as h from event") == before


def test_browse_gives_the_file_itself_to_nobody(browse: Browse) -> None:
    assert browse.get("/journal.db")[0] in (403, 404)


def test_browse_listens_on_this_machine_only(browse: Browse) -> None:
    assert listens("127.0.0.1", browse.port)
    # A server on 0.0.0.0 would answer at every address of the machine, also at this one.
    assert not listens("127.0.0.2", browse.port)


SECOND_NIGHT = """\
defaults:
  reset: none
  settle: { timeout_s: 5, plateau_polls: 1, poll_interval_s: 0.1, epsilon_mb: 100000 }
  harness:
    harness: command
    steps:
      eval:
        argv: [python, -c, "import sys, time; time.sleep(1); open(sys.argv[1] + '/a.txt', 'w').write('a')", "{bundle}"]
        artifacts: [a.txt]
entries:
  - model: first
  - model: second
  - model: third
  - model: fourth
"""


def test_browse_follows_a_night_that_writes(night: Night, browse: Browse) -> None:
    (night.folder / "second.yaml").write_text(SECOND_NIGHT)
    before = events(browse)
    counts = {before}
    process = subprocess.Popen(
        [str(RUNQ), "night", "second.yaml"],
        cwd=night.folder,
        env=night.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        while process.poll() is None:
            counts.add(events(browse))
            time.sleep(0.2)
    finally:
        process.kill()
        said = process.communicate()[0]
    assert process.returncode == 0, said
    assert len(counts) > 4, counts  # it was seen growing, not only before and after
    assert events(browse) > before
    states = browse.rows("select state, complete from night_summary order by started_at")
    assert states == [{"state": "finished", "complete": 3}, {"state": "finished", "complete": 4}]
    assert night.runq("replay", "--verify").returncode == 0


def events(browse: Browse) -> int:
    count: int = browse.rows("select count(*) as n from event")[0]["n"]
    return count


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
