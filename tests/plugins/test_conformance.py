"""The built-in plugins run the suites that anyone's must pass."""

from __future__ import annotations

import socket
import sys

import pytest

from runq.testing import HarnessConformance, ProbeConformance, ResetConformance, make_context
from runq_plugins.harness.command import CommandHarness, CommandStep
from runq_plugins.harness.inspect_harness import InspectHarness
from runq_plugins.harness.lm_eval_harness import LmEvalHarness
from runq_plugins.harness.touchstone import TouchstoneHarness
from runq_plugins.probe.amd import AmdProbe
from runq_plugins.probe.cgroup import CgroupProbe
from runq_plugins.probe.macos import MacosProbe
from runq_plugins.probe.nvidia import NvidiaProbe
from runq_plugins.probe.process import ProcessProbe
from runq_plugins.probe.psutil_used import PsutilUsedProbe
from runq_plugins.probe.system import SystemProbe
from runq_plugins.reset.command import CommandReset
from runq_plugins.reset.koboldcpp import KoboldCppReset
from runq_plugins.reset.llama_swap import LlamaSwapReset
from runq_plugins.reset.llamacpp import LlamaCppReset
from runq_plugins.reset.lms import LmsReset
from runq_plugins.reset.mlx import MlxReset
from runq_plugins.reset.none import NoReset
from runq_plugins.reset.ollama import OllamaReset
from runq_plugins.reset.server import ServerReset
from runq_plugins.reset.tabby import TabbyReset
from runq_plugins.reset.vllm import VllmReset


class Nobody:
    """Nothing listens on this port: it is bound, but does not listen."""

    def __init__(self) -> None:
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]


NOBODY = Nobody()


class TestNone(ResetConformance):
    def make(self):
        return NoReset()


class TestCommand(ResetConformance):
    def make(self):
        return CommandReset(command="true")

    def make_absent(self):
        return CommandReset(command="/nowhere/reset", verify="true")


class TestVerifiedCommand(ResetConformance):
    def make(self):
        return CommandReset(command=(sys.executable, "-c", ""), verify="true")

    def make_absent(self):
        return CommandReset(command="true", verify="/nowhere/verify")


class TestServer(ResetConformance):
    def make(self):
        return ServerReset(argv=("llama-server", "-m", "{model}", "--port", "{port}"), port=NOBODY.port)


class TestLms(ResetConformance):
    def make(self):
        return LmsReset(base_url=f"http://127.0.0.1:{NOBODY.port}", timeout_s=5)

    make_absent = make

    @pytest.fixture
    def context(self, tmp_path):
        return make_context(tmp_path, env={"PATH": "", "HOME": str(tmp_path)})


class TestOllama(ResetConformance):
    def make(self):
        return OllamaReset(host=f"127.0.0.1:{NOBODY.port}", timeout_s=5)

    make_absent = make


class TestLlamaCpp(ResetConformance):
    def make(self):
        return LlamaCppReset(base_url=f"http://127.0.0.1:{NOBODY.port}/v1", timeout_s=5)

    make_absent = make


class TestLlamaSwap(ResetConformance):
    def make(self):
        return LlamaSwapReset(base_url=f"http://127.0.0.1:{NOBODY.port}", timeout_s=5)

    make_absent = make


class TestVllm(ResetConformance):
    def make(self):
        return VllmReset(base_urls=(f"http://127.0.0.1:{NOBODY.port}",), timeout_s=5)

    make_absent = make


class TestKoboldCpp(ResetConformance):
    def make(self):
        return KoboldCppReset(base_url=f"http://127.0.0.1:{NOBODY.port}", timeout_s=5)

    make_absent = make


class TestTabby(ResetConformance):
    def make(self):
        return TabbyReset(base_url=f"http://127.0.0.1:{NOBODY.port}", timeout_s=5)

    make_absent = make


class TestMlx(ResetConformance):
    def make(self):
        return MlxReset(port=NOBODY.port)


class TestSystem(ProbeConformance):
    def make(self):
        return SystemProbe()


class TestProcess(ProbeConformance):
    def make(self) -> ProcessProbe:
        return ProcessProbe(name="python")


class TestNvidia(ProbeConformance):
    def make(self) -> NvidiaProbe:
        return NvidiaProbe()


class TestAmd(ProbeConformance):
    def make(self) -> AmdProbe:
        return AmdProbe()


class TestMacos(ProbeConformance):
    def make(self) -> MacosProbe:
        return MacosProbe()


class TestCgroup(ProbeConformance):
    def make(self) -> CgroupProbe:
        return CgroupProbe()


class TestPsutilUsed(ProbeConformance):
    def make(self):
        return PsutilUsedProbe()


class TestTouchstone(HarnessConformance):
    def make(self):
        return TouchstoneHarness()


class TestInspect(HarnessConformance):
    def make(self) -> InspectHarness:
        return InspectHarness()


class TestLmEval(HarnessConformance):
    def make(self) -> LmEvalHarness:
        return LmEvalHarness()


