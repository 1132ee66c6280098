"""The figures of the morning: which baseline is proven, what the next entry is compared with, what a model took."""

import signal

import pytest

ENTRIES = [
    # model, memory after the reset, verdict, memory the model takes
    ("a", 1000, "verified", 1500),
    ("b", 1010, "verified", 1800),
    ("c", 1020, "unverified", 1900),
    ("d", 1005, "verified", 1700),
    ("e", 1400, "unverified", 2000),
]
TAKES = {model: mb for model, _, _, mb in ENTRIES}


@pytest.fixture
def shop(workshop):
    """An endpoint whose memory is a file: the reset writes it, the step adds its model."""
    workshop.commands(
        [model for model, *_ in ENTRIES],
        {"work": f"takes = {TAKES}\nPath('memory').write_text(str(takes[model]))\ndone()"},
        defaults="probes: [fake]",
        entries={
            model: f"reset: {{ backend: fake, mb: {after}, verdict: {verdict} }}"
            for model, after, verdict, _ in ENTRIES
        },
    )
    text = workshop.queue.read_text()
    at = text.index("  settle:")
    settle = "  settle: { timeout_s: 0.5, plateau_polls: 2, poll_interval_s: 0.02, epsilon_mb: 100 }\n"
    workshop.queue.write_text(text[:at] + settle + text[text.index("\n", at) + 1 :])
    workshop.write("memory", "3000")
    return workshop


def test_baselines_references_and_model_deltas(shop):
    assert shop.night().returncode == 0
    # The first entry has nothing to compare with; an unverified baseline is never handed on.
    assert [e.data["reference_mb"]["fake"] for e in shop.events("settle.started")] == [None, 1000, 1010, 1010, 1005]
    settled = [(e.data["status"], e.data["proven"]) for e in shop.events("settle.finished")]
    assert settled == [
        ("settled", True),  # the backend's word
        ("settled", True),
        ("settled", True),  # near the reference: the level itself is the proof
        ("settled", True),
        ("dirty", False),  # flat, 395 MB above what the reference allows, and nobody says why
    ]
    figures = [
        (e["baseline_mb"], e["baseline_proven"], e["peak_mb"], e["model_delta_mb"]) for e in shop.summary()["entries"]
    ]
    assert figures == [
        (1000.0, True, 1500.0, 500.0),
        (1010.0, True, 1800.0, 790.0),
        (1020.0, True, 1900.0, 880.0),
        (1005.0, True, 1700.0, 695.0),
        (1400.0, False, 2000.0, 600.0),
    ]
    rows = {line[2]: line for line in shop.markdown().splitlines() if line[:3] in {f"| {n}" for n in range(5)}}
    assert "| 1400.0\\* | 600.0\\* |" in rows["4"]
    assert all("\\*" not in rows[n] for n in "0123")
    assert "The baseline is not proven" in shop.markdown()
    lines = shop.runq("status").stdout.splitlines()
    assert [line.split("  ")[-1] for line in lines if line[:3] in {f"e{n} " for n in range(5)}] == [
        "+500 MB", "+790 MB", "+880 MB", "+695 MB", "+600 MB*"
    ]  # fmt: skip
    assert any(line.startswith("* The baseline is not proven") for line in lines)
    # A backend that can verify and could not is told of, as is a baseline that is not clean.
    assert [w["entry"] for w in shop.summary()["warnings"]] == [2, 4]


def test_a_baseline_of_an_earlier_boot_is_no_reference(shop):
    assert shop.night("--only", "e0").returncode == 0
    assert shop.night("--resume", "--only", "e1").returncode == 0
    rebooted = "import runq.processes\nrunq.processes.boot_id = lambda: 'another boot'"
    assert shop.night("--resume", "--only", "e2", code=rebooted).returncode == 0
    assert [e.data["reference_mb"]["fake"] for e in shop.events("settle.started")] == [None, 1000, None]
    # Unverified and nothing to compare with: flat is all there is, and it is marked.
    assert shop.events("settle.finished")[-1].data["proven"] is False
    assert shop.summary()["entries"][2]["baseline_proven"] is False


def test_a_model_that_is_still_loaded_is_never_a_clean_baseline(shop):
    text = shop.queue.read_text().replace("mb: 1010, verdict: verified }", "mb: 1010, verdict: failed, still: [old] }")
    shop.queue.write_text(text)
    assert shop.night("--only", "e0,e1").returncode == 0
    last = shop.events("settle.finished")[-1].data
    assert (last["status"], last["proven"], last["probes"][0]["still_loaded"]) == ("dirty", False, ["old"])


SERVER = """
import http.server, os, sys
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
print("serving", sys.argv[1], flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Health).serve_forever()
"""


def serving(workshop, free_port, script):
    workshop.write("server.py", SERVER)
    workshop.commands(
        ["a", "b"],
        {"work": script},
        defaults=f"reset: {{ backend: server, port: {free_port}, argv: [python, server.py, '{{model}}', '{{port}}'],"
        f" health_url: 'http://127.0.0.1:{{port}}/', health_interval_s: 0.02 }}",
    )


@pytest.fixture
def free_port():
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


ASK = """
import urllib.request
urllib.request.urlopen("http://127.0.0.1:%d/", timeout=5)
done()
if model == "b" and not os.path.exists("go"): time.sleep(600)
"""


def test_a_server_of_ones_own_serves_its_entry_and_is_gone_before_the_next(workshop, free_port):
    shop = workshop
    serving(shop, free_port, ASK % free_port)
    shop.go.touch()
    assert shop.night().returncode == 0
    order = [
        (e.kind, e.entry) for e in shop.events("server.spawned", "server.finished", "settle.finished", "step.finished")
    ]
    assert order == [
        ("settle.finished", 0), ("server.spawned", 0), ("step.finished", 0), ("server.finished", 0),
        ("settle.finished", 1), ("server.spawned", 1), ("step.finished", 1), ("server.finished", 1),
    ]  # fmt: skip
    assert [e["reset_verdict"] for e in shop.summary()["entries"]] == ["verified", "verified"]
    assert all(shop.gone(e.data["pid"]) for e in shop.events("server.spawned"))
    assert shop.marked_processes() == []


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_server_never_outlives_its_night(workshop, free_port, end):
    shop = workshop
    serving(shop, free_port, ASK % free_port)
    runner = shop.start("night", "queue.yaml")
    server = shop.wait_for_event("server.spawned", entry=1).data["pid"]
    shop.wait_for_event("step.spawned", entry=1)
    runner.send_signal(end)
    runner.communicate(timeout=60)
    shop.go.touch()
    if end == signal.SIGKILL:
        assert not shop.gone(server)
        assert shop.night("--resume").returncode == 0
    assert shop.gone(server) and shop.marked_processes() == []
    with shop.reader() as reader:
        assert reader.unfinished() == []
