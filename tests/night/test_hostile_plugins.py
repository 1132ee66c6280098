"""A plugin that raises anything, or says what is no JSON: the entry's recorded failure; the night goes on."""

import signal
import time

import pytest

HANGING_CHECK = "reset: fake\n    harness: { harness: fake, bad_check: hang }"
GOOD = "reset: { backend: fake }\nprobes: [fake]\nharness: { harness: fake }"


@pytest.fixture
def night_with(workshop):
    """Run one bad entry before a good one. Returns the workshop and the bad entry's summary."""

    def run(code="", **bad):
        lines = dict(line.split(": ", 1) for line in GOOD.splitlines()) | bad
        workshop.commands(["bad", "good"], {"work": "done()"}, entries={
            "bad": "\n".join(f"{key}: {value}" for key, value in lines.items()),
            "good": GOOD,
        })  # fmt: skip
        text = workshop.queue.read_text()
        head, entries = text.split("  harness:\n    harness: command\n", 1)
        workshop.queue.write_text(head + entries[entries.index("entries:") :])
        workshop.write("memory", "1000")
        result = workshop.night(code=code)
        summary = workshop.summary()
        assert summary["entries"][1]["status"] == "complete", result.stderr
        assert "Traceback" not in result.stderr
        with workshop.reader() as reader:
            assert reader.unfinished() == []  # whatever was started has an end
            assert reader.verify() is None
        return result, summary["entries"][0]

    return run


@pytest.mark.parametrize("how", ["raise", "exit", "runq"])
def test_a_reset_that_raises_is_a_failed_reset(night_with, how):
    result, entry = night_with(reset=f"{{ backend: fake, bad: {how} }}")
    assert (result.returncode, entry["reset_verdict"], entry["status"]) == (0, "failed", "complete")
    assert not entry["baseline_proven"]


@pytest.mark.parametrize("how", ["raise", "exit", "nan", "inf"])
def test_a_probe_that_raises_or_reads_no_number_costs_its_figures(night_with, how):
    result, entry = night_with(probes=f"[{{ probe: fake, bad: '{how}' }}]")
    assert (result.returncode, entry["status"]) == (0, "complete")
    assert (entry["baseline_mb"], entry["peak_mb"], entry["model_delta_mb"]) == (None, None, None)


BAD = (
    "bad_argv: raise",
    "bad_argv: exit",
    "bad_argv: nul",
    "bad_check: raise",
    "bad_check: exit",
    "facts: nan",
    "facts: object",
)


@pytest.mark.parametrize("where", BAD)
def test_a_harness_that_raises_is_its_entrys_failure(night_with, where):
    result, entry = night_with(harness=f"{{ harness: fake, {where} }}")
    assert (result.returncode, entry["status"], entry["eval_status"]) == (1, "failed", "failed")
    assert entry["reason"]


def test_a_backend_whose_details_are_no_json_is_its_entrys_failure(night_with):
    result, entry = night_with(reset="{ backend: fake, bad_details: true }")
    assert (result.returncode, entry["status"]) == (1, "failed")
    assert "JSON" in entry["reason"]


SOON = "import runq.processes\nrunq.processes.LIMIT_S = 0.3"


@pytest.mark.parametrize("where", ["reset", "bad_argv", "bad_check"])
def test_a_plugin_that_hangs_costs_its_entry(night_with, where):
    """Half an hour of the night, shortened here; what it does after that is nobody's business any more."""
    if where == "reset":
        result, entry = night_with(code=SOON, reset="{ backend: fake, bad: hang }", on_dirty="skip")
        assert entry["status"] == "skipped"
        assert "the reset did not come back within 0.3 s" in entry["reason"]
    else:
        result, entry = night_with(code=SOON, harness=f"{{ harness: fake, {where}: hang }}")
        assert (entry["status"], entry["eval_status"]) == ("failed", "failed")
        assert "did not come back within 0.3 s" in entry["reason"]
    assert result.returncode == 1


@pytest.mark.parametrize(("bad", "last"), [("reset", "reset.started"), ("check", "step.spawned")])
def test_a_second_ctrl_c_gets_through_to_a_plugin_that_hangs(workshop, bad, last):
    shop = workshop
    shop.write("memory", "1000")
    shop.write("work.py", "import sys\nfrom pathlib import Path\n(Path(sys.argv[2]) / 'work.txt').write_text('x')\n")
    hangs = {"reset": "reset: { backend: fake, bad: hang }\n    harness: fake", "check": HANGING_CHECK}[bad]
    shop.write(
        "queue.yaml",
        "defaults: { probes: [fake], settle: { timeout_s: 2, plateau_polls: 1, poll_interval_s: 0.02 } }\n"
        f"entries:\n  - model: m\n    {hangs}\n",
    )
    runner = shop.start("night", "queue.yaml")
    spawned = shop.wait_for_event(last)
    if bad == "check":
        shop.wait_for(lambda: shop.gone(spawned.data["pid"]))
    time.sleep(0.3)
    runner.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert runner.poll() is None  # the first one waits for it
    runner.send_signal(signal.SIGINT)
    out, _ = runner.communicate(timeout=20)
    assert runner.returncode == 130, out
    assert shop.events()[-1].kind == "night.interrupted"
    with shop.reader() as reader:
        assert reader.unfinished() == []
