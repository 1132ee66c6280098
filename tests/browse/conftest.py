"""`runq browse` as a user starts it, in a process of its own, and its pages read as a browser reads them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import pytest

from runq_journal import Journal

GOLDEN = Path(__file__).parents[1] / "journal" / "golden-v1.db"
RUNQ = Path(sys.executable).with_name("runq")


class Page(HTMLParser):
    """What a page shows, without what it looks like."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.headings: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.preformatted: list[str] = []
        self.text = ""
        self._open: dict[str, str] = {}
        self._row: list[str] = []
        self._caption = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self.attributes += values
        if values.get("id"):
            self.ids.add(str(values["id"]))
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        if tag in {"h1", "h2", "h3", "th", "td", "caption", "pre"}:
            self._open[tag] = ""
        if tag == "table":
            self._caption = ""
        if tag == "tr":
            self._row = []

    def handle_data(self, data: str) -> None:
        self.text += data
        for tag in self._open:
            self._open[tag] += data

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._open:
            if tag == "tr":
                self.tables.setdefault(self._caption, []).append(self._row)
            return
        text = self._open.pop(tag)
        words = " ".join(text.split())
        if tag in {"h1", "h2", "h3"}:
            self.headings.append(words)
        elif tag == "caption":
            self._caption = words
        elif tag == "pre":
            self.preformatted.append(text)
        else:
            self._row.append(words)


@attrs.frozen
class Answer:
    status: int
    headers: dict[str, str]
    body: str

    @property
    def page(self) -> Page:
        return Page(self.body)


@attrs.frozen
class Browse:
    url: str
    runs: Path
    process: subprocess.Popen[bytes]
    log: Path

    def get(self, path: str, **headers: str) -> Answer:
        request = urllib.request.Request(self.url.rstrip("/") + path, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return _answer(response)
        except urllib.error.HTTPError as error:
            return _answer(error)

    def page(self, path: str) -> Page:
        answer = self.get(path)
        assert answer.status == 200, (path, answer.body)
        return answer.page

    def rows(self, path: str) -> list[dict[str, Any]]:
        answer = self.get(path)
        assert answer.status == 200, (path, answer.body)
        rows: list[dict[str, Any]] = json.loads(answer.body)
        return rows

    @property
    def said(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines()


def _answer(response: Any) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status, headers, response.read().decode())


def heed_ctrl_c() -> None:
    """A shell that starts the tests in the background has them ignore Ctrl-C, and their children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def browsing(runs: Path, *words: str, state: Path, **env: str) -> Iterator[Browse]:
    """`runq browse` on a free port until the block ends; it must end well on Ctrl-C."""
    log = state / f"browse-{time.monotonic_ns()}.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [str(RUNQ), "browse", "--runs", str(runs), "--port", "0", *words],
            env=environment(state, **env),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=heed_ctrl_c,
        )
    try:
        deadline = time.monotonic() + 60
        while "http://" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        url = log.read_text().split(" is at ")[1].split()[0]
        yield Browse(url, runs, process, log)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def environment(state: Path, **more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    env = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(state), "NO_COLOR": "1", **more}
    for name in ("RUNQ_RUNS", "PYTHONPATH"):
        env.pop(name, None)
    return env


def golden_runs(folder: Path, *, upgraded: bool) -> Path:
    """A runs folder with the golden journal: as its old version left it, or with this version's views in it."""
    runs = folder / "runs"
    runs.mkdir()
    shutil.copy(GOLDEN, runs / "journal.db")
    if upgraded:
        Journal.open(runs / "journal.db").close()
    return runs


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browse]:
    """The golden journal with this version's views."""
    folder = tmp_path_factory.mktemp("golden")
    with browsing(golden_runs(folder, upgraded=True), state=folder) as browse:
        yield browse


@pytest.fixture
def browse(tmp_path: Path) -> Iterator[Callable[..., Browse]]:
    """Starts `runq browse` on a runs folder."""
    with contextlib.ExitStack() as stack:
        yield lambda runs, *words, **env: stack.enter_context(browsing(runs, *words, state=tmp_path, **env))


@pytest.fixture
def read_only() -> Iterator[Callable[[Path], None]]:
    """Makes a folder read-only, for root too."""
    undo: list[Callable[[], object]] = []

    def make(folder: Path) -> None:
        if os.geteuid() == 0 and sys.platform.startswith("linux"):
            subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
            undo.append(lambda: subprocess.run(["umount", "--lazy", str(folder)], check=True))
            subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        else:
            folder.chmod(0o500)
            undo.append(lambda: folder.chmod(0o700))

    yield make
    for step in undo:
        step()
