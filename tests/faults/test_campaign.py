"""The fault campaign in short; that it finds what it is there for; and the seeds that ever broke a law."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.faults.one_run import LAWS, OWN_LAWS
from bench.faults.scenario import KINDS, scenario

ROOT = Path(__file__).parents[2]


def campaign(*words, code=""):
    """The campaign's command; with ``code``, lines that sabotage runq first, for the runners are forked from it."""
    main = f"import sys\nfrom bench.faults import __main__ as campaign\n{code}\nsys.exit(campaign.main())"
    argv = [sys.executable, *(["-c", main] if code else ["-m", "bench.faults"]), *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280)


def told(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_twenty_runs_keep_every_law():
    done = campaign("--quick", "--seed", "1", "--json")
    assert done.returncode == 0, done.stderr
    outcomes = told(done)
    assert sorted(outcome["seed"] for outcome in outcomes) == list(range(1, 21))
    assert [outcome["broken"] for outcome in outcomes] == [{}] * 20
    assert sum(len(outcome["injected"]) for outcome in outcomes) >= 10
    assert "20 of 20 keep every law" in done.stderr
    for law in (*LAWS, *OWN_LAWS):
        assert f"20 of 20  {law}\n" in done.stderr


def test_a_seed_is_always_the_same_run_and_every_kind_of_fault_comes():
    assert [scenario(seed) for seed in range(200)] == [scenario(seed) for seed in range(200)]
    assert {fault.kind for seed in range(500) for fault in scenario(seed).faults} == set(KINDS)


KILLED_IN_A_STEP_THAT_HANGS = """
from bench.faults import one_run, scenario as s
hangs = s.PlannedWork(name="eval", does="hangs", ends="timeout")
entry = s.PlannedEntry(model="m", reset="none", on_dirty="warn", retries=0, retry_when="now", steps=(hangs,))
killed = s.Fault(kind="kill", at=1, where="step")
one_run.scenario = lambda seed: s.Scenario(
    seed=seed, entries=(entry,), probe="", order="entries", faults=(killed,), torn=False, turned=False, again=False
)
"""

SABOTAGE = {
    ("no process is left", 1): f"{KILLED_IN_A_STEP_THAT_HANGS}import runq.processes\n"
    "runq.processes.sweep = lambda *_, **__: runq.processes.Ended()",
    ("what is ok does not run again", 4): "import runq.resume\n"
    "runq.resume._reason = lambda step, last, *_: f'{last.status} in attempt 1' if last else 'has not run'",
    ("summaries are the journals", 1): "import runq.night_loop\nrunq.night_loop.write_summary = lambda context: None",
    ("no secret is told", 1): "import runq.redact\nrunq.redact.Redactor.suspects = lambda self, text: False",
}
"""What a law is there to find, a seed that meets it, and how to make runq do just that."""


@pytest.mark.parametrize(("law", "seed"), SABOTAGE)
def test_the_campaign_finds_what_breaks_a_law(law, seed, tmp_path):
    words = ["--runs", "1", "--seed", str(seed), "--folder", str(tmp_path), "--json"]
    done = campaign(*words, code=SABOTAGE[law, seed])
    assert done.returncode == 1, done.stderr
    (outcome,) = told(done)
    assert law in outcome["broken"]
    assert f"again: python -m bench.faults --runs 1 --seed {seed} --keep" in done.stderr
    assert (tmp_path / f"seed-{seed}" / "queue.yaml").exists()


def test_its_help_teaches():
    done = campaign("--help")
    assert done.returncode == 0
    assert "--seed SEED --keep" in done.stdout
