"""What the queue file and the command line decide: on_dirty, retries, --only, rerun, --night, --json."""

import json
import shlex

DIRTY = "reset: { backend: command, command: 'true', verify: python verify.py }\non_dirty: "
FAILING_VERIFY = "import sys\nprint('one model is still there')\nsys.exit(1)\n"


def dirty(shop, policy, verify=FAILING_VERIFY):
    shop.commands(["a", "b"], {"work": "done()"}, defaults=DIRTY + policy)
    shop.write("verify.py", verify)


def verdicts(shop):
    return [(e.entry, e.data["verdict"]) for e in shop.events("reset.finished")]


def test_on_dirty_warn_records_and_goes_on(workshop):
    dirty(workshop, "warn")
    assert workshop.night().returncode == 0
    assert verdicts(workshop) == [(0, "failed"), (1, "failed")]
    summary = workshop.summary()
    assert [(e["status"], e["reset_verdict"]) for e in summary["entries"]] == [("complete", "failed")] * 2
    assert [w["entry"] for w in summary["warnings"]] == [0, 1]
    assert all(
        "one model is still there" in w["message"] and "on_dirty: warn" in w["message"] for w in summary["warnings"]
    )
    assert "## Warnings" in workshop.markdown()


def test_on_dirty_skip_costs_the_entry(workshop):
    dirty(workshop, "skip")
    assert workshop.night().returncode == 1
    assert workshop.events("step.started") == []
    summary = workshop.summary()
    assert [e["status"] for e in summary["entries"]] == ["skipped", "skipped"]
    assert all("one model is still there" in e["error"] for e in summary["entries"])
    # They are left to run, and run once the endpoint is clean.
    workshop.write("verify.py", "")
    assert workshop.night("--resume").returncode == 0
    assert workshop.summary()["complete"] == 2


def test_on_dirty_stop_ends_the_night_and_leaves_the_rest_pending(workshop):
    dirty(workshop, "stop")
    assert workshop.night().returncode == 1
    assert {e.entry for e in workshop.events()} == {None, 0}
    summary = workshop.summary()
    assert [e["status"] for e in summary["entries"]] == ["skipped", "pending"]
    assert (summary["state"], summary["pending"]) == ("finished", 1)
    assert any("on_dirty: stop" in w["message"] for w in summary["warnings"])
    workshop.write("verify.py", "")
    assert workshop.night("--resume").returncode == 0


def test_on_dirty_retry_tries_the_reset_once_more(workshop):
    once = (
        "import pathlib, sys\nflag = pathlib.Path('tried')\nif not flag.exists():\n    flag.touch()\n    sys.exit(1)\n"
    )
    dirty(workshop, "retry", once)
    assert workshop.night("--only", "e0").returncode == 0
    assert verdicts(workshop) == [(0, "failed"), (0, "verified")]
    (warning,) = workshop.summary()["warnings"]
    assert "the reset is tried once more" in warning["message"]
    assert workshop.summary()["entries"][0]["reset_verdict"] == "verified"


def test_on_dirty_retry_goes_on_when_the_second_reset_fails_too(workshop):
    dirty(workshop, "retry")
    assert workshop.night("--only", "e0").returncode == 0
    assert verdicts(workshop) == [(0, "failed"), (0, "failed")]
    assert len(workshop.events("step.started")) == 1


def test_the_none_backend_never_triggers_on_dirty(workshop):
    workshop.commands(["a"], {"work": "done()"}, defaults='reset_command: ""\non_dirty: stop')
    assert workshop.night().returncode == 0
    assert verdicts(workshop) == [(0, "unverified")]
    assert workshop.summary()["warnings"] == []


