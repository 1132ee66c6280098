"""`runq watch` over a real terminal: what stands on it at the start, in mid-step, at a failure and at the end."""

import json
import os
import re
import signal

import psutil
import pytest
from rich.cells import cell_len

from .terminal import Terminal

STEP = """\
print('loading', model, flush=True)
(bundle / 'ready').touch()
while not os.path.exists('go-' + model): time.sleep(0.02)
if model == 'broken-1b':
    print('Traceback (most recent call last):')
    print('ConnectionRefusedError: [Errno 111] Connection refused', flush=True)
    sys.exit(3)
done()
"""

MODELS = ("google/gemma-4-12b", "broken-1b", "qwen/qwen3.6-27b")
WATCH = "python -m runq watch"


@pytest.fixture
def shop(workshop):
    workshop.commands([model.replace("/", "-") for model in MODELS], {"work": STEP})
    yield workshop
    workshop.runq("stop")


def begin(shop):
    """The night runs in the background, its first step too."""
    result = shop.night("--detach", "--json")
    assert result.returncode == 0, result.stderr
    at_work(shop, 0)
    return json.loads(result.stdout)["pid"]


def at_work(shop, entry):
    shop.wait_for_event("step.spawned", entry=entry)
    shop.wait_for(lambda: (shop.bundle(entry, "work") / "ready").exists())


def go(shop, *entries):
    for entry in entries:
        (shop.folder / f"go-{MODELS[entry].replace('/', '-')}").touch()


@pytest.fixture
def terminal(shop, tmp_path, missing):
    with Terminal.opened(shop, tmp_path, missing, width=100, height=24) as made:
        yield made


def watch(terminal, words=WATCH, *texts):
    terminal.type(f"clear; {words}; echo over:$?:")
    return terminal.wait_for(*(texts or ("q leave",)))


def over(terminal):
    """Wait until the command is over. Returns its exit code and what the screen shows before that."""
    found = terminal.shop.wait_for(lambda: re.search(r"(.*)over:(\d+):", terminal.screen(), re.DOTALL))
    return int(found[2]), found[1]


def test_a_night_from_its_start_to_its_end(terminal, shop):
    pid = begin(shop)
    night = shop.nights()[0]
    start = watch(terminal, WATCH, "loading google-gemma-4-12b", "· memory ").splitlines()
    assert re.fullmatch(rf"\d\d:\d\d:\d\d  running  0 of 3 complete  night {night} \(pid {pid}\)", start[0])
    assert re.match(r"\[1/3\] e0 google-gemma-4-12b · work · \d+ s of 4:00 h · memory [\d,]+ MB", start[1])
    assert re.match(r"[▁▂▃▄▅▆▇█]+ peak [\d,]+, baseline [\d,]+\* MB \(system\) \* not proven", start[2])
    assert start[3:6] == [
        "e0   google-gemma-4-12b  work running",
        "e1   broken-1b           pending",
        "e2   qwen-qwen3.6-27b    pending",
    ]
    assert start[6].startswith("── what happened ──")
    assert start[-1] == "q leave  p pause  s stop  k skip  l log"
    assert len(start) == 24

    go(shop, 0)
    at_work(shop, 1)
    middle = terminal.wait_for("[2/3] e1 broken-1b", "loading broken-1b", "e0 work ok in", "1 of 3 complete")
    assert "log of e1 work, attempt 1" in middle

    go(shop, 1)
    at_work(shop, 2)
    failure = terminal.wait_for("it exited with 3", "1 failed", "[3/3] e2 qwen-qwen3.6-27b")
    assert re.search(r"\d\d:\d\d:\d\d e1 work failed in \d+ s - it exited with 3", failure)

    go(shop, 2)
    code, end = over(terminal)
    assert code == 1
    assert "q leave" not in end and "what happened" not in end  # the screen of before is back
    assert re.search(r"│ e1 │ broken-1b +│ +│ failed \d+ s │", end)
    assert "2 of 3 entries complete" in end
    assert f"--resume --night {night}" in end.replace("\n", "")
    assert shop.events()[-1].kind == "night.finished"


