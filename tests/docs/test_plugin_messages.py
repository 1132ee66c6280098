"""What docs/plugins.md promises when a plugin is wrong: each situation made for real, each message as on the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
PAGE = (REPO / "docs" / "plugins.md").read_text(encoding="utf-8")
PROMISED = dict(
    re.findall(r"<!-- message: ([\w-]+) -->\n\n```console\n\$ runq plan queue\.yaml\n(.*?)```", PAGE, re.DOTALL)
)
(MODULE,) = re.findall(r"^`runq_process_rss\.py`\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(QUEUE,) = (text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "process_rss" in text)


def install(site: Path, distribution: str, version: str) -> None:
    """The metadata that an installation of the page's plugin leaves in a folder of the path."""
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[runq.probe]\nprocess_rss = runq_process_rss:ProcessRssProbe\n")


def runq(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("RUNQ")}
    env |= {"PYTHONPATH": str(cwd / "site"), "NO_COLOR": "1"}
    argv = [sys.executable, "-m", "runq", *words]
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The page's plugin, installed; the page's queue file."""
    install(tmp_path / "site", "runq-process-rss", "0.1.0")
    (tmp_path / "site" / "runq_process_rss.py").write_text(MODULE)
    (tmp_path / "queue.yaml").write_text(QUEUE)
    return tmp_path


def break_it(folder: Path) -> None:
    (folder / "site" / "runq_process_rss.py").write_text(MODULE.replace("import psutil\n", "import psutils\n"))


def offer_it_twice(folder: Path) -> None:
    install(folder / "site", "other-probes", "2.0")


def misspell_its_option(folder: Path) -> None:
    (folder / "queue.yaml").write_text(QUEUE.replace("name: llama-server", "nam: llama-server"))


SITUATIONS = {"broken": break_it, "twice": offer_it_twice, "wrong-option": misspell_its_option}


def test_every_message_of_the_page_is_tried():
    assert set(PROMISED) == set(SITUATIONS)


def test_without_a_fault_the_queue_is_accepted(folder):
    done = runq("plan", "queue.yaml", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_message_is_the_one_that_the_page_shows(folder, name):
    SITUATIONS[name](folder)
    done = runq("plan", "queue.yaml", cwd=folder)
    assert done.stdout == ""
    assert done.stderr == PROMISED[name]
    assert done.returncode == 2


def test_a_broken_plugin_is_listed_and_stops_no_other_queue(folder):
    break_it(folder)
    listed = runq("plugins", cwd=folder)
    assert "broken: ModuleNotFoundError: No module named 'psutils'  [runq-process-rss 0.1.0]" in listed.stdout
    (folder / "queue.yaml").write_text(re.sub(r"^  probes:.*\n", "", QUEUE, flags=re.MULTILINE))
    assert runq("plan", "queue.yaml", cwd=folder).returncode == 0
