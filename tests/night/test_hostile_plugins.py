"""A plugin that raises anything, or says what is no JSON: the entry's recorded failure; the night goes on."""

import pytest

GOOD = "reset: { backend: fake }\nprobes: [fake]\nharness: { harness: fake }"


@pytest.fixture
def night_with(workshop):
    """Run one bad entry before a good one. Returns the workshop and the bad entry's summary."""

    def run(**bad):
        lines = dict(line.split(": ", 1) for line in GOOD.splitlines()) | bad
        workshop.commands(["bad", "good"], {"work": "done()"}, entries={
            "bad": "\n".join(f"{key}: {value}" for key, value in lines.items()),
            "good": GOOD,
        })  # fmt: skip
        text = workshop.queue.read_text()
        head, entries = text.split("  harness:\n    harness: command\n", 1)
        workshop.queue.write_text(head + entries[entries.index("entries:") :])
        workshop.write("memory", "1000")
        result = workshop.night()
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
