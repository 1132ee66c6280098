"""`runq check` on servers as people have them: what passes, what fails, and what one is told to do."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

ONE = "right/model-8b"


def ollama(host: Any) -> str:
    return f"{{ backend: ollama, host: '{host.url}', timeout_s: 20 }}"


def studio(host: Any) -> str:
    return f"{{ backend: lms, base_url: '{host.url}', binary: /nowhere/lms, timeout_s: 20 }}"


TOUCHSTONE = {
    "model": str,
    "loaded": bool,
    "status": str,
    "content_chars": int,
    "ram_before_mb": float,
    "ram_after_mb": float,
    "ram_delta_mb": float,
}


@pytest.mark.slow
def test_a_good_server_every_figure_and_nothing_left(host: Any, checker: Any) -> None:
    server = host("ollama", "honest", "left-over:7b")
    idle_mb = server.rss_mb() - 320
    for pack in ("a", "b"):
        checker.shop.write(f"{pack}.yaml", f"id: {pack}\n")
    listed = (("qwen3:8b", "a"), ("thinking-ollama", "a"), ("qwen3:8b", "b"))
    entries = "".join(f"  - {{ model: '{model}', pack: {pack}.yaml }}\n" for model, pack in listed)
    checker.queue(server.url, [], ollama(server), of=server, entries=entries)
    checked = checker.run("--json")
    assert checked.code == 0, checked.err
    assert checked.verdicts() == {"qwen3:8b": "ok", "thinking-ollama": "ok"}, "each distinct model once"
    assert json.loads(checked.out) == checked.rows
    for row in checked.rows:
        assert list(row)[:7] == list(TOUCHSTONE)
        assert {name: type(row[name]) for name in TOUCHSTONE} == TOUCHSTONE
        assert row["ram_delta_mb"] == pytest.approx(row["ram_after_mb"] - row["ram_before_mb"], abs=0.2)
        assert 310 < row["ram_delta_mb"] < 400
        assert abs(row["ram_back_mb"] - row["ram_before_mb"]) < 40 and abs(row["ram_before_mb"] - idle_mb) < 60
        assert (row["reset_verdict"], row["evict_verdict"]) == ("verified", "verified")
        assert row["baseline_proven"] is True and row["memory_back"] is True
        assert (row["loaded"], row["context_length"], row["loaded_models"]) == (True, 4096, [row["model"]])
        assert (row["role"], row["endpoint"], row["answered_by"]) == ("eval", f"{server.url}/v1", row["model"])
        assert row["problem"] == row["remedy"] == ""
        assert 0 < row["seconds"] < 10
    assert [(row["status"], row["content_chars"]) for row in checked.rows] == [("ok", 5), ("reasoning_only", 0)]
    state = server.state()
    assert (state["workers"], state["listed"]) == ({}, []) and server.rss_mb() < idle_mb + 40
    asked = [one["body"] for one in server.asked("/v1/chat/completions")]
    assert [one["model"] for one in asked] == ["qwen3:8b", "thinking-ollama"]
    assert all(one["max_tokens"] == 16 and one["temperature"] == 0 and one["stream"] is False for one in asked)
    assert "| thinking-ollama | eval | yes | reasoning_only | 0 |" in checked.markdown
    assert_in_the_journal(checked)


def assert_in_the_journal(checked: Any) -> None:
    """Every figure, in order; a check is no night; the chain holds."""
    shop = checked.shop
    kinds = [event.kind for event in shop.events()]
    per_model = ["reset.started", "reset.finished", "settle.started", "settle.finished"] * 2 + ["check.model"]
    assert kinds == ["check.started", *per_model * len(checked.rows), "check.finished"]
    (started,) = shop.events("check.started")
    assert started.data["models"] == [row["model"] for row in checked.rows]
    assert started.night.endswith("_check") and (shop.runs / started.night / "check.json").exists()
    with shop.reader() as reader:
        stored = reader.checks(started.night)
        samples = reader.samples(started.night)
    assert [row["ram_delta_mb"] for row in stored] == [row["ram_delta_mb"] for row in checked.rows]
    first = [sample.mb for sample in samples if sample.entry == 0]
    assert round(max(first), 1) == checked.rows[0]["ram_after_mb"]
    settled = [event.data["baseline_mb"]["held"] for event in shop.events("settle.finished")]
    assert settled[:2] == [checked.rows[0]["ram_before_mb"], checked.rows[0]["ram_back_mb"]]
    assert [e.data["loaded_before"] for e in shop.events("reset.finished")][:2] == [["left-over:7b"], ["qwen3:8b"]]
    (finished,) = shop.events("check.finished")
    assert finished.data == {"failed": 0, "interrupted": ""}
    nights = shop.runq("nights", "--json")
    assert (nights.returncode, json.loads(nights.stdout)) == (0, [])
    verified = shop.runq("replay", "--verify")
    assert verified.returncode == 0, verified.stderr
    assert "check" not in shop.runq("status").stdout


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["one", "echo"])
def test_a_server_that_answers_every_name_with_its_one_model(host: Any, check: Any, mode: str) -> None:
    server = host("lms", mode)
    checked = check(server.url, [ONE, "right/model", "quite-another"], studio(server), of=server)
    assert checked.code == 1
    assert checked.verdicts() == {ONE: "ok", "right/model": "fail", "quite-another": "fail"}
    assert checked.row(ONE)["context_length"] == 8192
    for name in ("right/model", "quite-another"):
        row = checked.row(name)
        assert ONE in row["problem"] and ONE in row["remedy"]
        assert f"{name}: {row['problem']}" in checked.err.replace("\n", " ")
    assert "did you mean 'right/model-8b'?" in checked.row("right/model")["remedy"]
    assert "it offers right/model-8b" in checked.row("quite-another")["remedy"]
    expected = {"one": "right/model-8b answered in its place", "echo": "the server lists right/model-8b as loaded"}
    assert expected[mode] in checked.row("quite-another")["problem"]
    assert server.workers() == {}


def test_the_shapes_of_answers(host: Any, check: Any) -> None:
    server = host("ollama", "honest", size_mb=1)
    good = {"thinking": "reasoning_only", "thinking-ollama": "reasoning_only", "no-usage": "ok", "stream": "ok"}
    bad = {
        "made-up": ("error", "upstream exited", False),
        "only-made-up": ("empty", "it answered with an empty text", False),
        "error-200": ("error", "insufficient system resources", False),
        "empty": ("empty", "it answered with an empty text", True),
        "nosuch": ("error", "HTTP 404: model 'nosuch' not found", False),
    }
    checked = check(server.url, [*good, *bad], of=server)  # `reset: none`, which proves nothing and takes no time
    assert checked.code == 1
    for model, status in good.items():
        row = checked.row(model)
        assert (row["status"], row["loaded"], row["verdict"]) == (status, True, "warn")
        assert "cannot be proven that it is gone" in row["problem"] and "backend that can verify" in row["remedy"]
    for model, (status, problem, loaded) in bad.items():
        row = checked.row(model)
        assert (row["status"], row["verdict"], row["loaded"]) == (status, "fail", loaded), model
        assert problem in row["problem"] and row["remedy"]
    assert "it offers qwen3:8b, gemma3:4b" in checked.row("nosuch")["remedy"]
    assert checked.row("thinking")["content_chars"] == 0


def test_a_server_that_loads_for_a_while_is_waited_for(host: Any, check: Any) -> None:
    server = host("ollama", "honest", size_mb=1)
    checked = check(server.url, ["ready-after-6"], "none", "--timeout", "30", of=server)
    row = checked.row("ready-after-6")
    assert (row["status"], row["verdict"]) == ("ok", "warn") and row["seconds"] >= 2
    assert len(server.asked("/v1/chat/completions")) >= 2


def test_a_server_that_only_says_it_loads_is_given_up(host: Any, check: Any) -> None:
    server = host("ollama", "honest", size_mb=1)
    checked = check(server.url, ["ready-after-999"], "none", "--timeout", "3", of=server)
    row = checked.row("ready-after-999")
    assert (row["status"], row["verdict"]) == ("error", "fail") and row["seconds"] <= 3.5
    assert row["problem"] == "HTTP 503: Loading model" and "--timeout" in row["remedy"]


def silent(connection: Any) -> None:
    threading.Event().wait(60)


def dripping(connection: Any) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{")
    for _ in range(600):
        connection.sendall(b" ")
        time.sleep(0.1)


@pytest.mark.parametrize("behave", [silent, dripping])
def test_a_dead_endpoint_costs_at_most_its_bound(check: Any, raw_server: Any, behave: Any) -> None:
    url = f"http://127.0.0.1:{raw_server(behave)}"
    began = time.monotonic()
    checked = check(url, ["m"], "none", "--timeout", "3")
    (row,) = checked.rows
    assert checked.code == 1 and time.monotonic() - began < 3 + 6
    assert 3 <= row["seconds"] < 4
    assert (row["status"], row["loaded"], row["verdict"]) == ("error", False, "fail")
    assert row["problem"] == "no answer within 3 s" and "--timeout" in row["remedy"]


@pytest.mark.slow
def test_an_endpoint_whose_reset_hangs_too_is_bounded(check: Any, raw_server: Any) -> None:
    url = f"http://127.0.0.1:{raw_server(silent)}"
    began = time.monotonic()
    checked = check(url, ["m"], f"{{ backend: ollama, host: '{url}', timeout_s: 2 }}", "--timeout", "2")
    (row,) = checked.rows
    # two resets and the settling after each, the request, one look at the list
    assert checked.code == 1 and time.monotonic() - began < 2 * (2 + 5) + 2 + 2 + 4
    assert row["problem"] == "no answer within 2 s"
    assert (row["reset_verdict"], row["evict_verdict"]) == ("failed", "failed")


def test_a_refused_connection_costs_nothing(check: Any, free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}"
    checked = check(url, ["a", "b"], "none")
    assert checked.code == 1 and checked.verdicts() == {"a": "fail", "b": "fail"}
    for row in checked.rows:
        assert row["seconds"] < 1
        assert "cannot be reached" in row["problem"] and url in row["remedy"]


@pytest.mark.slow
def test_a_server_that_keeps_the_memory_fails(host: Any, check: Any) -> None:
    server = host("ollama", "keeps")
    reset = f"{{ backend: ollama, host: '{server.url}', timeout_s: 5 }}"
    checked = check(server.url, ["qwen3:8b"], reset, of=server)
    (row,) = checked.rows
    assert checked.code == 1
    assert (row["verdict"], row["evict_verdict"], row["memory_back"]) == ("fail", "unverified", False)
    assert row["problem"] == "its memory did not come back after the eviction" and "restart the server" in row["remedy"]
    assert row["ram_back_mb"] > row["ram_before_mb"] + 300


@pytest.mark.slow
def test_a_server_that_does_not_evict_fails(host: Any, check: Any) -> None:
    server = host("lms", "never")
    reset = f"{{ backend: lms, base_url: '{server.url}', binary: /nowhere/lms, timeout_s: 3 }}"
    checked = check(server.url, ["phi-4"], reset, of=server)
    (row,) = checked.rows
    assert (checked.code, row["verdict"], row["evict_verdict"]) == (1, "fail", "failed")
    assert row["problem"] == "it could not be evicted: still loaded: phi-4" and "unload it by hand" in row["remedy"]


def test_a_reset_that_proves_nothing_is_not_believed_when_the_memory_stays(host: Any, check: Any) -> None:
    server = host("ollama", "honest")
    checked = check(server.url, ["qwen3:8b"], "{ backend: command, command: 'true' }", of=server)
    (row,) = checked.rows
    assert (checked.code, row["verdict"], row["memory_back"]) == (1, "fail", False)
    assert row["problem"] == "its memory did not come back after the eviction"


def test_a_reset_that_asks_another_server_is_found_out(host: Any, check: Any) -> None:
    server, other = host("ollama", "honest"), host("ollama", "honest", size_mb=1)
    checked = check(server.url, ["qwen3:8b"], ollama(other), of=server)
    (row,) = checked.rows
    assert (checked.code, row["evict_verdict"], row["memory_back"]) == (1, "verified", False)
    assert "the reset asks another server than the one that answers" in row["remedy"]


def test_a_model_of_somebody_else_is_a_warning(host: Any, check: Any) -> None:
    server = host("ollama", "honest", size_mb=20)
    checked = check(server.url, ["beside"], ollama(server), of=server)
    (row,) = checked.rows
    assert (checked.code, row["verdict"], row["status"]) == (0, "warn", "ok")
    assert row["problem"] == "loaded beside it: someone-elses" and "another program" in row["remedy"]
    assert row["loaded_models"] == ["beside", "someone-elses"] and server.workers() == {}
