"""`pause`, `unpause`, `skip` and `stop`: asked over a local socket, done and written down by the runner alone."""

import json
import os
import signal
import socket
import stat
import time
from pathlib import Path

import pytest

from runq.locks import holder_of, journal_lock_path

WAIT = "(bundle / 'ready').touch()\nwhile not os.path.exists('go-' + model): time.sleep(0.02)\ndone()\n"


def begin(shop, *words, models=("a", "b", "c"), step=WAIT, **options):
    """A night whose first step runs and waits for `go-a`."""
    shop.commands(models, {"work": step}, **options)
    runner = shop.start("night", "queue.yaml", *words)
    started(shop, 0)
    return runner


def started(shop, entry):
    shop.wait_for_event("step.spawned", entry=entry)
    shop.wait_for(lambda: (shop.bundle(entry, "work") / "ready").exists())


def go(shop, *models):
    for model in models:
        (shop.folder / f"go-{model}").touch()


def told(shop, *words):
    result = shop.runq(*words, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def kinds(shop, *wanted):
    return [event.kind for event in shop.events(*wanted)]


CONTROL = ("night.asked", "night.paused", "night.unpaused")


def test_a_pause_lets_the_step_finish_and_starts_nothing_new(workshop):
    shop = workshop
    runner = begin(shop, defaults='reset_command: ""\nstep_timeout_s: { work: 3 }')
    result = shop.runq("pause")
    night = shop.nights()[0]
    assert result.stdout == f"night {night} pauses as soon as e0 work has finished; `runq unpause` goes on\n"
    status = told(shop, "status")
    assert (status["state"], status["asked"], status["pause"]) == ("running", ["pause"], None)
    assert (status["now"]["kind"], status["now"]["step"]) == ("step.spawned", "work")
    again = told(shop, "pause")
    assert (again["taken"], again["pausing"], again["paused"]) == (False, True, False)

    go(shop, "a", "b", "c")
    paused = shop.wait_for_event("night.paused")
    status = told(shop, "status")
    assert (status["state"], status["complete"], status["asked"]) == ("paused", 1, [])
    assert status["pause"] == {"since": paused.at, "by": paused.data["by"]}
    text = shop.runq("status").stdout
    assert f"paused (pid {runner.pid})" in text and "`runq unpause`" in text
    time.sleep(1.0)  # longer than a night needs to begin its next entry
    assert [e.entry for e in shop.events("entry.started")] == [0]
    assert "is paused already" in shop.runq("pause").stdout

    assert shop.runq("unpause").stdout == f"night {night} goes on\n"
    out, _ = runner.communicate(timeout=60)
    assert runner.returncode == 0, out
    assert kinds(shop, *CONTROL) == ["night.asked", "night.paused", "night.asked", "night.unpaused"]
    assert [e.data["what"] for e in shop.events("night.asked")] == ["pause", "unpause"]
    (unpaused,) = shop.events("night.unpaused")
    assert 1.0 <= unpaused.data["seconds"] < 30
    assert all(e.data["seconds"] < 3 for e in shop.events("step.finished"))
    assert shop.runq("replay", "--verify").returncode == 0


def test_a_pause_between_two_steps_is_followed_by_a_reset(workshop):
    """Whoever pauses wants the machine, and may have loaded anything meanwhile."""
    shop = workshop
    shop.commands(["a"], {"work": WAIT, "judge": "done()"})
    runner = shop.start("night", "queue.yaml")
    started(shop, 0)
    told(shop, "pause")
    go(shop, "a")
    shop.wait_for_event("night.paused")
    told(shop, "unpause")
    assert runner.wait(timeout=60) == 0
    assert [e.data["before_step"] for e in shop.events("reset.started")] == ["work", "judge"]


def test_a_pause_can_be_taken_back_before_it_begins(workshop):
    shop = workshop
    runner = begin(shop)
    told(shop, "pause")
    assert told(shop, "unpause")["taken"] is True
    assert shop.runq("unpause").stdout == f"night {shop.nights()[0]} is not paused\n"
    go(shop, "a", "b", "c")
    assert runner.wait(timeout=60) == 0
    assert kinds(shop, *CONTROL) == ["night.asked", "night.asked"]


def test_stop_ends_the_night_as_ctrl_c_does_and_says_who_asked(workshop):
    shop = workshop
    runner = begin(shop)
    result = shop.runq("stop", env={"USER": "nora", "LOGNAME": "nora"})
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"night {shop.nights()[0]} has ended; `runq status` shows how to go on\n"
    assert runner.wait(timeout=5) == 130
    assert shop.marked_processes() == []
    assert [(e.kind, e.data.get("status") or e.data.get("what"), e.data.get("reason")) for e in shop.events()[-4:]] == [
        ("night.asked", "stop", None),
        ("step.finished", "interrupted", "the night was interrupted"),
        ("entry.finished", "interrupted", "the night was interrupted"),
        ("night.interrupted", None, "runq stop, asked by nora"),
    ]
    go(shop, "a", "b", "c")
    assert shop.night("--resume").returncode == 0


@pytest.mark.parametrize(
    ("option", "finished", "said"),
    [
        ("--after-step", [(0, "work")], "ends as soon as e0 work has finished"),
        ("--after-entry", [(0, "work"), (0, "judge")], "ends after e0"),
    ],
)
def test_a_stop_that_lets_something_finish_first(workshop, option, finished, said):
    shop = workshop
    shop.commands(["a", "b"], {"work": WAIT, "judge": "done()"})
    runner = shop.start("night", "queue.yaml")
    started(shop, 0)
    result = shop.runq("stop", option)
    assert said in result.stdout
    assert told(shop, "status")["asked"] == [f"stop_{option[2:].replace('-', '_')}"]
    go(shop, "a", "b")
    assert runner.wait(timeout=60) == 130
    assert [(e.entry, e.step) for e in shop.events("step.finished") if e.data["status"] == "ok"] == finished
    assert shop.events()[-1].data["reason"].startswith(f"runq stop {option}, asked by ")
    assert shop.night("--resume").returncode == 0
    assert (shop.attempts(0, "work"), shop.attempts(0, "judge")) == ([(1, "ok")], [(1, "ok")])


def test_a_paused_night_can_be_stopped(workshop):
    shop = workshop
    runner = begin(shop)
    told(shop, "pause")
    go(shop, "a")
    shop.wait_for_event("night.paused")
    assert shop.runq("stop", "--after-step").returncode == 0
    assert runner.wait(timeout=10) == 130
    assert told(shop, "status")["state"] == "interrupted"


def test_skip_ends_the_step_and_leaves_out_the_rest_of_its_entry_only(workshop):
    shop = workshop
    shop.commands(["a", "b"], {"work": WAIT, "judge": "done()"}, defaults='reset_command: ""\nretries: 2')
    runner = shop.start("night", "queue.yaml")
    started(shop, 0)
    said = shop.runq("skip").stdout
    assert said == f"night {shop.nights()[0]} skips the rest of e0; e0 work is ended\n"
    go(shop, "b")
    assert runner.wait(timeout=60) == 1
    (asked,) = shop.events("night.asked")
    reason = f"it was skipped, asked by {asked.data['by']}"
    assert [(e.kind, e.step, e.data.get("status"), e.data.get("reason")) for e in shop.events() if e.entry == 0][
        -4:
    ] == [
        ("step.finished", "work", "interrupted", reason),
        ("step.skipped", "work", None, reason),
        ("step.skipped", "judge", None, reason),
        ("entry.finished", None, "skipped", reason),
    ]
    assert [(e["steps"][0]["status"], e["steps"][1]["status"]) for e in shop.summary()["entries"]] == [
        ("skipped", "skipped"),
        ("ok", "ok"),
    ]
    go(shop, "a")
    assert shop.night("--resume").returncode == 0  # what was skipped is left to do
    assert (shop.attempts(0, "work"), shop.attempts(0, "judge")) == ([(1, "interrupted"), (2, "ok")], [(1, "ok")])


def test_without_a_runner_there_is_nobody_to_ask(workshop):
    """Also after a kill -9, which leaves the socket behind; the next runner clears it away."""
    shop = workshop
    runner = begin(shop)
    (left,) = shop.runs.glob("*.control/*")
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    assert left.exists()
    for word in ("pause", "unpause", "stop", "skip"):
        result = shop.runq(word)
        assert result.returncode == 1
        assert result.stderr.startswith(f"error: no night runs with the journal {shop.journal}\n  `runq status`")
    runner = shop.start("night", "queue.yaml", "--resume")
    shop.wait_for(lambda: [e for e in shop.events("step.spawned") if e.attempt == 2])
    assert told(shop, "stop")["ended"] is True
    assert not left.exists() and not left.parent.exists()


def test_a_runner_that_is_stopped_is_named_as_that(workshop):
    shop = workshop
    runner = begin(shop)
    runner.send_signal(signal.SIGSTOP)
    try:
        result = shop.runq("pause")
    finally:
        runner.send_signal(signal.SIGCONT)
    assert result.returncode == 1
    assert f"the runner (pid {runner.pid}) is stopped" in result.stderr
    assert f"kill -CONT {runner.pid}" in result.stderr


def address(shop):
    holder = holder_of(journal_lock_path(shop.journal))
    assert holder is not None
    return Path(holder.control)


def talk(path, data):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        connection.sendall(data)
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
    return json.loads(answer)


def test_only_its_user_reaches_the_socket_and_no_nonsense_hurts(workshop):
    shop = workshop
    runner = begin(shop)
    path = address(shop)
    assert path.parent.parent == shop.runs
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for nonsense, said in [
        (b"\x00\xff\n", "it is no JSON"),
        (b"[1]\n", "it is no JSON object"),
        (b"[" * 3000 + b"\n", "it is no JSON"),
        (b"x" * 4097, "a line is longer than 4096 bytes"),
        (b'{"ask": "rm -rf /"}\n', "'rm -rf /' cannot be asked; this can: status, pause"),
        (b"{}\n", "'None' cannot be asked"),
    ]:
        answer = talk(path, nonsense)
        assert answer["ok"] is False and said in answer["message"]
    silent = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for one in silent:
        one.connect(str(path))
    assert told(shop, "pause")["ok"] is True  # each of them is heard for two seconds, not longer
    for one in silent:
        one.close()
    evil = talk(path, json.dumps({"ask": "unpause", "by": "\x1b[31mevil\n" + "x" * 500}).encode() + b"\n")
    assert evil["ok"] is True
    by = shop.events("night.asked")[-1].data["by"]
    assert by == "evil " + "x" * 95
    go(shop, "a", "b", "c")
    assert runner.wait(timeout=60) == 0


def test_a_path_too_long_for_a_socket_gets_one_elsewhere(workshop_class, tmp_path):
    folder = tmp_path / ("deep" * 30)
    folder.mkdir()
    shop = workshop_class(folder, tmp_path / "state")
    runtime = Path("/tmp") / f"runq-test-{os.getpid()}"
    shop.env["XDG_RUNTIME_DIR"] = str(runtime)
    runner = begin(shop)
    try:
        assert runtime in address(shop).parents
        assert stat.S_IMODE(address(shop).parent.stat().st_mode) == 0o700
        assert told(shop, "stop")["ended"] is True
        assert list(runtime.rglob("socket")) == []
    finally:
        runner.kill()
        runner.communicate()
        for left in (runtime / "runq", runtime):
            left.rmdir()
