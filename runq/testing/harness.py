"""The conformance suite of harnesses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest

from runq.plugin import Entry, Evidence, Harness, Step, Target
from runq.testing.checks import OptionsConformance, require, require_json
from runq.testing.stand_ins import make_entry


class HarnessConformance(OptionsConformance):
    """Subclass it and give `make`; `entry` too when your harness needs other files than the ones written here."""

    def make(self) -> Harness:
        """The harness under test."""
        raise NotImplementedError

    @pytest.fixture
    def entry(self, tmp_path: Path) -> Entry:
        """An entry with a config, a pack and a judge configuration that exist."""
        base = tmp_path / "queue"
        base.mkdir()
        for name in ("config.yaml", "pack.yaml", "judge.yaml"):
            (base / name).write_text(f"id: {name}\nendpoint:\n  base_url: http://127.0.0.1:9/v1\n")
        return make_entry(
            base,
            config=base / "config.yaml",
            pack=base / "pack.yaml",
            judge_config=base / "judge.yaml",
            judge_model="judge-model",
        )

    def test_it_has_every_member_of_the_interface(self) -> None:
        """`runq` refuses a harness that lacks one before the night begins."""
        require(isinstance(self.make(), Harness), "see runq.plugin.Harness for what is missing")

    def test_it_requires_only_keys_of_an_entry(self) -> None:
        """The three files an entry can name."""
        unknown = set(self.make().requires()) - {"config", "pack", "judge_config"}
        require(not unknown, f"requires() names {sorted(unknown)}; only config, pack and judge_config can be")

    def test_its_steps_are_well_formed(self, entry: Entry) -> None:
        """Unique slugs; artifacts inside the bundle; files to read absolute and there."""
        steps = self.make().steps(entry)
        require(len(steps) > 0, "steps() must give at least one step")
        names = [step.name for step in steps]
        require(len(set(names)) == len(names), f"step names must differ: {names}")
        for step in steps:
            require(isinstance(step, Step), f"{step!r} is not a runq.plugin.Step")
            require(re.fullmatch(r"[A-Za-z0-9_-]+", step.name), f"{step.name!r} is not a slug")
            require(step.name != "server", "`server` is the name of a reset backend's server")
            require(step.artifacts, f"{step.name}: without an artifact nothing proves the step")
            for name in step.artifacts:
                path = PurePosixPath(name)
                require(
                    not path.is_absolute() and ".." not in path.parts,
                    f"{step.name}: the artifact {name!r} must be relative to the bundle",
                )
            for file in step.reads:
                require(file.is_absolute() and file.exists(), f"{step.name}: {file} must be absolute and exist")

    def test_its_settings_are_data_without_places(self, entry: Entry) -> None:
        """A step's identity is made of content: a queue that moves to another folder keeps its results."""
        for step in self.make().steps(entry):
            text = require_json(dict(step.settings), f"{step.name}: settings")
            require(str(entry.base_dir) not in text, f"{step.name}: settings must not hold the queue's folder")

    def test_planning_twice_gives_the_same_and_writes_nothing(self, entry: Entry, tmp_path: Path) -> None:
        """`runq plan` calls everything up to argv: it must be repeatable and free of side effects."""
        bundle = tmp_path / "bundle"
        bundle.mkdir()
        before = _files(tmp_path)
        first, second = self._planned(entry, bundle), self._planned(entry, bundle)
        require(first == second, "steps() and argv() must give the same for the same entry")
        require(_files(tmp_path) == before, "steps(), targets() and argv() must not write files")

    def test_its_argv_is_words(self, entry: Entry, tmp_path: Path) -> None:
        """A program and its arguments: no shell runs them."""
        bundle = tmp_path / "bundle"
        bundle.mkdir()
        harness = self.make()
        for step in harness.steps(entry):
            argv = harness.argv(entry, step, bundle)
            require(type(argv) is not str, f"{step.name}: argv() must be a sequence of words, not one text")
            require(len(argv) > 0, f"{step.name}: argv() is empty")
            for word in argv:
                require(isinstance(word, str), f"{step.name}: {word!r} in argv() is not a text")

    def test_its_targets_are_endpoints_of_its_steps(self, entry: Entry) -> None:
        """For the locks and the check; none when it cannot tell. Configurations that cannot be read must not raise."""
        harness = self.make()
        names = [step.name for step in harness.steps(entry)]
        for target in harness.targets(entry):
            require(isinstance(target, Target), f"{target!r} is not a Target")
            require(bool(target.base_url), "a target's base_url must not be empty")
            require(target.step in names, f"a target names the step {target.step!r}, which is none of {names}")

    def test_checking_garbage_gives_evidence_and_no_exception(self, entry: Entry, tmp_path: Path) -> None:
        """Artifacts come from a program that may be broken: whatever they hold, `check` returns Evidence."""
        harness = self.make()
        for number, content in enumerate((b"", b"\x00\xff garbage\n", b"[]\n{}\n", b'{"half": ')):
            for step in harness.steps(entry):
                bundle = tmp_path / f"bundle-{number}-{step.name}"
                for name in step.artifacts:
                    (bundle / name).parent.mkdir(parents=True, exist_ok=True)
                    (bundle / name).write_bytes(content)
                evidence = harness.check(entry, step, bundle)
                require(isinstance(evidence, Evidence), f"check() must return Evidence, not {evidence!r}")
                require(evidence.ok or evidence.reason, "Evidence that is not ok needs a reason")
                require_json(dict(evidence.facts), "facts")

    def _planned(self, entry: Entry, bundle: Path) -> tuple[Sequence[Step], list[list[str]], list[Target]]:
        harness = self.make()
        steps = tuple(harness.steps(entry))
        return steps, [list(harness.argv(entry, step, bundle)) for step in steps], list(harness.targets(entry))


def _files(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_size) for path in folder.rglob("*"))
