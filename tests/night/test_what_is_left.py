"""What a resume and a rerun leave alone, and that the journal and the plan agree on what is left."""

import json
import os
import signal

import pytest

EVAL = "done()\n"
JUDGE = "import os\nif os.environ.get('FAIL'):\n    (bundle / 'judge.txt').write_text('')\n    sys.exit(1)\ndone()\n"


def judged(shop, **more):
    shop.commands(["a", "b"], {"eval": EVAL, "judge": JUDGE}, **more)


def left(shop):
    with shop.reader() as reader:
        return [(row["entry"], row["step"]) for row in reader.todo(shop.nights()[0])]


def test_a_rerun_that_fails_leaves_the_good_result_alone(workshop):
    judged(workshop)
    assert workshop.night().returncode == 0
    good = workshop.bundle(0, "judge")
    before = workshop.files(good)
    assert workshop.runq("rerun", "e0", "judge", env={"FAIL": "1"}).returncode == 1
    assert workshop.files(good) == before
    assert workshop.bundle(0, "judge", 2) == good.with_name(good.name + "_judge_a2")
    # It failed, so it is gone on with where it was.
    assert workshop.night("--resume").returncode == 0
    assert workshop.bundle(0, "judge", 3) == workshop.bundle(0, "judge", 2)


def test_a_complete_night_is_not_woken_by_a_later_edit(workshop):
    judged(workshop)
    assert workshop.night().returncode == 0
    workshop.write("eval.py", (workshop.folder / "eval.py").read_text() + "# edited\n")
    assert workshop.night().returncode == 0
    second, first = workshop.nights()
    events = len(workshop.events())
    resumed = workshop.night("--resume")
    assert resumed.returncode == 0
    assert f"nothing is left to run in night {second}" in resumed.stderr
    assert len(workshop.events()) == events
    plan = json.loads(workshop.runq("plan", "queue.yaml", "--resume", "--json").stdout)
    assert plan["night"] == second
    # An older one that is not complete is still found.
    assert workshop.runq("night", "queue.yaml", "--resume", "--night", first, "--only", "e0").returncode == 0


def test_a_rerun_whose_reset_failed_is_run_by_a_resume(workshop):
    dirty = "reset: { backend: command, command: 'true', verify: python verify.py }\non_dirty: skip"
    judged(workshop, defaults=dirty)
    workshop.write("verify.py", "")
    assert workshop.night().returncode == 0
    workshop.write("verify.py", "import sys\nsys.exit(1)\n")
    assert workshop.runq("rerun", "e0").returncode == 1
    assert left(workshop) == [(0, "eval"), (0, "judge")]
    workshop.write("verify.py", "")
    assert workshop.night("--resume").returncode == 0
    assert left(workshop) == []
    assert workshop.attempts(0, "eval") == [(1, "ok"), (2, "ok")]
    assert workshop.summary()["complete"] == 2


def test_an_edit_that_is_taken_back_leaves_nothing(workshop):
    judged(workshop)
    assert workshop.night().returncode == 0
    text, queue = (workshop.folder / "eval.py").read_text(), workshop.queue.read_text()
    workshop.write("eval.py", text + "# edited\n")
    workshop.queue.write_text(queue.replace("entries:", "  cooldown_s: 300\nentries:"))
    runner = workshop.start("night", "queue.yaml", "--resume")
    workshop.wait_for_event("cooldown.started")
    runner.send_signal(signal.SIGINT)
    assert runner.wait() == 130
    assert left(workshop) != []
    workshop.write("eval.py", text)
    workshop.queue.write_text(queue)
    resumed = workshop.night("--resume")
    assert resumed.returncode == 0
    assert "nothing is left to run" in resumed.stderr
    assert left(workshop) == []
    assert workshop.summary()["complete"] == 2
    assert workshop.attempts(0, "eval") == [(1, "ok")]


def test_a_failed_entry_that_is_deleted_leaves_nothing(workshop):
    workshop.commands(["a", "bad"], {"work": "done() if model == 'a' else sys.exit(1)"})
    assert workshop.night().returncode == 1
    workshop.queue.write_text(workshop.queue.read_text().replace("  - model: bad\n", ""))
    assert workshop.night("--resume").returncode == 0
    assert [entry["model_id"] for entry in workshop.summary()["entries"]] == ["a"]


