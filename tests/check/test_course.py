"""`runq check` as a whole: judges, keys, locks, interruptions, servers of one's own."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

TOUCHSTONE = """\
defaults:
  reset: {{ backend: ollama, host: '{url}', timeout_s: 20 }}
  settle: {{ timeout_s: 3, plateau_polls: 2, poll_interval_s: 0.1, epsilon_mb: 40 }}
  probes: [held]
entries:
  - {{ config: config.yaml, pack: packs/a.yaml, model: "qwen3:8b", judge_config: judge.yaml }}
  - {{ config: config.yaml, pack: packs/b.yaml, model: "qwen3:8b", judge_config: judge.yaml, judge_model: "phi4:14b" }}
"""

KEY = "sk-night-0123456789abcdef"


@pytest.fixture
def touchstone(checker: Any) -> Any:
    """A queue of touchstone's own kind on an endpoint with a key."""

    def write(host: Any) -> Any:
        shop = checker.shop
        shop.write("host.pid", str(host.pid))
        shop.write("key.txt", f"{KEY}\n")
        shop.write("config.yaml", f"endpoint: {{ base_url: '{host.url}/v1', api_key_file: key.txt }}\n")
        shop.write("judge.yaml", f"endpoint: {{ base_url: '{host.url}/v1/', api_key: {KEY} }}\nmodel: judge:70b\n")
        for name in ("a", "b"):
            shop.write(f"packs/{name}.yaml", f"id: {name}\ntitle: {name}\n")
        shop.write("queue.yaml", TOUCHSTONE.format(url=host.url))
        return checker

    return write


@pytest.mark.slow
def test_judge_models_are_checked_too_and_the_key_is_sent_and_shown_nowhere(host: Any, touchstone: Any) -> None:
    server = host("ollama", "honest", size_mb=20)
    checked = touchstone(server).run()
    assert checked.code == 0, checked.err
    found = [(row["model"], row["role"], row["verdict"]) for row in checked.rows]
    # `/v1` and `/v1/` are one endpoint; the second entry's judge is named in the queue file
    assert found == [
        ("qwen3:8b", "eval", "ok"),
        ("judge:70b", "judge", "ok"),
        ("phi4:14b", "judge", "ok"),
    ]
    chats = server.asked("/v1/chat/completions")
    assert [one["body"]["model"] for one in chats] == [row["model"] for row in checked.rows]
    assert {one["bearer"] for one in chats} == {f"Bearer {KEY}"}
    assert {one["bearer"] for one in server.asked("/api/ps")} == {None}
    assert KEY not in checked.err + checked.out
    files = [path for path in checked.shop.runs.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_server_that_repeats_the_key_does_not_get_it_into_any_file(checker: Any, serve: Any) -> None:
    served = serve(lambda method, path, body: (401, {"error": {"message": f"wrong key {KEY}"}}))
    shop = checker.shop
    shop.write("config.yaml", f"endpoint: {{ base_url: '{served.url}/v1', api_key: {KEY} }}\n")
    shop.write("a.yaml", "id: a\n")
    settle = "{ timeout_s: 1, plateau_polls: 1, poll_interval_s: 0.1, epsilon_mb: 9999 }"
    entry = "{ config: config.yaml, pack: a.yaml, model: m }"
    shop.write("queue.yaml", f"defaults: {{ reset: none, settle: {settle} }}\nentries:\n  - {entry}\n")
    checked = checker.run()
    (row,) = checked.rows
    assert checked.code == 1 and row["problem"].startswith("HTTP 401: wrong key") and KEY not in row["problem"]
    assert "api_key" in row["remedy"]
    files = [path for path in shop.runs.rglob("*") if path.is_file()]
    assert files and not [path for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.slow
def test_the_first_ctrl_c_evicts_what_was_loading_and_keeps_what_was_found(host: Any, checker: Any) -> None:
    server = host("ollama", "honest")
    reset = f"{{ backend: ollama, host: '{server.url}', timeout_s: 20 }}"
    checker.queue(server.url, ["qwen3:8b", "slow", "never-reached"], reset, of=server)
    shop = checker.shop
    process = shop.start("check", "queue.yaml")
    shop.wait_for(lambda: "slow" in server.workers(), 60)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=30)
    assert process.returncode == 130, text
    (folder,) = shop.runs.glob("*_check")
    assert "| qwen3:8b | eval | yes | ok |" in (folder / "check.md").read_text()
    (row,) = checker.result(process).rows
    assert (row["model"], row["verdict"]) == ("qwen3:8b", "ok")
    assert server.workers() == {} and "Ctrl-C again leaves it" in text
    *_, last_reset = shop.events("reset.finished")
    assert (last_reset.data["verdict"], last_reset.data["loaded_before"]) == ("verified", ["slow"])
    (finished,) = shop.events("check.finished")
    assert finished.data == {"failed": 0, "interrupted": "SIGINT"}
    assert shop.runq("replay", "--verify").returncode == 0


def test_the_second_ctrl_c_leaves_at_once(host: Any, checker: Any) -> None:
    server = host("ollama", "never")
    reset = f"{{ backend: ollama, host: '{server.url}', timeout_s: 60 }}"
    checker.queue(server.url, ["slow"], reset, of=server)
    shop = checker.shop
    process = shop.start("check", "queue.yaml")
    shop.wait_for(lambda: "slow" in server.workers(), 60)
    process.send_signal(signal.SIGINT)
    shop.wait_for(lambda: len(shop.events("reset.started")) == 2, 30)
    assert process.poll() is None, "it is evicting"
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=5)
    assert process.returncode == 130, text
    assert shop.events("check.finished")[0].data["interrupted"] == "SIGINT"


