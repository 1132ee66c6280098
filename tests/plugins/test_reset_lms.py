"""LM Studio: by REST, by `lms`, and through the lies of both."""

from __future__ import annotations

import os
import threading

import psutil
import pytest

from runq.plugin import TellsContext
from runq.testing import FakeClock, make_context
from runq_plugins.reset import lms_cli, owner
from runq_plugins.reset.lms import LmsReset
from runq_plugins.reset.lms_cli import find_lms, lm_studio_home

QWEN = {
    "type": "llm",
    "publisher": "qwen",
    "key": "qwen/qwen3-8b",
    "size_bytes": 5027783488,
    "loaded_instances": [{"id": "qwen/qwen3-8b", "config": {"context_length": 8192}}],
    "max_context_length": 40960,
    "format": "gguf",
}
EMBED = {"type": "embedding", "key": "nomic", "size_bytes": 84106624, "loaded_instances": []}
WRONG_PATH = {"error": "Unexpected endpoint or method. (POST /api/v1/models/unload)"}
PS = {"type": "llm", "modelKey": "qwen/qwen3-8b", "sizeBytes": 5027783488, "identifier": "qwen/qwen3-8b"}
PS |= {"deviceIdentifier": None, "status": "idle"}


class Studio:
    """An LM Studio server: ``models`` as listed; an unload removes the instance unless ``unload`` says otherwise."""

    def __init__(self, *models, unload=None, listing=None):
        self.models = [dict(model) for model in models]
        self.unload, self.listing = unload, listing

    def __call__(self, method, path, body):
        if (method, path) == ("GET", "/api/v1/models"):
            return self.listing or (200, {"models": self.models})
        if (method, path) != ("POST", "/api/v1/models/unload"):
            return 200, {"error": f"Unexpected endpoint or method. ({method} {path})"}
        if self.unload:
            return self.unload
        for model in self.models:
            model["loaded_instances"] = [i for i in model["loaded_instances"] if i["id"] != body["instance_id"]]
        return 200, {"instance_id": body["instance_id"]}


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def context(tmp_path, clock):
    """No `lms` on the PATH, a home without LM Studio."""
    return make_context(tmp_path, clock=clock, env={"PATH": "/nowhere", "HOME": str(tmp_path / "home")})


def test_every_instance_of_every_model_is_unloaded_by_its_id(serve, context):
    twice = QWEN | {"loaded_instances": [{"id": "qwen/qwen3-8b"}, {"id": "qwen/qwen3-8b:2"}]}
    embed = EMBED | {"loaded_instances": [{"id": "nomic"}]}
    served = serve(Studio(twice, embed))
    outcome = LmsReset(base_url=served.url + "/v1/").reset(context)
    assert served.posted() == [{"instance_id": name} for name in ("qwen/qwen3-8b", "qwen/qwen3-8b:2", "nomic")]
    assert outcome.loaded_before == ("qwen/qwen3-8b", "qwen/qwen3-8b:2", "nomic")
    assert outcome.loaded_after == ()
    assert outcome.verdict == "unverified" and "cannot be seen" in outcome.reason  # pytest is no LM Studio
    assert outcome.details["loaded_mb"] == pytest.approx((2 * 5027783488 + 84106624) / 2**20)


def test_http_200_for_an_unknown_path_is_no_unload(serve, context, clock):
    outcome = LmsReset(base_url=serve(Studio(QWEN, unload=(200, WRONG_PATH))).url).reset(context)
    assert outcome.verdict == "failed" and outcome.loaded_after == ("qwen/qwen3-8b",)
    assert "did not confirm the unload (HTTP 200" in outcome.reason
    assert clock.now_s - 1000 < 15


def test_an_answer_without_the_instance_fails_only_when_the_model_stays(serve, context):
    studio = Studio(QWEN, unload=(404, {"error": {"message": "not loaded"}}))

    def gone(method, path, body):
        answer = studio(method, path, body)
        if method == "POST":
            studio.models[0]["loaded_instances"] = []
        return answer

    outcome = LmsReset(base_url=serve(gone).url).reset(context)
    assert outcome.loaded_after == () and outcome.verdict == "unverified"


def test_an_unload_that_is_never_answered_is_bounded(raw_server, context):
    def behave(connection):
        data = connection.recv(65536)
        if data.startswith(b"GET"):
            body = b'{"models":[{"key":"m","size_bytes":1,"loaded_instances":[{"id":"m"}]}]}'
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        else:
            threading.Event().wait(60)

    outcome = LmsReset(base_url=f"http://127.0.0.1:{raw_server(behave)}", timeout_s=1.5).reset(context)
    assert outcome.verdict == "failed" and "was not answered" in outcome.reason