def test_retries_run_a_failed_step_again_after_a_wait_and_a_reset(workshop):
    shop = workshop
    third = "n = len(list(Path('tries').iterdir()))\n(Path('tries') / str(n)).touch()\nif n < 2: sys.exit(1)\ndone()"
    shop.commands(["a"], {"work": third}, defaults='reset_command: ""\nretries: 3\nretry_wait_s: 0.3')
    (shop.folder / "tries").mkdir()
    assert shop.night().returncode == 0
    assert shop.attempts(0, "work") == [(1, "failed"), (2, "failed"), (3, "ok")]
    order = [e.kind for e in shop.events("reset.finished", "step.started", "step.finished")]
    assert order == ["reset.finished", "step.started", "step.finished"] * 3
    finished, resets = shop.events("step.finished"), shop.events("reset.started")
    for before, after in zip(finished[:2], resets[1:], strict=True):
        assert after.elapsed_s - before.elapsed_s >= 0.3
    folders = {shop.bundle(0, "work", n).name for n in (1, 2, 3)}
    base = shop.bundle(0, "work", 1).name
    assert folders == {base, f"{base}_a2", f"{base}_a3"}
    entry = shop.summary()["entries"][0]
    assert (entry["status"], len(entry["steps"][0]["attempts"])) == ("complete", 3)


def test_retries_end(workshop):
    script = "if model == 'a': sys.exit(1)\ndone()"
    workshop.commands(["a", "b"], {"work": script}, defaults='reset_command: ""\nretries: 1')
    assert workshop.night().returncode == 1
    assert workshop.attempts(0, "work") == [(1, "failed"), (2, "failed")]
    assert workshop.attempts(1, "work") == [(1, "ok")]


def two_steps(shop):
    shop.commands(["a", "b"], {"first": "done()", "second": "done()"})
    assert shop.night().returncode == 0


def test_rerun_runs_an_entry_or_a_step_again_and_nothing_else(workshop):
    shop = workshop
    two_steps(shop)
    before = shop.events()[-1].id
    assert shop.runq("rerun", "e1", "second").returncode == 0
    assert shop.runq("rerun", "1").returncode == 0
    started = [(e.entry, e.step, e.attempt) for e in shop.events("step.started") if e.id > before]
    assert started == [(1, "second", 2), (1, "first", 2), (1, "second", 3)]
    assert len(shop.nights()) == 1
    assert shop.summary()["complete"] == 2
    for words in (("rerun", "e7"), ("rerun", "e1", "third"), ("rerun", "x")):
        refused = shop.runq(*words)
        assert refused.returncode == 2 and "error:" in refused.stderr


def test_only_runs_what_is_named(workshop):
    shop = workshop
    shop.commands(["a", "b", "c"], {"work": "done()"})
    assert shop.night("--only", "e0,2").returncode == 0
    assert [e.entry for e in shop.events("step.started")] == [0, 2]
    summary = shop.summary()
    assert [e["status"] for e in summary["entries"]] == ["complete", "pending", "complete"]
    assert (summary["total"], summary["done"]) == (3, 2)
    assert shop.night("--resume").returncode == 0
    assert [e.entry for e in shop.events("step.started")] == [0, 2, 1]


def test_a_dry_run_and_a_plan_write_nothing(workshop):
    workshop.commands(["a"], {"work": "done()"})
    before = workshop.files(workshop.folder.parent)
    for words in (("night", "queue.yaml", "--dry-run"), ("plan", "queue.yaml")):
        result = workshop.runq(*words)
        assert result.returncode == 0 and "e0  a" in result.stdout
    assert workshop.files(workshop.folder.parent) == before
    assert not workshop.runs.exists()


def test_json_is_the_summary_and_nothing_else_on_stdout(workshop):
    workshop.commands(["a"], {"work": "done()"})
    result = workshop.night("--json")
    assert result.returncode == 0
    assert json.loads(result.stdout) == workshop.summary()


