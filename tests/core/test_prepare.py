"""From a queue file to entries that can run: whatever would fail tonight for a reason known now is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from runq.discovery import GROUPS, Offer, Plugins
from runq.plugin import PluginError, Step
from runq_schemas import QueueFileError

ENTRY = "  - { config: config.yaml, pack: packs/office.yaml, model: m }\n"


def queue(defaults: str = "", *entries: str) -> str:
    head = f"defaults:\n{defaults}" if defaults else ""
    return f"{head}entries:\n{''.join(entries) or ENTRY}"


def refused(prepared: Any, text: str, **changes: Any) -> list[tuple[str, str, str]]:
    with pytest.raises(QueueFileError) as caught:
        prepared(text, **changes)
    assert caught.value.exit_code == 2
    problems = [(p.where, p.message, p.remedy) for p in caught.value.problems]
    assert all(where and remedy for where, _, remedy in problems), "every problem has its place and a remedy"
    return problems


# --- what it makes ----------------------------------------------------------------------------------------------


def test_touchstones_file_runs_as_it_is(prepared: Any, folder: Path) -> None:
    text = """\
defaults:
  reset_command: "lms unload --all"
  settle: { timeout_s: 120, plateau_polls: 3, poll_interval_s: 2, epsilon_mb: 200 }
  step_timeout_s: { eval: 14400, judge: 21600 }
  cooldown_s: 0
entries:
  - config: config.yaml
    pack: packs/office.yaml
    model: { id: "google/gemma-4-12b", reasoning_headroom_tokens: 2000 }
    judge_config: judge.yaml
    judge_model: "qwen/qwen3.6-27b"