def test_a_broken_unload_answer_is_told(raw_server, context):
    def behave(connection):
        if connection.recv(65536).startswith(b"GET"):
            body = b'{"models":[{"key":"m","size_bytes":true,"loaded_instances":[{"id":"m"}]}]}'
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        connection.close()

    outcome = LmsReset(base_url=f"http://127.0.0.1:{raw_server(behave)}").reset(context)
    assert outcome.verdict == "failed" and "the unload of m was not answered: 127.0.0.1:" in outcome.reason
    assert outcome.details["loaded_mb"] is None


@pytest.mark.parametrize(
    ("listing", "reason"),
    [
        ((200, WRONG_PATH), "is not LM Studio's list of models (HTTP 200"),
        ((404, b"nothing"), "is not LM Studio's list"),
        ((401, {"error": "token"}), "without a key"),
        ((200, {"models": [{"key": "m"}]}), "without `loaded_instances`"),
        ((200, {"models": [7]}), "without `loaded_instances`"),
        ((200, {"models": [{"loaded_instances": [{}]}]}), "without an id"),
    ],
)
def test_a_wrong_list_fails_with_its_own_reason(serve, context, listing, reason):
    backend = LmsReset(base_url=serve(Studio(listing=listing)).url)
    outcome = backend.reset(context)
    assert outcome.verdict == "failed" and reason in outcome.reason and outcome.remedy
    assert backend.loaded(context) is None


def test_nothing_there_at_all_is_an_outcome(context, free_port):
    outcome = LmsReset(base_url=f"http://127.0.0.1:{free_port}").reset(context)
    assert (
        outcome.verdict == "failed" and "could not be asked" in outcome.reason and "lms server start" in outcome.remedy
    )


def test_hanging_and_garbage_have_reasons_of_their_own(context, raw_server):
    hanging = raw_server(lambda connection: threading.Event().wait(60))
    outcome = LmsReset(base_url=f"http://127.0.0.1:{hanging}", timeout_s=0.5).reset(context)
    assert outcome.verdict == "failed" and "LM Studio is busy or hangs" in outcome.reason

    def garbage(connection):
        connection.recv(4096)
        connection.sendall(b"220 smtp ready\r\n\r\n")
        connection.close()

    outcome = LmsReset(base_url=f"http://127.0.0.1:{raw_server(garbage)}").reset(context)
    assert outcome.verdict == "failed" and "not LM Studio" in outcome.reason


def test_the_token_travels_and_shows_nowhere(serve, tmp_path):
    served = serve(Studio(QWEN))
    context = make_context(tmp_path, env={"MY_TOKEN": " s3cret\n", "PATH": ""})
    backend = LmsReset(base_url=served.url, api_token_env="MY_TOKEN")
    outcome = backend.reset(context)
    assert all(headers["Authorization"] == "Bearer s3cret" for headers in served.headers)
    studio = backend._studio(context)
    assert "s3cret" not in repr(outcome) + repr(studio) + repr(studio._rest())


def test_loaded_lists_instances(serve, context):
    assert LmsReset(base_url=serve(Studio(QWEN, EMBED)).url).loaded(context) == ["qwen/qwen3-8b"]


def test_context_lengths_by_instance_and_by_model(serve, context):
    two = [{"id": "qwen/qwen3-8b:2", "config": {"context_length": 4096}}, {"id": "mine", "config": {}}]
    twice = QWEN | {"loaded_instances": [*QWEN["loaded_instances"], *two]}
    odd = EMBED | {"loaded_instances": [{"id": "nomic", "config": {"context_length": True}}, {"id": "bare"}]}
    named = QWEN | {"key": "gemma", "loaded_instances": [{"id": "night", "config": {"context_length": 2048}}]}
    backend = LmsReset(base_url=serve(Studio(twice, odd, named)).url)
    assert isinstance(backend, TellsContext)
    assert backend.context_lengths(context) == {
        "qwen/qwen3-8b": 8192,
        "qwen/qwen3-8b:2": 4096,
        "gemma": 2048,
        "night": 2048,
    }


def test_no_context_length_where_nobody_answers(serve, context, free_port):
    assert LmsReset(base_url=f"http://127.0.0.1:{free_port}").context_lengths(context) == {}
    assert LmsReset(base_url=serve(Studio(EMBED)).url).context_lengths(context) == {}


# --- with real processes --------------------------------------------------------------------------------------------


def test_the_workers_end_proves_the_eviction(model_server, context):
    server = model_server("lms", "frees")
    outcome = LmsReset(base_url=server.url).reset(context)
    assert (outcome.verdict, outcome.loaded_before, outcome.loaded_after) == ("verified", ("qwen/qwen3-8b",), ())
    assert {one["pid"] for one in outcome.details["owners_after"]} == {server.pid}


