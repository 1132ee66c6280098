"""An endpoint that is up but dead: found out, restarted once, and the step's attempt repeated."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from .conftest import STAND_INS

DEAF = STAND_INS / "deaf_host.py"
TALK = """
import json, urllib.request
def mood(word):
    Path('host/mood').write_text(word)
def talk():
    request = urllib.request.Request(os.environ['URL'] + '/chat/completions', json.dumps(
        {'model': model, 'max_tokens': 9, 'messages': []}).encode())
    urllib.request.urlopen(request, timeout=100).read()
"""
WELL = "['{python}', '-c', \"open('host/mood', 'w').write('well')\"]"


@pytest.fixture
def host(workshop):
    """A server whose mood is a file in the workshop."""
    folder = workshop.folder / "host"
    folder.mkdir()
    workshop.write("host/mood", "well")
    process = subprocess.Popen([sys.executable, str(DEAF), str(folder)])
    port = workshop.wait_for(lambda: (folder / "port").exists() and (folder / "port").read_text())
    workshop.env["URL"] = f"http://127.0.0.1:{port}/v1"
    yield folder
    process.kill()
    process.wait()


def queue(shop, models, script, restart=None, every_s=0.5, reset="{ backend: command, command: 'true' }"):
    beat = f"heartbeat: {{ url: {shop.env['URL']}, every_s: {every_s}, timeout_s: 1, failures: 2 }}"
    lines = [f"reset: {reset}", beat]
    if restart:
        lines.append(f"restart_command: {restart.replace('{python}', sys.executable)}")
    shop.commands(models, {"work": TALK + script}, defaults="\n".join(lines))


def kinds(shop, entry=0):
    return [
        e.kind + (f" {e.data['status']}" if e.kind == "step.finished" else "")
        for e in shop.events("endpoint.dead", "restart.started", "restart.finished", "settle.finished", "step.started",
                             "step.finished", "entry.finished")
        if e.entry == entry
    ]  # fmt: skip


def test_a_step_whose_endpoint_dies_is_repeated_after_a_restart(workshop, host):
    shop = workshop
    script = "if not os.path.exists('once'):\n    Path('once').touch()\n    mood('deaf')\ntalk()\ndone()"
    queue(shop, ["a"], script, WELL)
    result = shop.night()
    assert result.returncode == 0, result.stderr
    assert kinds(shop) == [
        "settle.finished", "step.started", "endpoint.dead", "step.finished stalled",
        "restart.started", "restart.finished", "settle.finished", "step.started", "step.finished ok", "entry.finished",
    ]  # fmt: skip
    first, second = shop.events("step.finished")
    assert first.data["endpoint_dead"] is True and second.data["endpoint_dead"] is False
    assert "went silent, and its endpoint gave no answer" in first.data["reason"]
    (dead,) = shop.events("endpoint.dead")
    assert (dead.data["failures"], dead.data["model"]) == (2, "a")
    assert shop.events("restart.finished")[0].data["exit_code"] == 0
    assert shop.attempts(0, "work") == [(1, "stalled"), (2, "ok")]  # and `retries` is 0
    assert "restarting the endpoint" in result.stderr


def test_an_endpoint_is_restarted_once_for_each_entry(workshop, host):
    shop = workshop
    queue(shop, ["a", "b"], "mood('deaf')\ntalk()\ndone()", WELL)
    assert shop.night().returncode == 1
    for entry in (0, 1):
        assert kinds(shop, entry).count("restart.started") == 1
    # b found the endpoint dead before its first attempt, and so had none left when it died again.
    assert shop.attempts(0, "work") == [(1, "stalled"), (2, "stalled")]
    assert shop.attempts(1, "work") == [(1, "stalled")]
    assert kinds(shop, 1)[:4] == ["settle.finished", "endpoint.dead", "restart.started", "restart.finished"]
    assert [e["eval_status"] for e in shop.summary()["entries"]] == ["timeout", "timeout"]


def test_a_dead_endpoint_costs_the_entry_before_anything_runs(workshop, host):
    shop = workshop
    queue(shop, ["a", "b"], "mood('broken')\ndone()")
    assert shop.night().returncode == 1
    assert shop.attempts(0, "work") == [(1, "ok")]
    assert shop.attempts(1, "work") == []
    entry = shop.summary()["entries"][1]
    assert (entry["status"], entry["error"]) == ("failed", "work: the endpoint does not answer: HTTP 500: CUDA error")
    shop.write("host/mood", "well")
    assert shop.night("--resume").returncode == 0


def test_a_step_that_writes_is_alive_however_deaf_its_endpoint_is_to_others(workshop, host):
    shop = workshop
    busy = "mood('deaf')\nfor n in range(60):\n    print(n, flush=True)\n    time.sleep(0.1)\ndone()"
    queue(shop, ["a"], busy, every_s=2)  # the step takes three times as long
    assert shop.night().returncode == 0
    assert (host / "asked").read_text() == "1\n"  # before the step, and not beside it
    assert shop.events("endpoint.dead") == []


def test_what_a_restart_leaves_running_outlives_the_night(workshop, host):
    shop = workshop
    port = int(shop.env["URL"].rsplit(":", 1)[1].split("/")[0])
    (old,) = [c for c in psutil.net_connections("tcp") if c.laddr.port == port and c.status == "LISTEN"]
    start = (
        "import os, signal, subprocess, sys, time\n"
        f"os.kill({old.pid}, signal.SIGKILL)\n"
        "open('host/mood', 'w').write('well')\n"
        f"child = subprocess.Popen([sys.executable, {str(DEAF)!r}, 'host', '{port}'], start_new_session=True)\n"
        "open('host/new', 'w').write(str(child.pid))\n"
        "time.sleep(1)\n"
    )
    shop.write("restart.py", start)
    shop.write("host/mood", "deaf")
    queue(shop, ["a", "b"], "talk()\ndone()", "['{python}', restart.py]")
    result = shop.night()
    new = psutil.Process(int((host / "new").read_text()))
    try:
        assert result.returncode == 0, result.stderr
        assert len(shop.events("restart.started")) == 1
        assert new.is_running() and new.status() != psutil.STATUS_ZOMBIE
        assert shop.night().returncode == 0  # no later start takes it for an orphan
        assert new.is_running() and new.status() != psutil.STATUS_ZOMBIE
    finally:
        new.kill()


def test_a_restart_that_cannot_even_start_is_told_and_the_endpoint_asked_again(workshop, host):
    shop = workshop
    shop.write("host/mood", "broken")
    queue(shop, ["a"], "done()", "no-such-program-anywhere")
    assert shop.night().returncode == 1
    assert kinds(shop) == [
        "settle.finished", "endpoint.dead", "restart.started", "restart.finished", "settle.finished", "endpoint.dead",
        "entry.finished",
    ]  # fmt: skip
    (finished,) = shop.events("restart.finished")
    assert finished.data["exit_code"] is None and "no-such-program-anywhere" in finished.data["reason"]
    assert shop.summary()["entries"][0]["status"] == "failed"


def test_a_heartbeat_that_is_refused_is_told_once_and_proves_nothing(workshop, host):
    shop = workshop
    shop.write("host/mood", "strict")
    queue(shop, ["a"], "time.sleep(2.5)\ndone()")
    assert shop.night().returncode == 0
    assert len((host / "asked").read_text().splitlines()) > 1
    told = [w["message"] for w in shop.summary()["warnings"] if "heartbeat" in w["message"]]
    assert told == ["the heartbeat was refused: HTTP 401: no key"]


def test_a_server_that_runq_started_needs_no_command_to_be_restarted(workshop, free_port):
    shop = workshop
    (shop.folder / "host").mkdir()
    shop.write("host/mood", "well")
    shop.env["URL"] = f"http://127.0.0.1:{free_port}/v1"
    script = "if not os.path.exists('once'):\n    Path('once').touch()\n    mood('deaf')\n"
    shop.write(
        "server.py",
        "import os, runpy, sys\n"
        "if os.path.exists('once'):\n    open('host/mood', 'w').write('well')\n"
        f"sys.argv = ['deaf_host.py', 'host', sys.argv[1]]\nrunpy.run_path({str(DEAF)!r}, run_name='__main__')\n",
    )
    server = f"{{ backend: server, port: {free_port}, argv: ['{sys.executable}', server.py, '{{port}}'] }}"
    queue(shop, ["a"], script + "talk()\ndone()", reset=server)
    result = shop.night()
    assert result.returncode == 0, result.stderr
    assert shop.attempts(0, "work") == [(1, "stalled"), (2, "ok")]
    assert len(shop.events("server.started")) == 2
    assert shop.events("restart.started") == []
    assert shop.marked_processes() == []


def test_ctrl_c_ends_a_restart_that_takes_long(workshop, host):
    shop = workshop
    shop.write("host/mood", "deaf")
    script = "import os, time; open('host/restarting', 'w').write(str(os.getpid())); time.sleep(600)"
    queue(shop, ["a"], "done()", f"['{{python}}', '-c', \"{script}\"]")
    runner = shop.start("night", "queue.yaml")
    pid = int(shop.wait_for(lambda: (host / "restarting").exists() and (host / "restarting").read_text()))
    os.kill(runner.pid, signal.SIGINT)
    assert runner.wait(30) == 130
    assert shop.gone(pid)
    (finished,) = shop.events("restart.finished")
    assert (finished.data["signal"], finished.data["reason"]) == ("SIGTERM", "the night was interrupted")
    assert shop.summary()["state"] == "interrupted"
