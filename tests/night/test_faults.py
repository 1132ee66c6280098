"""The ancestor's faults by their numbers, each with the right value."""

import json
import os
import shlex
import signal

import pytest


def model(shop, old, new):
    text = shop.queue.read_text()
    assert text.count(f"model: {old}") >= 1
    shop.queue.write_text(text.replace(f"model: {old}", f"model: {new}", 1))


def judgements(bundle):
    return [json.loads(line) for line in (bundle / "judgements.jsonl").read_text().splitlines()]


def test_fault_1_an_eval_whose_every_answer_failed_is_a_failed_step(touchstone_queue):
    shop = touchstone_queue
    model(shop, "one", "all-fail")
    assert shop.night().returncode == 1
    entry = shop.summary()["entries"][0]
    assert (entry["eval_status"], entry["judge_status"], entry["error"]) == ("failed", "skipped", "eval failed")
    assert (entry["answers"], entry["answers_failed"]) == (4, 4)
    (finished,) = [e for e in shop.events("step.finished") if e.entry == 0]
    assert finished.data["exit_code"] == 0
    assert "4 of 4" in finished.data["reason"] and "connection refused" in finished.data["reason"]
    assert entry["reason"] == finished.data["reason"]
    assert "4 of 4" in shop.markdown()
    # A resume does not take it for done.
    assert shop.night("--resume").returncode == 1
    assert shop.attempts(0, "eval") == [(1, "failed"), (2, "failed")]
    assert shop.attempts(1, "eval") == [(1, "ok")]


def test_fault_1_partly_failed_answers_are_shown_in_both_summaries(touchstone_queue):
    shop = touchstone_queue
    model(shop, "one", "half-fail")
    assert shop.night("--only", "e0").returncode == 0
    entry = shop.summary()["entries"][0]
    assert (entry["eval_status"], entry["answers"], entry["answers_failed"]) == ("ok", 4, 2)
    row = next(line for line in shop.markdown().splitlines() if line.startswith("| 0 "))
    assert [cell.strip() for cell in row.strip("|").split("|")][2] == "ok (2 of 4 answers failed)"


def test_fault_2_a_fresh_eval_gets_a_fresh_folder_without_old_judgements(touchstone_queue):
    shop = touchstone_queue
    assert shop.night("--only", "e0").returncode == 0
    first = shop.bundle(0, "eval")
    before = shop.files(first)
    assert shop.runq("rerun", "e0").returncode == 0
    second = shop.bundle(0, "eval", 2)
    assert second == first.with_name(first.name + "_a2")
    assert shop.bundle(0, "judge", 2) == second
    assert shop.files(first) == before
    assert len(judgements(second)) == 4
    entry = shop.summary()["entries"][0]
    assert entry["bundle_dir"] == f"runs/{second.name}"


def test_fault_2_a_changed_judge_works_on_a_copy_without_old_judgements(touchstone_queue):
    shop = touchstone_queue
    assert shop.night("--only", "e0").returncode == 0
    first = shop.bundle(0, "judge")
    before = shop.files(first)
    new = "endpoint: { base_url: http://127.0.0.1:9 }\nmodel: judge-a\ntemperature: 0.5\n"
    shop.write("judge.yaml", new)
    assert shop.night("--resume", "--only", "e0").returncode == 0
    second = shop.bundle(0, "judge", 2)
    assert second == first.with_name(first.name + "_judge_a2")
    assert shop.files(first) == before
    assert [row["judge"] for row in judgements(second)] == [new] * 4
    assert (second / "responses.jsonl").read_bytes() == (first / "responses.jsonl").read_bytes()
    assert shop.attempts(0, "eval") == [(1, "ok")]
    # Again, although it was ok: fresh judgements, and the good ones stay.
    before = shop.files(second)
    assert shop.runq("rerun", "e0", "judge").returncode == 0
    third = shop.bundle(0, "judge", 3)
    assert third == first.with_name(first.name + "_judge_a3")
    assert shop.files(second) == before
    assert shop.summary()["entries"][0]["bundle_dir"] == f"runs/{third.name}"


def test_fault_2_the_same_judge_goes_on_where_it_was_cut_short(touchstone_queue):
    shop = touchstone_queue
    text = shop.queue.read_text().replace("judge_model: judge-a }", "judge_model: holistic-error }")
    shop.queue.write_text(text)
    assert shop.night("--only", "e0").returncode == 1
    bundle = shop.bundle(0, "judge")
    (bundle / "judgements.jsonl").write_text('{"prompt": 0, "judge": "kept"}\n')
    assert shop.night("--resume", "--only", "e0").returncode == 1
    assert shop.bundle(0, "judge", 2) == bundle
    assert [row["judge"] == "kept" for row in judgements(bundle)] == [True, False, False, False]