"""
    (entry,) = prepared(text).entries
    assert entry.spec.reset.name == "lms"
    assert entry.entry.config == folder / "config.yaml"
    assert entry.entry.base_dir == folder
    assert [step.name for step in entry.steps] == ["eval", "judge"]
    assert entry.timeouts_s == {"eval": 14400.0, "judge": 21600.0}
    assert entry.stalls_s == {"eval": None, "judge": None}
    assert entry.reset_before == {"eval"}
    assert list(entry.probes) == ["system"]
    assert entry.pack_id == "office"
    assert entry.env == {}


def test_every_setting_is_resolved(prepared: Any) -> None:
    text = queue(
        "  reset: none\n  probes: [system, psutil_used, system]\n  stall_timeout_s: 60\n  retries: 2\n",
        "  - { config: config.yaml, pack: packs/office.yaml, judge_config: judge.yaml, model: m,"
        " reset_before: [eval, judge], stall_timeout_s: { judge: 90 }, step_timeout_s: { eval: 5 } }\n",
    )
    (entry,) = prepared(text).entries
    assert list(entry.probes) == ["system", "psutil_used", "system-2"]
    assert entry.reset_before == {"eval", "judge"}
    assert entry.stalls_s == {"eval": None, "judge": 90.0}, "an entry's key replaces the default's as a whole"
    assert entry.timeouts_s == {"eval": 5.0, "judge": 21600.0}
    settings = entry.settings()
    assert settings["retries"] == 2
    assert [probe["name"] for probe in settings["probes"]] == ["system", "psutil_used", "system-2"]
    assert settings["harness"] == {"name": "touchstone", "python": None}


def test_a_timeout_of_a_judge_that_an_entry_has_not_is_no_mistake(prepared: Any) -> None:
    (entry,) = prepared(queue("  step_timeout_s: { eval: 5, judge: 6 }\n")).entries
    assert entry.timeouts_s == {"eval": 5.0}


def test_variables_come_from_the_runners_environment(prepared: Any) -> None:
    text = queue("  env: { A: '${HOST}:${PORT}', B: '$HOST', C: '${', D: '' }\n")
    (entry,) = prepared(text, environ={"HOST": "${PORT}", "PORT": "80"}).entries
    assert entry.env == {"A": "${PORT}:80", "B": "$HOST", "C": "${", "D": ""}, "what a variable holds is not read again"


def test_endpoints_are_the_resets_and_the_harnesses_once_each(prepared: Any) -> None:
    text = queue("  reset: { backend: ollama, host: 'http://box:11434' }\n")
    assert prepared(text).entries[0].endpoints() == ("http://box:11434", "http://127.0.0.1:1234/v1")


def test_absolute_paths_and_home(prepared: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    text = queue("", f"  - {{ config: '{folder}/config.yaml', pack: ~/packs/office.yaml, model: m }}\n")
    (entry,) = prepared(text, base_dir=Path("/")).entries
    assert (entry.entry.config, entry.entry.pack) == (folder / "config.yaml", folder / "packs" / "office.yaml")


# --- what it refuses --------------------------------------------------------------------------------------------


def test_a_missing_file_is_named_with_its_line(prepared: Any, folder: Path) -> None:
    text = queue("", ENTRY, "  - config: config.yaml\n    pack: packs/gone.yaml\n    model: m\n")
    assert refused(prepared, text) == [
        (
            "queue.yaml, entry 1, line 4, column 11",
            "pack 'packs/gone.yaml' does not exist",
            f"create {folder / 'packs' / 'gone.yaml'}, or correct the path",
        )
    ]


def test_a_path_meant_from_the_current_directory_suggests_base_dir(prepared: Any, folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    problems = refused(prepared, queue(), base_dir=elsewhere, cwd=folder)
    assert [message for _, message, _ in problems] == [
        f"config 'config.yaml' is not in {elsewhere}, but it is in the current directory",
        f"pack 'packs/office.yaml' is not in {elsewhere}, but it is in the current directory",
    ]
    assert all(remedy.endswith(f"add --base-dir {folder}") for _, _, remedy in problems)


@pytest.mark.parametrize("path", ["~no-such-user/pack.yaml", "x" * 300])
def test_a_path_that_cannot_be_looked_up_is_a_problem_of_its_entry(prepared: Any, path: str) -> None:
    ((where, message, _),) = refused(prepared, queue("", f"  - {{ config: config.yaml, pack: {path}, model: m }}\n"))
    assert where.startswith("queue.yaml, entry 0, line 2")
    assert message.startswith("pack ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look anywhere")
def test_a_folder_one_may_not_look_into_is_a_problem_of_its_entry(prepared: Any, folder: Path) -> None:
    (folder / "packs").chmod(0)
    try:
        ((_, message, _),) = refused(prepared, queue())
    finally:
        (folder / "packs").chmod(stat.S_IRWXU)
    assert "Permission denied" in message


def test_what_a_harness_needs(prepared: Any) -> None:
    problems = refused(prepared, queue("", "  - { model: m }\n"))
    assert [(message, remedy) for _, message, remedy in problems] == [
        ("the harness 'touchstone' needs config", "add `config: …` to this entry"),
        ("the harness 'touchstone' needs pack", "add `pack: …` to this entry"),
    ]


def test_an_unknown_plugin_names_the_nearest(prepared: Any) -> None:
    ((where, message, remedy),) = refused(prepared, queue("  reset: olama\n"))
    assert (where, message) == ("queue.yaml, entry 0, line 2, column 10", "there is no reset plugin named 'olama'")
    assert remedy.startswith("did you mean 'ollama'? known are command, ") and ", lms, " in remedy


def test_an_unknown_option_has_its_own_line(prepared: Any) -> None:
    text = queue("  reset:\n    backend: ollama\n    hots: x\n")
    ((where, message, remedy),) = refused(prepared, text)
    assert where.startswith("queue.yaml, entry 0, line 4, ")
    assert "hots" in message and "host" in remedy


@pytest.mark.parametrize(
    "key", ["reset_before: [jugde]", "step_timeout_s: { jugde: 5 }", "stall_timeout_s: { jugde: 5 }"]
)
def test_an_unknown_step_is_refused(prepared: Any, key: str) -> None:
    ((where, message, remedy),) = refused(prepared, queue(f"  {key}\n"))
    assert "line 2" in where
    assert message.endswith("the harness 'touchstone' has no step 'jugde' here")
    assert remedy == "its steps are eval, judge"


def test_an_unset_variable_is_refused(prepared: Any) -> None:
    ((where, message, remedy),) = refused(prepared, queue("  env: { KEY: '${NOT_SET}' }\n"))
    assert "line 2" in where
    assert message == "env KEY uses ${NOT_SET}, which is not set"
    assert remedy.startswith("export NOT_SET")


@pytest.mark.parametrize("name", ["'A=B'", "''"])
def test_a_name_that_cannot_be_a_variable_is_refused(prepared: Any, name: str) -> None:
    ((_, message, _),) = refused(prepared, queue(f"  env: {{ {name}: x }}\n"))
    assert "cannot be a variable" in message


def test_all_problems_are_told_at_once_and_each_once(prepared: Any) -> None:
    entries = [ENTRY.replace(": m ", f": m{number} ") for number in range(3)]
    text = queue("  reset: olama\n", *entries, ENTRY.replace("config.yaml", "gone.yaml"))
    problems = refused(prepared, text)
    assert [(where, message) for where, message, _ in problems] == [
        ("queue.yaml, every entry, line 2, column 10", "there is no reset plugin named 'olama'"),
        ("queue.yaml, entry 3, line 7, column 15", "config 'gone.yaml' does not exist"),
    ]


def test_a_default_that_some_entries_overrule_names_the_others(prepared: Any) -> None:
    own = ENTRY.replace("model: m ", "model: own, reset: none ")
    text = queue("  reset: olama\n", ENTRY, own, ENTRY.replace(": m ", ": n "))
    ((where, _, _),) = refused(prepared, text)
    assert where == "queue.yaml, entries 0, 2, line 2, column 10"


# --- plugins that misbehave -------------------------------------------------------------------------------------


class Point:
    """An entry point that gives a class of this file."""

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls

    def load(self) -> type[Any]:
        return self.cls


def plugins(kind: str, cls: type[Any]) -> Plugins:
    mine = Offer(kind=kind, name="mine", distribution="d", version="1", target="t", point=Point(cls))  # type: ignore[arg-type]
    return Plugins(available=(*Plugins().available, mine))


def test_groups_are_those_the_tests_use() -> None:
    assert set(GROUPS) == {"reset", "probe", "harness"}


@attrs.frozen
class GoodHarness:
    """A harness."""

    names: tuple[str, ...] = ("eval",)

    def requires(self) -> Any:
        return ()

    def steps(self, entry: Any) -> Any:
        return [Step(name=name, artifacts=("a",)) for name in self.names]

    def targets(self, entry: Any) -> Any:
        return ()

    def argv(self, entry: Any, step: Any, bundle: Any) -> Any:
        return ["true"]

    def check(self, entry: Any, step: Any, bundle: Any) -> Any:
        return None


def raising(error: BaseException) -> Any:
    def method(*_: Any) -> Any:
        raise error

    return method


@pytest.mark.parametrize("method", ["requires", "steps", "targets", "__attrs_post_init__"])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ZeroDivisionError("boom"), "boom"),
        (PluginError("no key", remedy="set one"), "no key"),
    ],
)
def test_a_harness_that_raises_stops_the_queue_with_its_words(
    prepared: Any, method: str, error: Exception, words: str
) -> None:
    cls = attrs.frozen(type("Harness", (GoodHarness,), {method: raising(error), "__doc__": "One that raises."}))
    ((where, message, remedy),) = refused(prepared, queue("  harness: mine\n"), plugins=plugins("harness", cls))
    assert "entry 0" in where and words in message and remedy


@attrs.frozen
class GoodReset:
    """A reset backend."""

    can_verify: ClassVar[bool] = False

    def endpoint(self, env: Any) -> Any:
        return None

    def reset(self, context: Any) -> Any:
        return None

    def loaded(self, context: Any) -> Any:
        return None


def test_a_reset_backend_that_raises_stops_the_queue(prepared: Any) -> None:
    cls = attrs.frozen(type("Reset", (GoodReset,), {"endpoint": raising(KeyError("host")), "__doc__": "Raises."}))
    ((_, message, _),) = refused(prepared, queue("  reset: mine\n"), plugins=plugins("reset", cls))
    assert message == "reset 'mine' failed: KeyError: 'host'"


def test_a_property_that_raises_is_not_run_to_see_whether_it_is_there(prepared: Any) -> None:
    cls = attrs.frozen(type("Reset", (GoodReset,), {"can_verify": property(raising(OSError())), "__doc__": "Raises."}))
    assert prepared(queue("  reset: mine\n"), plugins=plugins("reset", cls)).entries


def test_a_plugin_that_lacks_a_method_says_which(prepared: Any) -> None:
    @attrs.frozen
    class Half:
        """Half a probe."""

        def read_mb(self) -> float:
            return 0.0

    ((_, message, remedy),) = refused(prepared, queue("  probes: [mine]\n"), plugins=plugins("probe", Half))
    assert message == "the probe plugin 'mine' lacks formula"
    assert "another version" in remedy

    @attrs.frozen
    class HalfReset:
        """Half a backend."""

        def endpoint(self, env: Any) -> None:
            return None

    ((_, message, _),) = refused(prepared, queue("  reset: mine\n"), plugins=plugins("reset", HalfReset))
    assert message == "the reset plugin 'mine' lacks can_verify, reset, loaded"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("[]", "it gives no steps"),
        ("[eval, eval]", "two steps are named 'eval'"),
        ("['../x']", "'../x' is not a step name"),
        ("[server]", "'server' is not a step name"),
    ],
)
def test_steps_without_usable_names_are_refused(prepared: Any, names: str, words: str) -> None:
    text = queue(f"  harness: {{ harness: mine, names: {names} }}\n")
    ((_, message, _),) = refused(prepared, text, plugins=plugins("harness", GoodHarness))
    assert message == f"harness 'mine': {words}"


def test_the_first_step_of_any_harness_is_reset(prepared: Any) -> None:
    text = queue("  harness: { harness: mine, names: [alpha, beta] }\n")
    (entry,) = prepared(text, plugins=plugins("harness", GoodHarness)).entries
    assert entry.reset_before == {"alpha"}
    assert entry.timeouts_s == {"alpha": 14400.0, "beta": 14400.0}
    assert entry.steps[0].name == "alpha"


# --- steps and the models they want -------------------------------------------------------------------------------

COMMAND = "  harness: { harness: command, steps: { answer: { argv: [x], artifacts: [a] } } }\n"


@pytest.mark.parametrize("key", ["step_timeout_s: { eval: 5, judge: 7 }", "reset_before: [judge]"])
def test_steps_of_another_harness_are_unknown(prepared: Any, key: str) -> None:
    problems = refused(prepared, queue(f"{COMMAND}  {key}\n", "  - { model: m }\n"))
    assert {message.partition("has no step")[2] for _, message, _ in problems} <= {" 'eval' here", " 'judge' here"}
    assert {remedy for _, _, remedy in problems} == {"its steps are answer"}


def test_an_empty_list_of_resets_is_refused(prepared: Any) -> None:
    ((where, _, _),) = refused(prepared, queue("  reset_before: []\n"))
    assert "line 2" in where


@pytest.mark.parametrize("settings", [{"p": Path("x")}, {"n": float("nan")}])
def test_settings_that_are_no_json_stop_the_queue(prepared: Any, settings: Any) -> None:
    def steps(self: Any, entry: Any) -> Any:
        return [Step(name="eval", artifacts=("a",), settings=settings)]

    cls = attrs.frozen(type("Harness", (GoodHarness,), {"steps": steps, "__doc__": "One that gives no JSON."}))
    ((where, message, _),) = refused(prepared, queue("  harness: mine\n"), plugins=plugins("harness", cls))
    assert "entry 0" in where and "JSON" in message


SERVED = """\
  reset: {{ backend: server, port: 8099, argv: [x] }}
  harness:
    harness: command
    endpoint: {endpoint}
    steps:
      eval: {{ argv: [x, "{{model}}"], artifacts: [a] }}
      judge: {{ argv: [x, "{{judge_model}}"], artifacts: [b] }}