def test_the_failed_steps_log_stays_until_the_next_step(terminal, shop):
    shop.commands(["broken-1b", "late"], {"work": STEP}, entries={"late": "cooldown_s: 60"})
    (shop.folder / "go-broken-1b").touch()
    shop.night("--detach")
    shop.wait_for_event("cooldown.started", entry=1)
    shown = watch(terminal, WATCH, "e1 cooling down, for ")
    assert "log of e0 work, attempt 1, failed" in shown
    assert "ConnectionRefusedError: [Errno 111] Connection refused" in shown


@pytest.mark.parametrize(("width", "height"), [(40, 12), (24, 8), (12, 4), (100, 3)])
def test_a_small_terminal(terminal, shop, width, height):
    begin(shop)
    terminal.resize(width, height)
    shown = watch(terminal, WATCH, "[1/3] e0"[: width - 1], "q leave"[: width - 1])
    lines = shown.splitlines()
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)
    assert lines[-1].startswith("q leave"[: width - 1])
    terminal.resize(100, 24)
    terminal.wait_for("e2   qwen-qwen3.6-27b    pending", "log of e0 work", "q leave  p pause  s stop  k skip  l log")
    terminal.key("q")
    assert over(terminal)[0] == 0


def test_keys_pause_and_go_on(terminal, shop):
    begin(shop)
    watch(terminal)
    terminal.key("p")
    shown = terminal.wait_for("asked for: a pause, as soon as nothing runs", "p go on")
    assert "pauses as soon as e0 work has finished" in shown
    go(shop, 0)
    paused = shop.wait_for_event("night.paused")
    assert "(pts/" in paused.data["by"]
    terminal.wait_for("paused  1 of 3 complete", "paused for ")
    terminal.key("p")
    at_work(shop, 1)
    terminal.wait_for("running  1 of 3 complete", "[2/3] e1 broken-1b", "p pause")
    terminal.key("q")
    assert over(terminal)[0] == 0
    assert shop.runq("status", "--json").stdout and shop.events("night.interrupted") == []


def test_keys_skip_an_entry_and_stop_the_night(terminal, shop):
    pid = begin(shop)
    watch(terminal)
    terminal.key("k")
    terminal.wait_for("skip the rest of e0: y yes; any other key: no")
    terminal.key("n")
    terminal.wait_for("q leave  p pause")
    assert shop.events("night.asked") == []
    terminal.key("k")
    terminal.wait_for("y yes")
    terminal.key("y")
    at_work(shop, 1)
    assert [event.data["what"] for event in shop.events("night.asked")] == ["skip"]
    terminal.wait_for("[2/3] e1 broken-1b", "it was skipped, asked by")
    terminal.key("s")
    terminal.wait_for("stop the night: n now, s after this step, e after this entry; any other key: no")
    terminal.key("n")
    code, shown = over(terminal)
    assert code == 1 and "0 of 3 entries complete" in shown
    shop.wait_for(lambda: shop.gone(pid))
    assert shop.events()[-1].kind == "night.interrupted"


def test_leaving_gives_the_terminal_back_and_the_night_goes_on(terminal, shop):
    pid = begin(shop)
    for key, code in (("q", 0), ("Escape", 0), ("C-d", 0), ("C-c", 130)):
        watch(terminal)
        terminal.key(key)
        assert over(terminal)[0] == code, key
        assert "q leave" not in terminal.screen()
        terminal.type("stty -a | grep -c -- ' -icanon'; echo typed")
        terminal.wait_for("echo typed", "\n0\ntyped")
        terminal.tmux("send-keys", "-R")
    assert not shop.gone(pid)
    assert shop.events("night.asked", "night.interrupted") == []


def test_ctrl_z_and_fg(terminal, shop):
    begin(shop)
    terminal.type(WATCH)
    terminal.wait_for("q leave")
    terminal.key("C-z")
    terminal.wait_for("Stopped")
    assert "q leave" not in terminal.screen()
    terminal.type("clear; stty -a | grep -c -- ' -icanon'")
    shop.wait_for(lambda: terminal.screen().startswith("0\n"))
    terminal.type("fg")
    terminal.wait_for("q leave", "[1/3] e0")
    terminal.key("q")
    terminal.wait_for("bash")


def test_the_log_alone(terminal, shop):
    begin(shop)
    watch(terminal)
    terminal.key("l")
    shown = shop.wait_for(lambda: s if "e1   broken-1b" not in (s := terminal.screen()) else None)
    assert "log of e0 work" in shown and "loading google-gemma-4-12b" in shown and "q leave" in shown
    terminal.key("l")
    terminal.wait_for("e1   broken-1b")