def test_a_worker_that_lives_but_shrank_is_verified(model_server, context):
    server = model_server("lms", "shrinks")
    outcome = LmsReset(base_url=server.url).reset(context)
    assert outcome.verdict == "verified" and len(outcome.details["owners_after"]) == 2


def test_a_worker_that_keeps_the_memory_is_not(model_server, context, clock):
    server = model_server("lms", "keeps")
    outcome = LmsReset(base_url=server.url).reset(context)
    assert outcome.verdict == "unverified" and "gave back" in outcome.reason
    assert clock.now_s - 1000 < 20  # ten seconds of grace, not the whole limit


def test_a_list_that_never_empties_fails(model_server, context):
    outcome = LmsReset(base_url=model_server("lms", "lies").url, timeout_s=8).reset(context)
    assert outcome.verdict == "failed" and outcome.reason == "still loaded: qwen/qwen3-8b"


def test_an_endpoint_proven_empty_before_is_verified(model_server, context):
    outcome = LmsReset(base_url=model_server("lms", "idle").url).reset(context)
    assert (outcome.verdict, outcome.loaded_before) == ("verified", ())


def test_an_unlisted_but_heavy_worker_is_doubted(model_server, context):
    outcome = LmsReset(base_url=model_server("lms", "orphan", size_mb=1100).url).reset(context)
    assert outcome.verdict == "unverified" and "its memory was kept" in outcome.reason


# --- by lms ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def by_cli(context, free_port, clock):
    def run(lms, **options):
        backend = LmsReset(base_url=f"http://127.0.0.1:{free_port}", binary=str(lms.binary), **options)
        return backend.reset(context), backend

    return run


@pytest.fixture
def no_studio(monkeypatch):
    """LM Studio processes of other tests on this machine do not count."""
    monkeypatch.setattr(lms_cli.psutil, "process_iter", lambda: iter(()))


def test_a_daemon_that_does_not_run_holds_nothing_and_is_not_woken(make_lms, by_cli, context, no_studio):
    lms = make_lms()
    outcome, backend = by_cli(lms)
    assert (outcome.verdict, outcome.loaded_before, outcome.loaded_after) == ("verified", (), ())
    assert backend.loaded(context) == []
    assert lms.calls() == ["daemon status --json"] * 2


def test_a_left_over_process_of_a_daemon_that_does_not_run_is_doubted(make_lms, by_cli, monkeypatch, model_server):
    server = model_server("lms", "orphan", size_mb=1100)
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
    monkeypatch.setattr(lms_cli.psutil, "process_iter", lambda: iter(family))
    outcome, _ = by_cli(make_lms())
    assert outcome.verdict == "unverified" and outcome.remedy == "end that process"


def test_all_is_unloaded_and_listed_again(make_lms, by_cli, context):
    lms = make_lms(models=[PS], daemon={"status": "running", "pid": os.getpid(), "isDaemon": True})
    outcome, backend = by_cli(lms)
    assert outcome.loaded_before == ("qwen/qwen3-8b",) and outcome.loaded_after == ()
    assert outcome.verdict == "unverified"  # the pid told is pytest's
    calls = lms.calls()
    assert calls[0] == "daemon status --json" and calls.count("unload --all") == 1
    assert calls.count("ps --json") == 5  # before, while evicting, and three empty ones
    assert backend.loaded(context) == []


def test_lms_tells_context_lengths_too_and_wakes_nothing_for_them(make_lms, by_cli, context):
    entries = [PS | {"contextLength": 8192}, PS | {"identifier": "embed", "modelKey": "embed", "contextLength": "?"}]
    lms = make_lms(models=entries, daemon={"status": "running"}, lies=True)
    _, backend = by_cli(lms, timeout_s=0.5)
    assert backend.context_lengths(context) == {"qwen/qwen3-8b": 8192}
    down = make_lms(models=entries)
    (down.place / "calls").unlink()
    assert backend.context_lengths(context) == {}
    assert down.calls() == ["daemon status --json"]


def test_the_family_of_the_told_pid_proves_it(make_lms, by_cli, model_server):
    server = model_server("lms", "orphan", size_mb=50)
    outcome, _ = by_cli(make_lms(models=[], daemon={"status": "running", "pid": server.pid}))
    assert outcome.verdict == "verified" and len(outcome.details["owners_after"]) == 2


@pytest.mark.parametrize("pid", [None, True, 2**22 + 1])
def test_without_a_visible_pid_the_list_alone_is_unverified(make_lms, by_cli, pid):
    outcome, _ = by_cli(make_lms(models=[PS], daemon={"status": "running", "pid": pid}))
    assert outcome.verdict == "unverified" and "cannot be seen" in outcome.reason