def test_a_night_at_work_keeps_a_check_out(workshop: Any, checker: Any, host: Any) -> None:
    server = host("ollama", "honest", size_mb=1)
    workshop.commands(["a"], {"eval": "while True: time.sleep(0.1)"})
    night = workshop.start("night", "queue.yaml")
    workshop.wait_for_event("step.spawned")
    checker.queue(server.url, ["m"])
    ran = workshop.runq("check", "queue.yaml")
    assert ran.returncode == 3 and f"pid {night.pid}" in ran.stderr
    assert list(workshop.runs.glob("*_check")) == [] and server.asked("/v1/chat/completions") == []


def test_a_harness_that_names_no_endpoint_is_not_asked(check: Any) -> None:
    checked = check(None, ["a"])
    (row,) = checked.rows
    assert (checked.code, row["verdict"], row["loaded"], row["endpoint"]) == (0, "warn", False, None)
    assert row["problem"] == "not asked: the harness names no endpoint" and "`endpoint:`" in row["remedy"]


SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
model, port = sys.argv[1], int(sys.argv[2])
if model == "broken":
    sys.exit("error: the weights of broken are missing")
held = bytearray(50 << 20)
held[::4096] = b"x" * len(held[::4096])
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"{}")
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        data = json.dumps({"model": "/models/some-file.gguf", "choices": [
            {"message": {"content": "ready"}, "finish_reason": "stop"}]}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(data))); self.end_headers()
        self.wfile.write(data)
    def log_message(self, *_): pass
HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def test_a_server_that_does_not_start_fails_with_its_log_and_the_next_is_checked(checker: Any, free_port: int) -> None:
    checker.shop.write("serve.py", SERVER)
    reset = (
        f"{{ backend: server, argv: ['{sys.executable}', serve.py, '{{model}}', '{{port}}'], port: {free_port},"
        " health_url: 'http://127.0.0.1:{port}/health', start_timeout_s: 20, health_interval_s: 0.1 }"
    )
    checker.queue(f"http://127.0.0.1:{free_port}", ["broken", "fine"], reset)
    checked = checker.run()
    assert checked.code == 1 and checked.verdicts() == {"broken": "fail", "fine": "ok"}, checked.rows
    broken, fine = checked.row("broken"), checked.row("fine")
    assert "error: the weights of broken are missing" in broken["problem"]
    log = Path(broken["remedy"].rpartition(" ")[2])
    assert "the weights of broken are missing" in log.read_text() and log.is_relative_to(checked.shop.runs)
    assert log.parents[1].name.endswith("_check")
    assert (fine["answered_by"], fine["loaded_models"]) == ("/models/some-file.gguf", ["fine"])
    assert (fine["reset_verdict"], fine["evict_verdict"]) == ("verified", "verified")
    assert checked.shop.marked_processes() == []


def test_ctrl_c_ends_the_server_that_the_check_started(checker: Any, free_port: int) -> None:
    checker.shop.write(
        "serve.py", SERVER.replace("do_POST(self):", "do_POST(self):\n        __import__('time').sleep(60)")
    )
    reset = (
        f"{{ backend: server, argv: ['{sys.executable}', serve.py, '{{model}}', '{{port}}'], port: {free_port},"
        " health_url: 'http://127.0.0.1:{port}/health', start_timeout_s: 20, health_interval_s: 0.1 }"
    )
    checker.queue(f"http://127.0.0.1:{free_port}", ["fine"], reset)
    shop = checker.shop
    process = shop.start("check", "queue.yaml")
    spawned = shop.wait_for_event("server.spawned")
    process.send_signal(signal.SIGTERM)
    text, _ = process.communicate(timeout=30)
    assert process.returncode == 130, text
    assert shop.gone(spawned.data["pid"]) and shop.marked_processes() == []
    assert checker.result(process).rows == []
    assert len(shop.events("server.finished")) == 1
    assert shop.events("check.finished")[0].data["interrupted"] == "SIGTERM"


def test_a_probe_that_cannot_be_read_costs_its_figures_only(host: Any, checker: Any) -> None:
    server = host("ollama", "honest", size_mb=1)
    checker.queue(server.url, ["m"], f"{{ backend: ollama, host: '{server.url}', timeout_s: 20 }}")
    shop = checker.shop
    shop.queue.write_text(shop.queue.read_text().replace("[held]", "[{ probe: fake, bad: raise }]"))
    checked = checker.run()
    (row,) = checked.rows
    assert (checked.code, row["verdict"], row["status"]) == (0, "warn", "ok")
    assert row["ram_before_mb"] is row["ram_after_mb"] is row["ram_delta_mb"] is row["ram_back_mb"] is None
    assert row["problem"] == "memory could not be read, so its figures are missing"
