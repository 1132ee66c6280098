"""Steps that will not end, leave processes, prove nothing or flood: each costs its entry, never the night."""

import json
from datetime import datetime

SHORT_GRACE_S = 1.5
SHORT_GRACE = f"import runq.night\nrunq.night.run_night.__kwdefaults__['grace_s'] = {SHORT_GRACE_S}"


def moment(event):
    return datetime.fromisoformat(event.at)


def finished(shop, entry, step="work"):
    return [e for e in shop.events("step.finished") if (e.entry, e.step) == (entry, step)][-1]


def test_the_grace_between_sigterm_and_sigkill_is_ten_seconds():
    import inspect

    from runq.night import run_night

    assert inspect.signature(run_night).parameters["grace_s"].default == 10.0


ESCAPES = """
if model == "good":
    done()
    sys.exit()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:  # re-parented, a session of its own, our standard output still open
        (bundle / "grandchild.pid").write_text(str(os.getpid()))
        while True:
            print("still here", flush=True)
            time.sleep(0.05)
    os._exit(0)
os.wait()
while True: time.sleep(1)
"""


def test_must_show_5_a_step_that_ignores_sigterm_is_gone_with_all_its_descendants_in_time(workshop):
    shop = workshop
    shop.commands(["bad", "good"], {"work": ESCAPES}, defaults='reset_command: ""\nstep_timeout_s: { work: 1 }')
    result = shop.night(code=SHORT_GRACE)
    assert result.returncode == 1, result.stderr
    (started,) = [e for e in shop.events("step.started") if e.entry == 0]
    end = finished(shop, 0)
    assert (moment(end) - moment(started)).total_seconds() < 1 + SHORT_GRACE_S + 2
    assert (end.data["status"], end.data["signal"]) == ("timeout", "SIGKILL")
    grandchild = int((shop.bundle(0, "work") / "grandchild.pid").read_text())
    assert grandchild in end.data["ended_pids"] and end.data["survivors"] == []
    assert shop.gone(grandchild) and shop.marked_processes() == []
    assert finished(shop, 1).data["status"] == "ok"
    entry = shop.summary()["entries"][0]
    assert (entry["status"], entry["eval_status"], entry["error"]) == ("failed", "timeout", "work timeout (>1s)")


SCRIPTS = """
if model == "stalls":
    print("one line", flush=True)
    while True: time.sleep(1)
elif model == "busy":
    for n in range(20):
        (bundle / "progress").write_text("x" * n)
        time.sleep(0.1)
    done()
elif model == "nothing":
    print("all is well")
elif model == "floods":
    for _ in range(48):
        sys.stdout.write("x" * (1 << 20))
    print()
    print("the last word")
    sys.exit(9)
elif model == "signal":
    os.kill(os.getpid(), signal.SIGSEGV)
elif model == "deletes":
    import shutil
    shutil.rmtree(bundle)
elif model == "names":
    done()
    with open(os.fsencode(str(bundle)) + b"/\\xff\\xfe", "w"): pass
    sys.stdout.buffer.write(b"\\x1b[31m\\xff\\x00 red\\n")
    sys.exit(1)
else:
    done()
"""


def test_whatever_a_step_does_its_end_is_classified_and_the_next_entry_runs(workshop):
    shop = workshop
    models = ["stalls", "busy", "nothing", "floods", "signal", "deletes", "names", "good"]
    shop.commands(models, {"work": SCRIPTS}, defaults='reset_command: ""\nstall_timeout_s: { work: 1 }')
    assert shop.night().returncode == 1
    told = {}
    for number, model in enumerate(models):
        data = finished(shop, number).data
        told[model] = (data["status"], data["reason"])
    assert told == {
        "stalls": ("stalled", "neither its log nor its bundle grew for 1 s"),
        "busy": ("ok", ""),
        "nothing": ("failed", "it exited with 0, but it left no work.txt"),
        "floods": ("failed", "it exited with 9"),
        "signal": ("failed", "it was ended by SIGSEGV"),
        "deletes": ("failed", "it exited with 0, but it left no work.txt"),
        "names": ("failed", "it exited with 1"),
        "good": ("ok", ""),
    }
    tail = finished(shop, 3).data["log_tail"]
    assert tail[-1] == "the last word" and len(json.dumps(tail)) < 20_000
    assert "\x1b" not in "".join(finished(shop, 6).data["log_tail"])
    summary = shop.summary()
    assert [e["eval_status"] for e in summary["entries"]] == [
        "timeout", "ok", "failed", "failed", "failed", "failed", "failed", "ok",
    ]  # fmt: skip
    assert summary["entries"][0]["error"] == "work stalled (>1s)"
    assert (summary["done"], summary["complete"], summary["failed"]) == (8, 2, 6)


def test_fault_2_an_artifact_that_the_step_did_not_write_proves_nothing(workshop):
    shop = workshop
    shop.commands(["a"], {"first": 'done()\n(bundle / "second.txt").write_text("old")', "second": "pass"})
    assert shop.night().returncode == 1
    end = finished(shop, 0, "second")
    assert end.data["status"] == "failed"
    assert end.data["reason"] == "it exited with 0, but it did not write second.txt: the file is older than the step"
    # Its own folder and its own snapshot for every attempt: the old file proves a resumed attempt as little.
    assert shop.night("--resume").returncode == 1
    assert shop.attempts(0, "second") == [(1, "failed"), (2, "failed")]


def test_a_program_that_cannot_be_started_is_its_entrys_failure(workshop):
    shop = workshop
    shop.commands(
        ["absent", "good"],
        {"work": "done()"},
        entries={
            "absent": "harness: { harness: command, steps: { work: { argv: [no-such-program], artifacts: [x] } } }"
        },
    )
    assert shop.night().returncode == 1
    data = finished(shop, 0).data
    assert data["status"] == "failed" and "no-such-program" in data["reason"]
    assert [e["status"] for e in shop.summary()["entries"]] == ["failed", "complete"]


def test_a_pack_that_vanishes_between_plan_and_start_is_its_entrys_failure(touchstone_queue):
    shop = touchstone_queue
    shop.write("packs/late.yaml", "id: late\n")
    text = shop.queue.read_text().replace("packs/office.yaml, model: one", "packs/office.yaml, model: wait")
    text = text.replace("pack: packs/office.yaml\n    model: { id", "pack: packs/late.yaml\n    model: { id")
    shop.queue.write_text(text)
    runner = shop.start("night", "queue.yaml")
    shop.wait_for_event("step.spawned", entry=0, step="eval")
    (shop.folder / "packs/late.yaml").unlink()
    shop.go.touch()
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 1, out
    summary = shop.summary()
    assert [e["status"] for e in summary["entries"]] == ["complete", "failed", "complete"]
    assert "late.yaml" in summary["entries"][1]["reason"]
    assert (summary["entries"][1]["eval_status"], summary["entries"][1]["judge_status"]) == ("failed", "skipped")
    # Once it is back, a resume runs just that entry.
    shop.write("packs/late.yaml", "id: late\n")
    assert shop.night("--resume").returncode == 0
    assert shop.attempts(1, "eval") == [(1, "ok")] and shop.attempts(0, "eval") == [(1, "ok")]