def test_a_runner_that_dies_while_it_copies_a_bundle_leaves_no_half_copy_behind(touchstone_queue):
    """The copy for a changed judge is made before its attempt is journalled: the next attempt has the same number."""
    shop = touchstone_queue
    assert shop.night("--only", "e0").returncode == 0
    first = shop.bundle(0, "judge")
    shop.write("judge.yaml", "endpoint: { base_url: http://127.0.0.1:9 }\nmodel: judge-a\nseed: 1\n")
    die = "import os, shutil, signal\nshutil.copy2 = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)"
    dead = shop.night("--resume", "--only", "e0", code=die)
    assert dead.returncode == -signal.SIGKILL
    assert shop.night("--resume", "--only", "e0").returncode == 0
    second = shop.bundle(0, "judge", 2)
    assert second == first.with_name(first.name + "_judge_a2")
    assert (second / "responses.jsonl").read_bytes() == (first / "responses.jsonl").read_bytes()
    assert sorted(p.name for p in shop.runs.iterdir() if p.is_dir() and "_e0_" in p.name) == [first.name, second.name]


def test_fault_3_an_error_report_is_a_failed_judge(touchstone_queue):
    shop = touchstone_queue
    shop.queue.write_text(shop.queue.read_text().replace("judge_model: judge-a }", "judge_model: holistic-error }"))
    assert shop.night("--only", "e0").returncode == 1
    entry = shop.summary()["entries"][0]
    assert (entry["eval_status"], entry["judge_status"], entry["error"]) == ("ok", "failed", "judge failed")
    assert "the last call timed out" in entry["reason"]
    (finished,) = [e for e in shop.events("step.finished") if e.step == "judge"]
    assert finished.data["exit_code"] == 0


@pytest.mark.parametrize(
    ("key", "expected"),
    [("", ["eval"]), ("  reset_before: [eval, judge]\n", ["eval", "judge"]), ("  reset_before: [judge]\n", None)],
)
def test_fault_5_the_endpoint_is_reset_before_the_steps_asked_for(touchstone_queue, key, expected):
    shop = touchstone_queue
    shop.queue.write_text(shop.queue.read_text().replace("entries:", f"{key}entries:"))
    assert shop.night("--only", "e0").returncode == 0
    kinds = ("reset.finished", "settle.finished", "step.started")
    order = [e.step or e.kind.split(".")[0] for e in shop.events(*kinds)]
    if expected == ["eval"]:
        assert order == ["reset", "settle", "eval", "judge"]
    else:
        # The first step that runs is always reset for: one model per entry.
        assert order == ["reset", "settle", "eval", "reset", "settle", "judge"]
    assert [e.data["before_step"] for e in shop.events("reset.started")] == (expected or ["eval", "judge"])


def test_fault_8_what_a_step_leaves_behind_is_ended_although_it_exited_0(touchstone_queue):
    shop = touchstone_queue
    model(shop, "one", "sampler")
    assert shop.night("--only", "e0").returncode == 0
    pid = int((shop.bundle(0, "eval") / "sampler.pid").read_text())
    assert shop.gone(pid)
    (finished,) = [e for e in shop.events("step.finished") if e.step == "eval"]
    assert finished.data["ended_pids"] == [pid]
    assert shop.marked_processes() == []


def test_fault_8_every_attempt_has_its_log_with_both_streams(touchstone_queue):
    shop = touchstone_queue
    model(shop, "one", "crash")
    shop.queue.write_text(shop.queue.read_text().replace("entries:", "  retries: 1\nentries:"))
    assert shop.night("--only", "e0").returncode == 1
    for attempt in (1, 2):
        text = (shop.queue_folder() / "logs" / f"e0-eval-{attempt}.log").read_text().splitlines()
        assert text[0].startswith("touchstone eval --config ")
        assert text[-1] == "cannot reach the endpoint"
    finished = shop.events("step.finished")
    assert [e.data["log_tail"][-1] for e in finished] == ["cannot reach the endpoint"] * 2


def test_fault_10_the_exit_code_tells_failed_entries(touchstone_queue):
    shop = touchstone_queue
    model(shop, "three", "no-artifact")
    assert shop.night().returncode == 1
    assert shop.night("--only", "e0,e1").returncode == 0


def test_fault_11_a_second_start_is_told_who_runs(touchstone_queue, tmp_path):
    shop = touchstone_queue
    model(shop, "one", "wait")
    first = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned")
    count = len(shop.events())
    since = shop.events("night.started")[0].data["started_local"]
    second = shop.night("--resume")
    assert second.returncode == 3
    for word in (f"pid {first.pid}", f"since {since}", f"queue {shop.queue}", "runq status"):
        assert word in second.stderr
    # Another runs folder, another queue file, the same endpoint.
    other = shop.write("other.yaml", shop.queue.read_text())
    elsewhere = shop.runq("night", str(other), "--runs", str(tmp_path / "elsewhere"))
    assert elsewhere.returncode == 3
    assert f"pid {first.pid}" in elsewhere.stderr and "http://127.0.0.1:9" in elsewhere.stderr
    assert len(shop.events()) == count
    # Whoever only looks is not refused.
    status = shop.runq("status", "--json")
    assert status.returncode == 0
    data = json.loads(status.stdout)
    assert (data["state"], data["runner"]["pid"]) == ("running", first.pid)
    assert data["entries"][0]["steps"][0]["status"] == "running"
    command = second.stderr.split("`")[-2]
    assert shop.runq(*shlex.split(command)[1:]).returncode == 0
    shop.go.touch()
    assert first.wait(timeout=60) == 0
    assert os.path.exists(shop.queue_folder() / "summary.json")
    # The lock is free again.
    assert shop.night("--only", "e2").returncode == 0