def coloured(shown):
    return re.findall(r"\x1b\[[0-9;]*m", re.sub(r"\x1b\[(0|1|2|7|22|27|39|49)?m", "", shown))


def test_colours_and_none_of_them_under_no_color(terminal, shop):
    begin(shop)
    terminal.type("unset NO_COLOR")
    watch(terminal)
    assert coloured(shop.wait_for(lambda: s if "q leave" in (s := terminal.screen(colours=True)) else None))
    terminal.key("q")
    over(terminal)
    watch(terminal, f"NO_COLOR=1 {WATCH}")
    assert not coloured(terminal.screen(colours=True))
    terminal.key("q")


def test_a_terminal_that_cannot_be_redrawn_gets_lines(terminal, shop):
    begin(shop)
    shown = watch(terminal, f"TERM=dumb {WATCH}", "now: e0 work running, for ")
    assert "q leave" not in shown
    go(shop, 0, 1, 2)
    code, shown = over(terminal)
    assert code == 1
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d e1 work failed in \d+ s - it exited with 3", shown, re.MULTILINE)
    assert "night finished: 2 of 3 entries complete" in shown


@pytest.mark.parametrize("stdin", ["<&-", "</dev/null"])
def test_without_standard_input_there_are_no_keys(terminal, shop, stdin):
    begin(shop)
    watch(terminal, f"{WATCH} {stdin}", "no keys: standard input is no terminal; Ctrl-C leaves, and the night goes on")
    go(shop, 0)
    terminal.wait_for("[2/3] e1 broken-1b")
    terminal.key("C-c")
    assert over(terminal)[0] == 130
    assert shop.events("night.asked", "night.interrupted") == []


def test_a_terminal_that_is_closed_ends_it_and_not_the_night(terminal, shop):
    pid = begin(shop)
    terminal.type(WATCH)
    terminal.wait_for("q leave")
    (shell,) = [int(line) for line in terminal.tmux("list-panes", "-F", "#{pane_pid}").stdout.split()]
    (watching,) = [child.pid for child in psutil.Process(shell).children()]
    terminal.close()
    shop.wait_for(lambda: shop.gone(watching))
    assert not shop.gone(pid)


def test_a_runner_that_dies_is_told(terminal, shop):
    pid = begin(shop)
    watch(terminal)
    os.kill(pid, signal.SIGKILL)
    code, shown = over(terminal)
    assert code == 1
    assert "its runner died" in shown and "0 of 3 entries complete" in shown
    assert "--resume" in shown.replace("\n", "")


# --- without a terminal -----------------------------------------------------------------------------------------


def test_in_a_pipe_it_prints_the_status_and_a_line_for_each_transition(shop):
    begin(shop)
    watching = shop.start("watch")
    assert watching.stdout.readline().startswith(f"night {shop.nights()[0]}  running (pid ")
    go(shop, 0, 1, 2)
    rest = watching.communicate(timeout=60)[0]
    assert watching.returncode == 1
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d e1 work failed in \d+ s - it exited with 3", rest, re.MULTILINE)
    assert rest.splitlines()[-1].endswith("night finished: 2 of 3 entries complete")


def test_json_for_programs(shop):
    begin(shop)
    watching = shop.start("watch", "--json")
    first = json.loads(watching.stdout.readline())
    assert (first["state"], first["entries"][0]["steps"][0]["status"]) == ("running", "running")
    go(shop, 0, 1, 2)
    lines = [json.loads(line) for line in watching.communicate(timeout=60)[0].splitlines()]
    assert watching.returncode == 1
    last = lines[-1]
    assert (last["state"], last["complete"], last["failed"]) == ("finished", 2, 1)
    assert {name: last[name] for name in shop.summary()} == shop.summary()


def test_without_a_running_night_the_latest_is_shown(shop):
    go(shop, 0, 1, 2)
    assert shop.night().returncode == 1
    result = shop.runq("watch")
    assert result.returncode == 1
    assert result.stderr == "no night runs now; this is the latest:\n"
    assert result.stdout == shop.runq("status").stdout
    assert json.loads(shop.runq("watch", "--json").stdout) == json.loads(shop.runq("status", "--json").stdout)


def test_without_any_night_it_says_where_it_looked(shop):
    result = shop.runq("watch")
    assert result.returncode == 2
    assert "no journal found" in result.stderr
