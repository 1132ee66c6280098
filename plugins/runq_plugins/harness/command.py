"""Any programs as steps: their command lines, and the files that prove each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import attrs

from runq.plugin import Entry, Evidence, ModelSpec, PluginError, Step, Target
from runq_plugins.harness.endpoint import Endpoint, read_endpoint
from runq_plugins.harness.rows import Rows, scan
from runq_plugins.harness.words import Filler, identity_words, script_files
from runq_plugins.options import not_empty, url_problem
from runq_plugins.templates import names_in

if TYPE_CHECKING:
    from runq_plugins.harness.answer_scores import AnswerScores

SCORES = "scores.csv"
"""The artifact whose rows are answers with their scores."""

_STEP_NAME = re.compile(r"[A-Za-z0-9_-]+")


def _templates(_: Any, attribute: attrs.Attribute[Any], value: Sequence[str] | str | None) -> None:
    for template in (value,) if isinstance(value, str) else value or ():
        names_in(template)


def _argv(_: Any, attribute: attrs.Attribute[Any], value: Sequence[str]) -> None:
    not_empty(_, attribute, value)
    _templates(_, attribute, value)


def _artifacts(_: Any, attribute: attrs.Attribute[Any], value: Sequence[str]) -> None:
    if len(value) == 0:
        raise ValueError("artifacts must name at least one file: exit 0 alone does not prove a step")
    for name in value:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or path.name == "" or "\0" in name:
            raise ValueError(f"artifacts: {name!r} must be a file inside the bundle, relative and without `..`")


@attrs.frozen(kw_only=True)
class CommandStep:
    """One step of the `command` harness."""

    argv: tuple[str, ...] = attrs.field(
        validator=_argv,
        metadata={"description": "Program and arguments, with placeholders; no shell runs it."},
    )
    artifacts: tuple[str, ...] = attrs.field(
        validator=_artifacts,
        metadata={"description": "Files in the bundle that the step must write; at least one."},
    )
    reads: tuple[str, ...] = attrs.field(
        default=(),
        validator=_templates,
        metadata={
            "description": "Further files or folders whose content decides the result, relative to the queue's folder."
        },
    )
    model: str | None = attrs.field(
        default=None,
        validator=_templates,
        metadata={"description": "Id of the model served during the step; by default the one its `argv` names."},
    )


def _steps(_: Any, attribute: attrs.Attribute[Any], value: Mapping[str, CommandStep]) -> None:
    if not value:
        raise ValueError("steps must hold at least one step")
    for name in value:
        if not _STEP_NAME.fullmatch(name) or name == "server":
            raise ValueError(f"{name!r} is not a step name: use letters, digits, _ and -, and not `server`")


def _url(_: Any, attribute: attrs.Attribute[Any], value: str | None) -> None:
    if value is not None and (problem := url_problem(value)):
        raise ValueError(f"{attribute.name}: {problem}")


@attrs.frozen(kw_only=True)
class CommandHarness:
    """Runs the programs that its option `steps` names, in that order.

    Placeholders in `argv`: ``{model}`` (id), ``{model_json}``, ``{config}``, ``{pack}``, ``{judge_config}``,
    ``{judge_model}``, ``{bundle}``, ``{base_dir}``, ``{entry}`` (number), ``{endpoint}``, ``{python}``;
    ``{{`` and ``}}`` are braces.

    An artifact `scores.csv` brings scores: a row per answer, with the question in a column ``prompt_id``,
    ``question_id``, ``sample_id`` or ``id``. Every column of numbers, or of ``true`` and ``false``, is a score.
    """

    _steps: Mapping[str, CommandStep] = attrs.field(
        validator=_steps,
        metadata={"description": "The steps in order: a name each, with `argv` and `artifacts`."},
    )
    endpoint: str | None = attrs.field(
        default=None,
        validator=_url,
        metadata={"description": "Base URL the steps talk to, such as http://127.0.0.1:8080/v1; `{endpoint}` in argv."},
    )

    def requires(self) -> Sequence[str]:
        """What the placeholders of all steps need of `config`, `pack` and `judge_config`."""
        used = {name for step in self._steps.values() for name in _names(step)}
        return tuple(key for key in ("config", "pack", "judge_config") if key in used)

    def steps(self, entry: Entry) -> Sequence[Step]:
        """The steps, every placeholder checked.

        Raises:
            PluginError: a placeholder is unknown or the entry has no value for it, or a file to read is missing.
        """
        return [self._step(entry, name, step) for name, step in self._steps.items()]

    def targets(self, entry: Entry) -> Sequence[Target]:
        """Each step's model on `endpoint`; without it on ``endpoint.base_url`` of each configuration its words name."""
        return tuple(
            Target(step=step.name, base_url=endpoint.base_url, model=step.model, api_key=endpoint.api_key)
            for step in self.steps(entry)
            for endpoint in self._endpoints(entry, self._steps[step.name])
        )

    def _endpoints(self, entry: Entry, step: CommandStep) -> Sequence[Endpoint]:
        if self.endpoint is not None:
            return (Endpoint(base_url=self.endpoint),)
        used = _names(step)
        named = [getattr(entry, key) for key in ("config", "judge_config") if key in used]
        return [found for path in named if (found := read_endpoint(path)) is not None]

    def argv(self, entry: Entry, step: Step, bundle: Path) -> Sequence[str]:
        """The step's command line with its placeholders filled."""
        fill = Filler(entry, step.name, bundle, self.endpoint)
        return [fill(word) for word in self._steps[step.name].argv]

    def check(self, entry: Entry, step: Step, bundle: Path) -> Evidence:
        """Read the artifacts that are JSON lines: rows must be there, none an error, not every ``ok`` false."""
        counted: dict[str, Rows] = {}
        for name in step.artifacts:
            if not name.endswith(".jsonl"):
                continue
            try:
                counted[name] = scan(bundle / name)
            except OSError as error:
                return Evidence(ok=False, reason=f"{name} cannot be read: {error.strerror}")
        reasons: list[str] = []
        facts: dict[str, Any] = {"rows": {name: rows.rows for name, rows in counted.items()}} if counted else {}
        for name, rows in counted.items():
            reason = rows.problem(name)
            if rows.judged:
                reason = reason or ("" if rows.passed else rows.no_answer())
                _add(facts, rows.answer_facts())
            elif rows.torn:
                _add(facts, {"torn_rows": rows.torn})
            if reason:
                reasons.append(reason)
        metrics = () if reasons or SCORES not in step.artifacts else _table(bundle).metrics()
        return Evidence(ok=not reasons, reason=reasons[0] if reasons else "", facts=facts, metrics=metrics)

    @classmethod
    def answers(cls, bundle: Path) -> Mapping[str, Mapping[str, float]]:
        """Each question's own figures, of a `scores.csv`."""
        return _table(bundle).by_question() if (bundle / SCORES).is_file() else {}

    def _step(self, entry: Entry, name: str, step: CommandStep) -> Step:
        fill = Filler(entry, name, bundle=None, endpoint=self.endpoint)
        for word in step.argv:
            fill(word)
        used = _names(step)
        named = [getattr(entry, key) for key in ("config", "pack", "judge_config") if key in used]
        declared = [entry.base_dir / fill(word) for word in step.reads]
        for path in declared:
            if not path.exists():
                raise PluginError(f"step {name!r} reads {path}, which does not exist", remedy="correct its `reads`")
        scripts = script_files(step.argv, fill, entry.base_dir)
        settings: dict[str, Any] = {"argv": identity_words(step.argv, scripts, entry.base_dir)}
        if "judge_model" in used:
            settings["judge_model"] = entry.judge_model
        reads = tuple(dict.fromkeys([*named, *scripts.values(), *declared]))
        return Step(
            name=name,
            artifacts=step.artifacts,
            reads=reads,
            settings=settings,
            model=self._model(entry, step, fill),
        )

    def _model(self, entry: Entry, step: CommandStep, fill: Filler) -> ModelSpec:
        """The model named by the step, else the judge's where only that one stands in `argv`, else the entry's."""
        used = _names(step)
        only_judge = "judge_model" in used and not {"model", "model_json"} & used
        template = step.model if step.model is not None else "{judge_model}" if only_judge else "{model}"
        name = fill(template)
        return entry.model if name == entry.model.id else ModelSpec(id=name)


def _table(bundle: Path) -> AnswerScores:
    """The scores of `scores.csv`; none where it is another kind of file: what it holds is the user's affair."""
    from runq_plugins.harness.answer_scores import AnswerScores, read_table

    try:
        return read_table(bundle / SCORES)
    except (OSError, ValueError):
        return AnswerScores()


def _names(step: CommandStep) -> set[str]:
    templates = [*step.argv, *step.reads, *([] if step.model is None else [step.model])]
    return {name for template in templates for name in names_in(template)}


def _add(facts: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Sum figures over several files; the first text stays."""
    for key, value in more.items():
        if isinstance(value, int) and isinstance(facts.get(key), int):
            facts[key] += value
        else:
            facts.setdefault(key, value)
