"""Nights to report on: told event by event, and a real one in which everything happens that a page has to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..core.conftest import told
from ..night.conftest import Workshop, workshop, workshop_class

__all__ = ["told", "workshop", "workshop_class"]

WORK = """\
import json, os, pathlib, sys, time
model, bundle = sys.argv[1], pathlib.Path(sys.argv[2])
pathlib.Path("memory").write_text({"good": "1500", "better": "3200"}.get(model, "2000"))
print(f"{model} <b>works</b>", flush=True)
if model == "broken":
    print("Traceback (most recent call last):\\nConnectionRefusedError: [Errno 111] refused", file=sys.stderr)
    sys.exit(1)
if model == "endless":
    time.sleep(600)
score = {"good": 0.5, "better": 0.75, "late": 0.625}[model]
told = {"facts": {"answers": 40, "answers_failed": 2, "tokens_per_second": 31.25},
        "metrics": [{"name": "accuracy", "value": score, "stderr": 0.125, "n": 40}, {"name": "f1", "value": score / 2}]}
(bundle / "told.json").write_text(json.dumps(told))
(bundle / "work.txt").write_text(model)
"""

QUEUE = """\
defaults:
  probes: [fake]
  settle: { timeout_s: 0.5, plateau_polls: 2, poll_interval_s: 0.02, epsilon_mb: 100 }
  reset: { backend: fake, mb: 1000, verdict: verified }
  harness: fake
entries:
  - { model: good, pack: packs/office.yaml }
  - { model: broken, pack: packs/office.yaml }
  - { model: endless, pack: packs/office.yaml, step_timeout_s: { work: 1 } }
  - { model: late, pack: packs/office.yaml, reset: { backend: fake, mb: 1400, verdict: unverified } }
  - { model: better, pack: packs/office.yaml }
"""
"""A failure, a timeout, a dirty baseline, and two that are well; memory is a file that resets and steps write."""


@pytest.fixture(scope="session")
def real_night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """That night, run by `runq night`."""
    folder = tmp_path_factory.mktemp("real")
    shop = Workshop(folder, tmp_path_factory.mktemp("state"))
    shop.write("queue.yaml", QUEUE)
    shop.write("work.py", WORK)
    shop.write("packs/office.yaml", "id: office\n")
    shop.write("memory", "3000")
    ran = shop.night()
    assert ran.returncode == 1, ran.stderr
    yield shop


@pytest.fixture(scope="session")
def real_page(real_night: Workshop) -> Path:
    """Its page, as `runq report` writes it."""
    ran = real_night.runq("report", "--runs", "runs")
    assert (ran.returncode, ran.stderr) == (0, "")
    return Path(ran.stdout.strip())
