"""The plugin on docs/plugins.md, taken from the page as it stands: installed, tested, and used in a night."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

REPO = Path(__file__).parents[2]
PAGE = (REPO / "docs" / "plugins.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^`([\w.]+)`\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
"""Every file the page gives: its name in backticks on a line of its own, then its text."""

MOST_LINES = 40


def call(*argv: object, cwd: Path, env: dict[str, str], code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*map(str, argv)], cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600
    )
    if done.returncode != code:
        pytest.fail(f"{' '.join(map(str, argv))} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done


def test_the_plugin_is_short():
    assert set(FILES) == {"pyproject.toml", "runq_process_rss.py", "test_process_rss.py"}
    plugin = FILES["pyproject.toml"] + FILES["runq_process_rss.py"]
    assert len(plugin.splitlines()) < MOST_LINES


def test_the_plugin_installs_conforms_and_runs_a_night(tmp_path):
    source = tmp_path / "source"
    ignored = shutil.ignore_patterns(".git", ".venv", "runs", "__pycache__", ".*_cache", "tests", ".hypothesis")
    shutil.copytree(REPO, source, ignore=ignored)
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    for name, text in FILES.items():
        (plugin / name).write_text(text, encoding="utf-8")

    left_out = ("PYTHONPATH", "VIRTUAL_ENV", "RUNQ_RUNS", "PYENV_VERSION")
    env = {name: value for name, value in os.environ.items() if name not in left_out and not name.startswith("COV")}
    isolation = ["--no-isolation"] if find_spec("hatchling") else []
    call(sys.executable, "-m", "build", "--wheel", *isolation, ".", cwd=source, env=env)
    (wheel,) = (source / "dist").glob("*.whl")

    bin_dir = tmp_path / "venv" / "bin"
    env |= {"PATH": f"{bin_dir}{os.pathsep}{env['PATH']}", "NO_COLOR": "1", "XDG_STATE_HOME": str(tmp_path / "state")}
    call(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path, env=env)
    call(bin_dir / "pip", "install", "--quiet", wheel, "pytest", cwd=tmp_path, env=env)
    call(bin_dir / "pip", "install", "--quiet", ".", cwd=plugin, env=env)

    call(bin_dir / "python", "-m", "pytest", "-q", cwd=plugin, env=env)

    rows = json.loads(call(bin_dir / "runq", "plugins", "--json", cwd=tmp_path, env=env).stdout)
    (row,) = (row for row in rows if row["name"] == "process_rss")
    assert (row["kind"], row["distribution"], row["error"]) == ("probe", "runq-process-rss", "")
    assert [option["name"] for option in row["options"]] == ["name"]

    (queue,) = (text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "process_rss" in text)
    # The process it watches is this test's own, so that the figure is not 0.
    import psutil

    folder = tmp_path / "night"
    folder.mkdir()
    (folder / "queue.yaml").write_text(queue.replace("llama-server", psutil.Process().name()), encoding="utf-8")
    done = call(bin_dir / "runq", "night", "queue.yaml", "--json", cwd=folder, env=env)
    (entry,) = json.loads(done.stdout)["entries"]
    assert entry["status"] == "complete"
    assert entry["baseline_mb"] > 1
    assert entry["peak_mb"] > 1
    (answers,) = folder.glob("runs/*_eval_*/answers.txt")
    assert answers.read_text() == "my-model"

    (folder / "queue.yaml").write_text(queue.replace("name: llama-server", "nam: x"), encoding="utf-8")
    refused = call(bin_dir / "runq", "plan", "queue.yaml", cwd=folder, env=env, code=2)
    assert "nam" in refused.stderr
    assert "Traceback" not in refused.stderr
