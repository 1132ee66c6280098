"""Logs and bundles on pages: those of the runs folder, wherever it lies now, and nothing else of the machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runq_journal.datasette.beside import MOST_BYTES, inside, listed, place
from runq_schemas import events as ev

from ..core.conftest import Told
from .conftest import Browse, Page, browsing

NIGHT = Told.night
EVAL = f"/night/{NIGHT}/e0/eval/1"


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    """A night whose first eval failed, with its log and its bundle."""
    runs = tmp_path / "home" / "runs"
    runs.mkdir(parents=True)
    night = Told(runs)
    night.plan("gemma")
    night.say(ev.EntryStarted(), 0)
    night.started(0, "eval")
    log, bundle = log_of(night), bundle_of(night)
    log.parent.mkdir(parents=True)
    log.write_bytes(b"loading\r 50 %\r 100 %\n\x1b[31mred\x1b[0m <b>bold</b> \x1b]0;title\x07\xff\n")
    (bundle / "more").mkdir(parents=True)
    (bundle / "responses.jsonl").write_text('{"answer": "<i>42</i>"}\n')
    (bundle / "more" / "a b.txt").write_text("deep")
    night.finished(0, "eval", "failed", reason="it exited with 3", log_tail=("red",))
    yield night
    night.journal.close()


def log_of(night: Told) -> Path:
    return night.runs / f"{NIGHT}_queue" / "logs" / "e0-eval-1.log"


def bundle_of(night: Told) -> Path:
    return night.runs / f"{NIGHT}_e0_model_eval_office"


@pytest.fixture
def served(told: Told, tmp_path: Path) -> Iterator[Browse]:
    with browsing(told.runs, state=tmp_path) as browse:
        yield browse


def test_an_entry_leads_to_its_log_and_its_files(served: Browse) -> None:
    for path in (f"/night/{NIGHT}/e0", f"/night/{NIGHT}", "/"):
        assert f"{EVAL}/log" in served.page(path).links, path
    assert f"{EVAL}/bundle" in served.page(f"/night/{NIGHT}/e0").links


def test_a_log_reads_as_on_a_terminal(served: Browse, told: Told) -> None:
    page = served.page(f"{EVAL}/log")
    assert page.headings == ["Log of eval, attempt 1"]
    assert page.preformatted == [" 100 %\nred <b>bold</b> �\n"]
    assert str(log_of(told)) in page.text and "58 bytes" in page.text
    assert {f"/night/{NIGHT}", f"/night/{NIGHT}/e0"} <= set(page.links)


def test_a_bundle_and_its_files(served: Browse) -> None:
    page = served.page(f"{EVAL}/bundle")
    assert page.tables["Files"][1:] == [["more/a b.txt", "4"], ["responses.jsonl", "24"]]
    (deep,) = [link for link in page.links if "more" in link]
    assert served.page(deep).preformatted == ["deep"]
    assert served.page(f"{EVAL}/bundle/responses~2Ejsonl").preformatted == ['{"answer": "<i>42</i>"}\n']


def test_a_long_log_is_shown_from_its_end_and_a_long_file_from_its_beginning(served: Browse, told: Told) -> None:
    long = "".join(f"line {number}\n" for number in range(40_000))
    log_of(told).write_text(long)
    (bundle_of(told) / "long.txt").write_text(long)
    log, text = served.page(f"{EVAL}/log"), served.page(f"{EVAL}/bundle/long~2Etxt")
    left = len(long) - MOST_BYTES
    assert log.preformatted[0].endswith("line 39999\n") and "line 0\n" not in log.preformatted[0]
    assert f"Only its end is shown, without the first {left:,} bytes." in log.text
    assert text.preformatted[0].startswith("line 0\n") and "line 39999" not in text.preformatted[0]
    assert f"Only its beginning is shown, without the last {left:,} bytes." in text.text


def test_an_empty_log_and_an_empty_bundle(served: Browse, told: Told) -> None:
    log_of(told).write_bytes(b"")
    shutil.rmtree(bundle_of(told))
    bundle_of(told).mkdir()
    assert "It is empty." in served.page(f"{EVAL}/log").text
    assert "It holds no file." in served.page(f"{EVAL}/bundle").text


def test_what_was_pruned_is_not_linked_and_not_there(served: Browse, told: Told) -> None:
    log_of(told).unlink()
    shutil.rmtree(bundle_of(told))
    page = served.page(f"/night/{NIGHT}/e0")
    assert not {f"{EVAL}/log", f"{EVAL}/bundle"} & set(page.links)
    assert str(log_of(told)) in page.text
    for path in (f"{EVAL}/log", f"{EVAL}/bundle"):
        answer = served.get(path)
        assert answer.status == 404 and "not in the runs folder" in answer.page.text


@pytest.mark.parametrize(
    "path",
    [
        f"/night/{NIGHT}/e0/eval/2/log",
        f"/night/{NIGHT}/e0/judge/1/log",
        f"/night/{NIGHT}/e9/eval/1/log",
        f"/night/{NIGHT}/e0/eval/1/server",
        "/night/none/e0/eval/1/log",
        f"{EVAL}/bundle/none",
        f"{EVAL}/bundle/more",
        f"{EVAL}/bundle/~2E~2E/~2E~2E/secret",
        f"{EVAL}/bundle/~2E~2E~2Fsecret",
        f"{EVAL}/bundle/~2Fetc~2Fpasswd",
        f"{EVAL}/bundle/~00",
    ],
)  # fmt: skip
def test_nothing_else_is_shown(served: Browse, told: Told, path: str) -> None:
    (told.runs / "secret").write_text("kraken")
    (told.runs.parent / "secret").write_text("kraken")
    answer = served.get(path)
    assert answer.status == 404 and "kraken" not in answer.body and "root:" not in answer.body


def test_no_link_leads_out(served: Browse, told: Told) -> None:
    secret = told.runs.parent / "secret"
    secret.write_text("kraken")
    (bundle_of(told) / "link").symlink_to(secret)
    (bundle_of(told) / "folder").symlink_to(told.runs.parent)
    log_of(told).unlink()
    log_of(told).symlink_to(secret)
    assert "link" not in [row[0] for row in served.page(f"{EVAL}/bundle").tables["Files"]]
    for path in (f"{EVAL}/bundle/link", f"{EVAL}/bundle/folder/secret", f"{EVAL}/log"):
        assert served.get(path).status == 404, path


def test_a_runs_folder_that_was_moved_shows_its_files(
    told: Told, browse: Callable[..., Browse], tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    told.journal.close()
    shutil.move(told.runs, moved)
    assert browse(moved).page(f"{EVAL}/log").preformatted == [" 100 %\nred <b>bold</b> �\n"]


def test_a_server_has_its_log_too(told: Told, tmp_path: Path) -> None:
    log = told.runs / f"{NIGHT}_queue" / "logs" / "e0-server-1.log"
    log.write_text("listening\n")
    told.say(ev.ServerStarted(argv=("llama-server",), log=str(log), model="gemma"), 0, "eval", 1)
    with browsing(told.runs, state=tmp_path) as served:
        assert f"{EVAL}/server" in served.page(f"/night/{NIGHT}/e0").links
        page = served.page(f"{EVAL}/server")
        assert (page.headings, page.preformatted) == (["Log of server for eval, attempt 1"], ["listening\n"])


def test_a_log_that_cannot_be_read_is_not_there(served: Browse, told: Told) -> None:
    log_of(told).unlink()
    os.mkfifo(log_of(told))  # a pipe nobody writes into must not keep a page waiting
    assert f"{EVAL}/log" not in served.page(f"/night/{NIGHT}/e0").links
    assert served.get(f"{EVAL}/log").status == 404


def test_pages_of_files_run_nothing(served: Browse) -> None:
    for path in (f"{EVAL}/log", f"{EVAL}/bundle", f"{EVAL}/bundle/responses~2Ejsonl"):
        answer = served.get(path)
        assert not {"b", "i", "script"} & set(Page(answer.body).tags)
        assert "script-src" not in answer.headers["content-security-policy"]


# --- places -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recorded", "plan", "found"),
    [
        ("/old/runs/a/log", {"runs_dir": "/old/runs"}, True),
        ("/old/runs/a/none", {"runs_dir": "/old/runs"}, False),
        ("/elsewhere/a/log", {"runs_dir": "/old/runs"}, False),
        ("/old/runs/../../etc/passwd", {"runs_dir": "/old/runs"}, False),
        ("/old/runs", {"runs_dir": "/old/runs"}, True),
        (None, {"runs_dir": "/old/runs"}, False),
        ("", {"runs_dir": "/old/runs"}, False),
        ("/old/runs/a/log", {}, False),
        ("a/log", {}, True),
        ("/old/runs/\0", {"runs_dir": "/old/runs"}, False),
    ],
)
def test_a_recorded_path_counts_by_its_place_below_the_runs_folder(
    recorded: str | None, plan: dict[str, Any], found: bool, tmp_path: Path
) -> None:
    runs = tmp_path / "new"
    (runs / "a").mkdir(parents=True)
    (runs / "a" / "log").touch()
    assert (place(recorded, plan, runs) is not None) == found


def test_a_loop_of_links_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert inside(tmp_path, "a") is None
    assert listed(tmp_path) == []
