"""A server per model: started, awaited, ended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import attrs
import pytest

from runq.plugin import ModelSpec, PluginError, ResetContext
from runq.testing import FakeServer, FakeSupervisor, make_context, make_entry
from runq_plugins.reset.server import ServerReset

SCRIPT = """
import http.server, os, sys, time
model, port, loading, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
print("loading", model, os.environ.get("EXTRA"), flush=True)
if mode == "crash":
    sys.exit("out of memory: " + model)
asked = 0
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        ready = asked > loading and mode != "never"
        self.send_response(200 if ready and self.path == "/health" else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@attrs.define
class Process:
    process: subprocess.Popen[bytes]
    model: str
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def running(self) -> bool:
        return self.process.poll() is None

    def log_tail(self) -> list[str]:
        return self.log.read_text().splitlines()


@attrs.define
class RealSupervisor:
    """Starts real processes; small, for these tests."""

    folder: Path
    started: list[Process] = attrs.field(factory=list)

    def start(self, argv, *, model, env=None) -> Process:
        log = self.folder / f"server-{len(self.started)}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                argv, env={**os.environ, **(env or {})}, stdout=stream, stderr=stream, start_new_session=True
            )
        self.started.append(Process(process, model, log))
        return self.started[-1]

    def servers(self) -> list[Process]:
        return list(self.started)

    def stop_all(self) -> list[int]:
        for one in self.started:
            one.process.kill()
            one.process.wait()
        self.started.clear()
        return []


@pytest.fixture
def supervisor(tmp_path):
    real = RealSupervisor(tmp_path)
    yield real
    real.stop_all()


@pytest.fixture
def context(tmp_path, supervisor):
    """Real time: a real server is awaited."""
    return ResetContext(
        entry=make_entry(tmp_path), supervisor=supervisor, sleep=time.sleep, clock=time.monotonic, env=dict(os.environ)
    )


@pytest.fixture
def backend(tmp_path, free_port):
    script = tmp_path / "server.py"
    script.write_text(SCRIPT)

    def make(mode: str = "ok", loading: int = 2, **options) -> ServerReset:
        return ServerReset(
            argv=(sys.executable, str(script), "{model}", "{port}", str(loading), mode),
            port=free_port,
            health_interval_s=0.02,
            **options,
        )

    return make


def test_start_waits_for_health_and_reset_ends_it(backend, context, supervisor):
    server = backend(env={"EXTRA": "given"})
    server.start(context, ModelSpec(id="qwen/q {8}"))
    (started,) = supervisor.servers()
    assert started.model == "qwen/q {8}"
    assert started.log_tail() == ["loading qwen/q {8} given"]
    assert server.loaded(context) == ["qwen/q {8}"]
    outcome = server.reset(context)
    assert (outcome.verdict, outcome.loaded_before, outcome.loaded_after) == ("verified", ("qwen/q {8}",), ())
    assert outcome.details == {"stopped_pids": [started.pid], "survivors": []}
    assert server.loaded(context) == []


def test_the_next_model_starts_on_the_same_port(backend, context, supervisor):
    server = backend()
    for name in ("one", "two"):
        server.start(context, ModelSpec(id=name))
        assert server.loaded(context) == [name]
        assert server.reset(context).verdict == "verified"


def test_nothing_running_is_verified(backend, context):
    outcome = backend().reset(context)
    assert (outcome.verdict, outcome.loaded_before, outcome.loaded_after) == ("verified", (), ())


def test_a_server_that_ends_early_is_an_error_with_its_log(backend, context, supervisor):
    with pytest.raises(PluginError, match=r"the server of big ended before it was healthy; .*out of memory: big"):
        backend("crash").start(context, ModelSpec(id="big"))
    assert supervisor.servers() == []


def test_a_server_that_never_gets_healthy_is_ended(backend, context, supervisor):
    with pytest.raises(PluginError, match=r"not healthy within 1 s \(last answer at .*/health: HTTP 503\)") as caught:
        backend("never", start_timeout_s=1).start(context, ModelSpec(id="m"))
    assert "start_timeout_s" in caught.value.remedy
    assert supervisor.servers() == []


