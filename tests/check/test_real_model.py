"""`runq check` on the first-night example: llama.cpp's server and a real model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..first_night.conftest import copy_example, free_port, user_env

pytestmark = [pytest.mark.real_model, pytest.mark.slow]


def test_the_example_passes_its_check(tmp_path: Path) -> None:
    folder, port = copy_example(tmp_path / "example"), free_port()
    queue = folder / "queue.yaml"
    queue.write_text(queue.read_text(encoding="utf-8").replace("8099", str(port)), encoding="utf-8")
    ran = subprocess.run(
        [str(Path(sys.executable).with_name("runq")), "check", "queue.yaml", "--json"],
        cwd=folder,
        env=user_env(tmp_path / "state"),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=280,
    )
    assert ran.returncode == 0, ran.stderr
    (row,) = json.loads(ran.stdout)  # three entries, eval and judge: one model on one endpoint
    assert (row["model"], row["verdict"], row["status"], row["role"]) == ("smollm2-135m", "ok", "ok", "eval")
    assert row["content_chars"] > 0 and row["loaded_models"] == ["smollm2-135m"]
    assert (row["reset_verdict"], row["evict_verdict"], row["memory_back"]) == ("verified", "verified", True)
    assert row["baseline_proven"] is True and 60 < row["ram_delta_mb"] < 600