def test_models_of_other_machines_are_left_alone(make_lms, by_cli, context):
    remote = PS | {"identifier": "big", "deviceIdentifier": "colleague"}
    lms = make_lms(models=[PS, remote], daemon={"status": "running"})
    outcome, backend = by_cli(lms)
    assert "unload qwen/qwen3-8b" in lms.calls() and "unload --all" not in lms.calls()
    assert outcome.loaded_before == ("qwen/qwen3-8b",) and outcome.loaded_after == ()
    assert backend.loaded(context) == []


def test_exit_0_that_unloaded_nothing_fails(make_lms, by_cli):
    outcome, _ = by_cli(make_lms(models=[PS], daemon={"status": "running"}, lies=True), timeout_s=5)
    assert outcome.verdict == "failed" and outcome.reason == "still loaded: qwen/qwen3-8b"


def test_a_failing_unload_is_told(make_lms, by_cli):
    outcome, _ = by_cli(make_lms(models=[PS], daemon={"status": "running"}, fails=True))
    assert outcome.verdict == "failed"
    assert "`lms unload --all` failed (exit 1: Error: cannot unload)" in outcome.reason


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"daemon": "no json"}, "does not tell whether LM Studio runs"),
        ({"daemon": {"status": "starting"}}, "does not tell whether LM Studio runs"),
        ({"daemon": {"status": "running"}, "ps": "Waking up"}, "did not list models"),
        ({"daemon": {"status": "running"}, "models": [{}]}, "without an identifier"),
    ],
)
def test_odd_output_fails_with_its_own_reason(make_lms, by_cli, context, state, reason):
    outcome, backend = by_cli(make_lms(**state))
    assert outcome.verdict == "failed" and reason in outcome.reason and outcome.remedy
    assert backend.loaded(context) is None


@pytest.mark.parametrize("command", ["daemon", "ps"])
def test_a_hanging_lms_is_bounded(make_lms, by_cli, command):
    outcome, _ = by_cli(make_lms(models=[PS], daemon={"status": "running"}, hang=[command]), timeout_s=1)
    assert outcome.verdict == "failed" and "did not end within" in outcome.reason


def test_a_wrong_binary_is_an_outcome(context, free_port, tmp_path):
    backend = LmsReset(base_url=f"http://127.0.0.1:{free_port}", binary=str(tmp_path / "none"))
    outcome = backend.reset(context)
    assert outcome.verdict == "failed" and "lms cannot be started" in outcome.reason and "binary" in outcome.remedy


def test_lms_is_no_help_with_another_machine(make_lms, context):
    lms = make_lms()
    backend = LmsReset(base_url="http://runq.invalid:1234", binary=str(lms.binary), timeout_s=2)
    assert backend.reset(context).verdict == "failed"
    assert lms.calls() == []


def test_lms_is_found_where_lm_studio_puts_it(make_lms, tmp_path):
    home = tmp_path / "home"
    env = {"PATH": "/nowhere", "HOME": str(home)}
    assert find_lms(env) is None
    assert lm_studio_home(home) == home / ".lmstudio"
    newest = make_lms(home / ".lmstudio" / "bin").binary
    assert find_lms(env) == str(newest)
    old = make_lms(home / ".cache" / "lm-studio" / "bin").binary
    assert find_lms(env) == str(old)
    pointed = make_lms(tmp_path / "elsewhere" / "bin").binary
    (home / ".lmstudio-home-pointer").write_text(f"{tmp_path / 'elsewhere'}\n")
    assert find_lms(env) == str(pointed)
    on_path = make_lms(tmp_path / "path").binary
    assert find_lms(env | {"PATH": str(tmp_path / "path")}) == str(on_path)


def test_without_a_home_there_is_no_lms(monkeypatch):
    def no_home():
        raise RuntimeError("no home")

    monkeypatch.setattr(lms_cli.Path, "home", no_home)
    assert find_lms({}) is None


# --- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "endpoint"),
    [
        ("http://127.0.0.1:1234", "http://127.0.0.1:1234"),
        ("http://127.0.0.1:1234/", "http://127.0.0.1:1234"),
        ("http://box:1234/v1", "http://box:1234"),
        ("http://box:1234/api/v1/", "http://box:1234"),
        ("https://box/lm", "https://box/lm"),
    ],
)
def test_the_endpoint_is_the_server(written, endpoint):
    assert LmsReset(base_url=written).endpoint({}) == endpoint


@pytest.mark.parametrize(
    "options",
    [{"base_url": "box:1234"}, {"base_url": "http://["}, {"binary": ""}, {"timeout_s": 0}, {"api_token_env": ""}],
)
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        LmsReset(**options)


def test_the_listener_of_another_machine_is_not_looked_for():
    from runq_plugins.reset.owner import listener_of

    assert listener_of("http://192.0.2.7:1234") is None
    assert owner.is_local("192.0.2.7") is False