def test_a_key_that_is_part_of_a_path_hides_no_path(workshop):
    judged(workshop)
    key = {"OPENAI_API_KEY": workshop.folder.name}
    assert len(workshop.folder.name) < 6 or workshop.night(env=key).returncode == 0
    key = {"OPENAI_API_KEY": workshop.folder.parent.name}
    assert workshop.night(env=key).returncode == 0
    (plan,) = [e.data for e in workshop.events("night.started") if e.night == workshop.nights()[0]]
    assert plan["queue_path"] == str(workshop.queue)
    assert "nothing is left" in workshop.night("--resume", env=key).stderr


@pytest.mark.parametrize("spelling", ["dots", "link", "folder link"])
def test_the_same_queue_under_another_spelling_is_the_same_queue(workshop, spelling):
    judged(workshop)
    spelled = workshop.folder / "x" / ".." / "queue.yaml"
    (workshop.folder / "x").mkdir()
    if spelling == "link":
        spelled = workshop.folder / "link.yaml"
        spelled.symlink_to(workshop.queue)
    elif spelling == "folder link":
        (workshop.folder.parent / "elsewhere").symlink_to(workshop.folder)
        spelled = workshop.folder.parent / "elsewhere" / "queue.yaml"
    assert workshop.runq("night", str(spelled)).returncode == 0
    workshop.queue.write_text(workshop.queue.read_text() + "# a comment\n")
    assert "nothing is left" in workshop.night("--resume").stderr


def test_a_night_of_another_folder_is_not_continued(workshop, tmp_path):
    judged(workshop)
    other = tmp_path / "other"
    other.mkdir()
    for path in workshop.folder.glob("*.*"):
        (other / path.name).write_bytes(path.read_bytes())
    runs = tmp_path / "shared"
    assert workshop.night("--runs", str(runs), "--only", "e0").returncode == 0
    resumed = workshop.runq("night", "queue.yaml", "--resume", "--runs", str(runs), cwd=other)
    assert resumed.returncode == 2
    assert "has no night of" in resumed.stderr
    (night,) = [path.name.removesuffix("_queue") for path in runs.glob("*_queue")]
    named = workshop.runq("night", "queue.yaml", "--resume", "--night", night, "--runs", str(runs), cwd=other)
    assert named.returncode == 2
    assert f"the night {night} is of another queue file" in named.stderr


SERVER = """
import http.server, os, sys
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        if self.path == "/die":
            self.wfile.flush()
            os._exit(1)
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Health).serve_forever()
"""

CRASHING = """
import urllib.request
def ask(path):
    urllib.request.urlopen(f"http://127.0.0.1:PORT{path}", timeout=5).read()
tried = Path("tried")
if not tried.exists():
    tried.touch()
    ask("/die")
    sys.exit(1)
ask("/health")
done()
"""


def test_a_retry_gets_a_server_that_died_back(workshop, free_port):
    workshop.write("server.py", SERVER)
    workshop.commands(
        ["a"],
        {"eval": "done()", "judge": CRASHING.replace("PORT", str(free_port))},
        defaults=f"reset: {{ backend: server, port: {free_port}, argv: [python, server.py, '{{model}}', '{{port}}'],"
        " health_interval_s: 0.05 }\nretries: 1",
    )
    assert workshop.night().returncode == 0
    assert workshop.attempts(0, "judge") == [(1, "failed"), (2, "ok")]
    assert workshop.attempts(0, "eval") == [(1, "ok")]
    ended = workshop.events("server.finished")
    assert [event.data["stopped"] for event in ended] == [False, True]


def test_nights_tells_a_dead_runner_as_status_does(workshop):
    workshop.commands(["a"], {"work": "time.sleep(60)"})
    runner = workshop.start("night", "queue.yaml")
    workshop.wait_for_event("step.spawned")
    assert [row["state"] for row in json.loads(workshop.runq("nights", "--json").stdout)] == ["running"]
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait()
    assert [row["state"] for row in json.loads(workshop.runq("nights", "--json").stdout)] == ["died"]
    assert json.loads(workshop.runq("status", "--json").stdout)["state"] == "died"