def test_a_fresh_start_prints_the_command_that_resumes_the_earlier_night(workshop):
    shop = workshop
    shop.commands(["a", "b"], {"work": "if os.path.exists('broken'): sys.exit(1)\ndone()"})
    shop.write("broken", "")
    assert shop.night().returncode == 1
    earlier = shop.nights()[0]
    (shop.folder / "broken").unlink()
    fresh = shop.night()
    assert fresh.returncode == 0
    assert [e.data["status"] for e in shop.events("step.finished")] == ["failed", "failed", "ok", "ok"]
    (line,) = [line for line in fresh.stderr.splitlines() if "earlier night" in line]
    command = line.split(": ", 1)[1]
    assert command == f"runq night {shop.queue} --resume --night {earlier}"
    assert shop.runq(*shlex.split(command)[1:]).returncode == 0
    assert shop.summary(earlier)["complete"] == 2
    assert "earlier night" not in shop.night().stderr


def test_a_night_is_named_by_its_id_or_its_folder(workshop):
    shop = workshop
    shop.commands(["a"], {"work": "if os.path.exists('broken'): sys.exit(1)\ndone()"})
    shop.write("broken", "")
    assert [shop.night().returncode, shop.night().returncode] == [1, 1]
    newer, older = shop.nights()
    (shop.folder / "broken").unlink()
    assert shop.night("--resume", "--night", f"runs/{older}_queue").returncode == 0
    assert (shop.summary(older)["complete"], shop.summary(newer)["complete"]) == (1, 0)
    # The latest that has work left, and at last none.
    assert shop.night("--resume").returncode == 0
    assert shop.summary(newer)["complete"] == 1
    assert "nothing is left" in shop.night("--resume").stderr
    assert "nothing is left" in shop.night("--resume", "--night", older).stderr
    unknown = shop.night("--resume", "--night", "2020-01-01_000000")
    assert unknown.returncode == 2 and newer in unknown.stderr


def test_the_environment_of_a_step(workshop):
    shop = workshop
    script = "(bundle / 'env').write_text('\\n'.join(f'{k}={v}' for k, v in os.environ.items()))\ndone()"
    shop.commands(["a"], {"work": script}, defaults='reset_command: ""\nenv: { PLACE: "in ${WHERE}/x", FLAG: "1" }')
    assert shop.night(env={"WHERE": "here", "OTHER": "inherited"}).returncode == 0
    env = dict(line.split("=", 1) for line in (shop.bundle(0, "work") / "env").read_text().splitlines() if "=" in line)
    assert (env["PLACE"], env["FLAG"], env["OTHER"]) == ("in here/x", "1", "inherited")
    with shop.reader() as reader:
        assert env["RUNQ_STEP"] == f"{reader.uuid}/{shop.nights()[0]}/0/work/1"


SECRET = "sk-5f1e9c0a7b3d"


def test_a_secret_never_reaches_the_journal_or_what_is_derived_from_it(workshop):
    shop = workshop
    leak = "print('key', os.environ['OPENAI_API_KEY'], os.environ['MINE_TOKEN'])\nprint(sys.argv[3])\nsys.exit(1)"
    entry = "model: { id: a, extra_body: { api_key: my-own-secret-value } }"
    shop.commands(["a"], {"work": leak}, defaults='reset_command: ""\nenv: { MINE_TOKEN: "${OPENAI_API_KEY}-2" }')
    text = shop.queue.read_text().replace("model: a", entry).replace("'{bundle}']", "'{bundle}', '{model_json}']")
    shop.queue.write_text(text)
    env = {"OPENAI_API_KEY": SECRET}
    assert shop.night(env=env).returncode == 1
    said = shop.events("step.finished")[0].data["log_tail"]
    assert said[0] == "key *** ***" or said[0].startswith("key ***")
    shown = [
        shop.runq("plan", "queue.yaml", "--json", env=env).stdout,
        shop.runq("plan", "queue.yaml", env=env).stdout,
        shop.runq("status", "--json", env=env).stdout,
        shop.night("--resume", "--json", env=env).stdout,
        shop.markdown(),
    ]
    files = [p for p in shop.runs.rglob("*") if p.is_file() and p.suffix != ".log"]
    blob = b"".join(p.read_bytes() for p in files) + "".join(shown).encode()
    assert shop.journal in files
    for secret in (SECRET, "my-own-secret-value"):
        assert secret.encode() not in blob