def test_a_port_on_which_nothing_comes_up_is_told(tmp_path, free_port):
    supervisor = FakeSupervisor()
    server = ServerReset(argv=("x",), port=free_port, start_timeout_s=3)
    with pytest.raises(PluginError, match="nothing listened"):
        server.start(make_context(tmp_path, supervisor=supervisor), ModelSpec(id="m"))
    assert supervisor.started == [(("x",), "m", {})] and supervisor.servers() == ()


def test_another_program_on_the_port_is_refused_before_the_spawn(serve, tmp_path):
    supervisor = FakeSupervisor()
    port = serve(lambda *_: (404, b"")).port
    with pytest.raises(PluginError, match=r"something already answers at .* \(HTTP 404\)"):
        ServerReset(argv=("x",), port=port).start(make_context(tmp_path, supervisor=supervisor), ModelSpec(id="m"))
    assert supervisor.started == []


def test_another_program_after_the_stop_is_unverified(serve, tmp_path):
    server = ServerReset(argv=("x",), port=serve(lambda *_: (200, b"")).port)
    outcome = server.reset(make_context(tmp_path))
    assert outcome.verdict == "unverified" and "something else answers" in outcome.reason and outcome.remedy


def test_a_silent_program_on_the_port_counts_as_answering(raw_server, tmp_path, monkeypatch):
    monkeypatch.setattr("runq_plugins.reset.server.QUESTION_S", 0.3)
    port = raw_server(lambda connection: threading.Event().wait(60))
    assert ServerReset(argv=("x",), port=port).reset(make_context(tmp_path)).verdict == "unverified"


def test_survivors_are_named(tmp_path, free_port):
    supervisor = FakeSupervisor(survivors=(41, 42))
    supervisor.start(["x"], model="stuck")
    outcome = ServerReset(argv=("x",), port=free_port).reset(make_context(tmp_path, supervisor=supervisor))
    assert (outcome.verdict, outcome.loaded_after) == ("failed", ("stuck",))
    assert "pid 41, 42" in outcome.reason and "41,42" in outcome.remedy


def test_a_server_that_dies_just_after_it_was_healthy_is_not_taken_for_up(serve, tmp_path, monkeypatch):
    answers = iter([None, "HTTP 200"])
    monkeypatch.setattr(ServerReset, "_ask", lambda *_: next(answers))
    supervisor = FakeSupervisor(make=lambda pid, model: FakeServer(pid, model, lives=0))
    with pytest.raises(PluginError, match="ended before it was healthy"):
        ServerReset(argv=("x",), port=1).start(make_context(tmp_path, supervisor=supervisor), ModelSpec(id="m"))


def test_the_endpoint_is_the_origin_of_the_health_url():
    assert ServerReset(argv=("x",), port=8080).endpoint({}) == "http://127.0.0.1:8080"
    server = ServerReset(argv=("x",), port=99, health_url="http://[::1]:{port}/v1/models")
    assert server.endpoint({}) == "http://[::1]:99"
    assert ServerReset.can_verify is True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"argv": ()}, "argv must not be empty"),
        ({"argv": ("x", "{modell}")}, r"argv: \{modell\} is not known; known are \{model\}, \{port\}"),
        ({"argv": ("x", "{model.__class__}")}, "write a placeholder"),
        ({"argv": ("x", "{")}, "write a placeholder"),
        ({"argv": ("x", "{model!r}")}, "write a placeholder"),
        ({"port": 0}, "port must be a port"),
        ({"port": 65536}, "port must be a port"),
        ({"health_url": "localhost:{port}"}, "health_url: .* must begin with http"),
        ({"health_url": "http://h/{model}"}, "only {port} may stand in it"),
        ({"health_url": "http://h/{nope}"}, "health_url: {nope} is not known"),
        ({"start_timeout_s": 0}, "start_timeout_s"),
        ({"health_interval_s": -1}, "health_interval_s"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        ServerReset(**({"argv": ("x",), "port": 1} | options))


def test_doubled_braces_are_braces(tmp_path, free_port):
    supervisor = FakeSupervisor(make=lambda pid, model: FakeServer(pid, model, lives=0))
    server = ServerReset(argv=("x", '{{"model": "{model}"}}'), port=free_port)
    with pytest.raises(PluginError):
        server.start(make_context(tmp_path, supervisor=supervisor), ModelSpec(id="m"))
    assert supervisor.started[0][0] == ("x", '{"model": "m"}')