"""


def test_a_judge_that_would_be_answered_by_the_evals_model_is_refused(prepared: Any) -> None:
    text = queue(SERVED.format(endpoint="http://localhost:8099/v1"), "  - { model: m, judge_model: j }\n")
    ((_, message, remedy),) = refused(prepared, text)
    assert message == "step 'judge' wants j, but the server would still run m"
    assert remedy == "add `reset_before: [eval, judge]`"


@pytest.mark.parametrize(
    ("endpoint", "entry"),
    [
        ("http://localhost:8099/v1", "{ model: m, judge_model: m }"),
        ("http://localhost:8099/v1", "{ model: m, judge_model: j, reset_before: [eval, judge] }"),
        ("http://box:8099/v1", "{ model: m, judge_model: j }"),
    ],
    ids=["the same model", "a reset between", "another machine"],
)
def test_a_judge_that_gets_its_model_is_not(prepared: Any, endpoint: str, entry: str) -> None:
    assert prepared(queue(SERVED.format(endpoint=endpoint), f"  - {entry}\n")).entries


def test_a_heartbeat_asks_the_endpoint_of_each_step(prepared: Any, folder: Path) -> None:
    (folder / "config.yaml").write_text("endpoint: { base_url: http://127.0.0.1:9/v1, api_key: sk-1 }\n")
    (folder / "judge.yaml").write_text("endpoint: { base_url: http://127.0.0.1:8/v1 }\nmodel: j\n")
    entry = "  - { config: config.yaml, pack: packs/office.yaml, judge_config: judge.yaml, model: m, heartbeat: {} }\n"
    (made,) = prepared(queue("", entry)).entries
    assert [(step, b.base_url, b.model.id, b.api_key) for step, b in made.beats.items()] == [
        ("eval", "http://127.0.0.1:9/v1", "m", "sk-1"),
        ("judge", "http://127.0.0.1:8/v1", "j", None),
    ]
    assert [(b.every_s, b.timeout_s, b.failures) for b in made.beats.values()] == [(60.0, 120.0, 3)] * 2
    elsewhere = entry.replace("heartbeat: {}", "heartbeat: { url: 'http://localhost:7/v1', model: tiny }")
    (made,) = prepared(queue("", elsewhere)).entries
    # Another server than the key is for does not get it.
    assert [(b.base_url, b.model.id, b.api_key) for b in made.beats.values()] == [
        ("http://localhost:7/v1", "tiny", None)
    ] * 2
    assert prepared(queue()).entries[0].beats == {}


NO_ENDPOINT = "  harness: { harness: command, steps: { work: { argv: ['true'], artifacts: [a] } } }\n"


@pytest.mark.parametrize(
    ("defaults", "where", "message", "remedy"),
    [
        (NO_ENDPOINT + "  heartbeat: {}\n", "line 3", "does not say which endpoint", "`url:"),
        ("  heartbeat: { url: localhost }\n", "line 2, column 21", "'localhost' is no URL", "http://"),
        ("  restart_command: x\n", "line 2, column 20", "whose heartbeat fails", "`heartbeat: {}`"),
        ('  heartbeat: {}\n  restart_command: "x \'y"\n', "line 3", "No closing quotation", "quotes"),
        ("  heartbeat: {}\n  restart_command: ' '\n", "line 3", "restart_command is empty", "write a command"),
        (
            "  heartbeat: {}\n  restart_command: x\n  reset: { backend: server, argv: [x], port: 9 }\n",
            "line 3",
            "runq itself restarts",
            "remove",
        ),
    ],
)
def test_what_watches_an_endpoint_must_be_able_to(
    prepared: Any, folder: Path, defaults: str, where: str, message: str, remedy: str
) -> None:
    (folder / "config.yaml").write_text("endpoint: { base_url: http://127.0.0.1:9/v1 }\n")
    ((place, said, advice),) = refused(prepared, queue(defaults))
    assert where in place and message in said and remedy in advice


def test_a_resets_endpoint_follows_the_entrys_environment(prepared: Any) -> None:
    text = queue("  reset: ollama\n  env: { OLLAMA_HOST: '127.0.0.1:11500' }\n")
    assert "http://127.0.0.1:11500" in prepared(text).entries[0].endpoints()