class TestCommandHarness(HarnessConformance):
    def make(self):
        return CommandHarness(
            steps={
                "eval": CommandStep(
                    argv=("{python}", "eval.py", "{config}", "{pack}", "{model_json}", "{bundle}"),
                    artifacts=("out.jsonl",),
                ),
                "judge": CommandStep(
                    argv=("{python}", "judge.py", "{judge_config}", "{judge_model}", "{bundle}"),
                    artifacts=("scores.csv", "sub/notes.jsonl"),
                    reads=("{base_dir}/pack.yaml",),
                ),
            }
        )


class TestTheSuitesFindFaults:
    """A suite that finds nothing proves nothing: each of these plugins breaks one rule."""

    def test_reset(self, tmp_path):
        import attrs

        from runq.plugin import ResetOutcome

        @attrs.define
        class Bad:
            undescribed: int = 0
            can_verify: bool = False
            endpoint_: str = "nonsense"

            def endpoint(self, env):
                return self.endpoint_

            def reset(self, context):
                return ResetOutcome(verdict="verified")

            def loaded(self, context):
                context.supervisor.start(["x"], model="m")
                return "model"

        class Suite(ResetConformance):
            def make(self):
                return Bad()

        suite, context = Suite(), make_context(tmp_path)
        for fault in (
            suite.test_its_options_are_described_attrs_fields,
            suite.test_its_endpoint_is_a_url_or_none,
            lambda: suite.test_reset_returns_a_well_formed_outcome(context),
            lambda: suite.test_a_second_reset_right_after_works_as_well(context),
            lambda: suite.test_loaded_tells_ids_or_none_and_starts_nothing(tmp_path),
        ):
            with pytest.raises(pytest.fail.Exception):
                fault()
        with pytest.raises(pytest.skip.Exception):
            suite.test_something_absent_is_an_outcome_and_no_exception(context)

    @pytest.mark.parametrize("figure", [float("nan"), -1.0, 5, None])
    def test_probe(self, figure):
        import attrs

        @attrs.frozen
        class Bad:
            def read_mb(self):
                return figure

        class Suite(ProbeConformance):
            def make(self):
                return Bad()

        with pytest.raises(pytest.fail.Exception):
            Suite().test_it_has_every_member_of_the_interface()
        with pytest.raises(pytest.fail.Exception):
            Suite().test_it_reads_a_plain_number_or_says_why_not()

    def test_a_probe_that_says_why_not_is_fine(self):
        import attrs

        from runq.plugin import PluginError

        @attrs.frozen
        class Unavailable:
            formula = "none"

            def read_mb(self):
                raise PluginError("no card here")

        class Suite(ProbeConformance):
            def make(self):
                return Unavailable()

        Suite().test_it_reads_a_plain_number_or_says_why_not()
        Suite().test_a_reading_is_quick()

    def test_harness(self, tmp_path):
        import attrs

        from runq.plugin import Evidence, Step, Target
        from runq.testing import make_entry

        @attrs.frozen
        class Bad:
            def requires(self):
                return ("queue",)

            def steps(self, entry):
                (entry.base_dir / "side-effect").write_text("x")
                return [Step(name="a b", artifacts=("/abs",), settings={"where": str(entry.base_dir)})]

            def targets(self, entry):
                return [Target(step="a b", base_url="")]

            def argv(self, entry, step, bundle):
                return "one text"

            def check(self, entry, step, bundle):
                return Evidence(ok=False, facts={"x": object()})

        class Suite(HarnessConformance):
            def make(self):
                return Bad()

        (tmp_path / "queue").mkdir()
        suite, entry = Suite(), make_entry(tmp_path / "queue")
        with pytest.raises(pytest.fail.Exception, match="must not write files"):
            suite.test_planning_twice_gives_the_same_and_writes_nothing(entry, tmp_path)
        for fault in (
            suite.test_it_requires_only_keys_of_an_entry,
            lambda: suite.test_its_steps_are_well_formed(entry),
            lambda: suite.test_its_settings_are_data_without_places(entry),
            lambda: suite.test_its_argv_is_words(entry, tmp_path / "queue"),
            lambda: suite.test_checking_garbage_gives_evidence_and_no_exception(entry, tmp_path / "queue"),
            lambda: suite.test_its_targets_are_endpoints_of_its_steps(entry),
        ):
            with pytest.raises(pytest.fail.Exception):
                fault()


@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        ("reset", "none", {}),
        ("reset", "command", {"command": "x", "verify": ["a", "b"], "timeout_s": 5}),
        ("reset", "server", {"argv": ["x", "{model}"], "port": 8080, "env": {"A": "b"}}),
        ("reset", "lms", {"base_url": "http://h:1", "timeout_s": 1.5}),
        ("reset", "ollama", {"host": "h"}),
        ("probe", "system", {}),
        ("probe", "psutil_used", {}),
        ("harness", "touchstone", {"python": "p"}),
        ("harness", "command", {"steps": {"eval": {"argv": ["x"], "artifacts": ["a"]}}}),
    ],
)
def test_each_is_found_by_its_entry_point_and_takes_the_queue_files_options(kind, name, options):
    from runq.discovery import Plugins

    made = Plugins().make(kind, name, options)
    for key, value in options.items():
        if kind != "harness" or name != "command":
            got = getattr(made, key)
            assert (list(got) if isinstance(got, tuple) else got) == value
    if (kind, name) == ("harness", "command"):
        assert made == CommandHarness(steps={"eval": CommandStep(argv=("x",), artifacts=("a",))})
