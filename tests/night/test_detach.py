"""A night without its terminal: refusals are still told, and everything finds it."""

import json
import os
import stat
import time

import psutil
import pytest

from .terminal import Terminal

STEP = "(bundle / 'ready').touch()\nprint('hello from', model, flush=True)\n"
STEP += "while not os.path.exists('go-' + model): time.sleep(0.02)\ndone()\n"


def detached(shop, *words):
    result = shop.night("--detach", "--json", *words)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def shop(workshop):
    workshop.commands(["a", "b"], {"work": STEP})
    yield workshop
    workshop.runq("stop")


def test_it_goes_on_in_a_session_of_its_own_and_is_found(shop):
    begun = detached(shop)
    runner = psutil.Process(begun["pid"])
    assert os.getsid(begun["pid"]) == begun["pid"] and runner.terminal() is None
    assert begun["night"] == shop.nights()[0]
    shop.wait_for_event("step.spawned")
    status = json.loads(shop.runq("status", "--json").stdout)
    assert (status["state"], status["runner"]["pid"]) == ("running", begun["pid"])

    follow = shop.start("log", "-f")
    assert follow.stdout.readline() == "==> e0 work, attempt 1 <==\n"
    assert follow.stdout.readline() == "hello from a\n"
    (shop.folder / "go-a").touch()
    assert follow.stdout.readline() == "==> e1 work, attempt 1 <==\n"
    assert follow.stdout.readline() == "hello from b\n"

    stopped = shop.runq("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert shop.gone(begun["pid"]) and shop.marked_processes() == []
    assert follow.wait(timeout=10) == 0
    shown = (shop.queue_folder() / "night.log").read_text()
    assert begun["output"] == str(shop.queue_folder() / "night.log")
    assert "night started: 2 entries" in shown and "1 of 2 entries complete" in shown
    assert stat.S_IMODE(os.stat(begun["output"]).st_mode) == 0o600

    (shop.folder / "go-b").touch()
    again = detached(shop, "--resume")
    assert again["night"] == begun["night"]
    shop.wait_for(lambda: shop.gone(again["pid"]))
    assert shop.summary()["complete"] == 2


def test_it_says_what_to_type(shop):
    result = shop.night("--detach")
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"night {shop.nights()[0]} goes on without this terminal (pid ")
    typed = [line[18:] for line in lines[1:4]]
    assert typed == [f"runq {word} --runs {shop.runs}" for word in ("status", "log -f", "stop")]
    assert lines[4][18:] == str(shop.queue_folder() / "night.log")
    for command in (typed[0], typed[2]):
        assert shop.runq(*command.split()[1:]).returncode == 0


def test_what_refuses_it_is_told_before_with_its_own_exit_code(shop):
    shop.write("bad.yaml", "entries: 3\n")
    refused = shop.runq("night", "bad.yaml", "--detach")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "`entries` must be a list" in refused.stderr
    nothing = shop.night("--detach", "--resume")
    assert nothing.returncode == 2 and "no journal to resume from" in nothing.stderr
    begun = detached(shop)
    locked = shop.night("--detach")
    assert (locked.returncode, locked.stdout) == (3, "")
    assert f"in use by another night: pid {begun['pid']}" in locked.stderr
    assert f"`runq stop --runs {shop.runs}`" in locked.stderr
    assert len(shop.nights()) == 1


def test_with_nothing_left_to_run_it_says_so(shop):
    for model in ("a", "b"):
        (shop.folder / f"go-{model}").touch()
    assert shop.night().returncode == 0
    result = shop.night("--detach", "--resume")
    assert (result.returncode, result.stdout) == (0, "")
    assert "nothing is left to run" in result.stderr


# --- a real terminal --------------------------------------------------------------------------------------------


@pytest.fixture
def terminal(shop, tmp_path, missing):
    with Terminal.opened(shop, tmp_path, missing) as made:
        yield made


def test_over_a_real_terminal_that_is_closed_in_between(terminal, shop):
    code, shown = terminal.run("python -m runq night queue.yaml --detach")
    assert code == 0, shown
    night = shop.nights()[0]
    assert f"night {night} goes on without this terminal" in shown
    shop.wait_for_event("step.spawned")
    pid = json.loads(shop.runq("status", "--json").stdout)["runner"]["pid"]
    terminal.close()
    terminal.open()

    code, shown = terminal.run("python -m runq status")
    assert code == 0 and f"night {night}  running (pid {pid})" in shown
    code, shown = terminal.run("python -m runq pause")
    assert code == 0 and f"night {night} pauses as soon as e0 work has finished" in shown
    (shop.folder / "go-a").touch()
    paused = shop.wait_for_event("night.paused")
    assert "(pts/" in paused.data["by"]  # who asked has a terminal, and it is named
    code, shown = terminal.run("python -m runq status")
    assert code == 0 and f"night {night}  paused (pid {pid})" in shown
    terminal.close()
    terminal.open()
    code, shown = terminal.run("python -m runq unpause")
    assert code == 0 and f"night {night} goes on" in shown
    shop.wait_for_event("step.spawned", entry=1)
    code, shown = terminal.run("python -m runq stop")
    assert code == 0 and f"night {night} has ended" in shown
    assert shop.gone(pid)
    assert shop.events()[-1].kind == "night.interrupted"
    assert shop.events("warning") == []  # it never had a terminal to lose


def test_a_terminal_closed_over_a_night_in_the_foreground(terminal, shop):
    terminal.type("python -m runq night queue.yaml")
    shop.wait_for_event("step.spawned")
    terminal.close()
    assert shop.wait_for_event("warning").data["message"] == "the terminal was closed; the night goes on"
    terminal.open()
    code, shown = terminal.run("python -m runq stop")
    assert code == 0, shown
    assert shop.events()[-1].data["reason"].startswith("runq stop, asked by ")


def test_ctrl_z_and_fg_in_a_shell(terminal, shop):
    terminal.type("python -m runq night queue.yaml")
    spawned = shop.wait_for_event("step.spawned")
    shop.wait_for(lambda: (shop.bundle(0, "work") / "ready").exists())
    terminal.key("C-z")
    shop.wait_for(lambda: "Stopped" in terminal.screen())
    assert psutil.Process(spawned.data["pid"]).status() == psutil.STATUS_STOPPED
    time.sleep(0.3)
    terminal.type("fg")
    shop.wait_for_event("night.continued")
    for model in ("a", "b"):
        (shop.folder / f"go-{model}").touch()
    shop.wait_for(lambda: "2 of 2 entries complete" in terminal.screen())
    assert shop.summary()["complete"] == 2
