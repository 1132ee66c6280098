"""Inspect (inspect-ai): an eval that leaves its answers unscored, and a judge that scores them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from runq.plugin import Entry, Evidence, Metric, Need, PluginError, Step, Target
from runq_plugins.harness.endpoint import judge_of, read_endpoint
from runq_plugins.harness.interpreter import find_python
from runq_plugins.harness.rows import scan
from runq_plugins.harness.server_endpoint import Place, ServerEndpoint, needed_place, place

DRIVERS = Path(__file__).parent / "drivers"
DRIVER, PACK_TASK = DRIVERS / "drive_inspect.py", DRIVERS / "inspect_pack.py"

EVAL_JSON, JUDGE_JSON = "inspect-eval.json", "inspect-judge.json"
RESPONSES, REPORTS, SCORES = "responses.jsonl", "reports.jsonl", "scores.csv"
SAMPLES = "sample-scores.jsonl"

REMEDY = "pip install inspect-ai openai for that interpreter, or name the one that has them as the harness's `python`"


@attrs.frozen(kw_only=True)
class InspectHarness:
    """`inspect eval --no-score`, then `inspect score`: for an Inspect task, or for a pack of touchstone's format.

    The entry's `pack` is a task file (`task.py`, `task.py@name`), a registered task's name (`inspect_evals/gsm8k`),
    or a pack (`.yaml`). A pack is judged where the entry has a `judge_model` or a `judge_config`: each answer from 1
    to 5 against its flags, each dimension over all answers, and the knock-out rule. A task is judged by its own scorer;
    one that asks a model asks the judge's, by the role `grader`. An eval that was cut off is gone on with by `inspect
    eval-retry`, and finished samples are not asked again.
    """

    endpoint: ServerEndpoint | None = attrs.field(
        default=None,
        metadata={"description": "The server that the model is on; by default the one of the entry's `config`."},
    )
    judge_endpoint: ServerEndpoint | None = attrs.field(
        default=None,
        metadata={
            "description": "The server that the judge is on; by default that of `judge_config`, else the model's own."
        },
    )
    python: str | None = attrs.field(
        default=None, metadata={"description": "Interpreter that has inspect-ai; by default the `python` on the PATH."}
    )
    task_args: Mapping[str, Any] = attrs.field(
        factory=dict, metadata={"description": "Arguments of the task, as `-T` gives them."}
    )
    args: tuple[str, ...] = attrs.field(
        default=(), metadata={"description": "Further words for `inspect eval`, such as `[--limit, '10']`."}
    )
    judge_args: tuple[str, ...] = attrs.field(
        default=(), metadata={"description": "Further words for `inspect score`, such as `[--scorer, my.py@mine]`."}
    )
    score: bool = attrs.field(
        default=True, metadata={"description": "Whether a task of Inspect's gets a judge step at all."}
    )

    def needs(self, base_dir: Path) -> Sequence[Need]:
        """The interpreter, with Inspect and the client of its OpenAI-compatible provider in it."""
        python = find_python(self.python, base_dir)
        return tuple(Need(program=python, module=module, remedy=REMEDY) for module in ("inspect_ai", "openai"))

    def requires(self) -> Sequence[str]:
        """`pack`."""
        return ("pack",)

    def pack_file(self, pack: str) -> str | None:
        """The file that a written `pack` names; none for a registered task."""
        file = pack.partition("@")[0]
        return file if file.endswith((".py", ".yaml", ".yml")) or file.startswith((".", "/", "~")) else None

    def step_names(self) -> Sequence[str]:
        """``eval`` and ``judge``."""
        return ("eval", "judge")

    def steps(self, entry: Entry) -> Sequence[Step]:
        """The eval, and the judge where there is something to judge with.

        Raises:
            PluginError: the entry has no pack, or nobody says where its server is.
        """
        needed_place(self.endpoint, entry.config, entry)
        packed = _is_pack(entry)
        file = self.pack_file(_written(entry))
        reads = () if file is None else (entry.base_dir / Path(file).expanduser(),)
        settings = {
            "task": "pack" if packed else _written(entry),
            "task_args": dict(self.task_args),
            "args": list(self.args),
        }
        artifacts = ("answers.eval", EVAL_JSON, *((RESPONSES,) if packed else ()))
        steps = [Step(name="eval", artifacts=artifacts, reads=reads, settings=settings, model=entry.model)]
        judge = judge_of(entry)
        if judge is not None or (self.score and not packed):
            steps.append(
                Step(
                    name="judge",
                    artifacts=("scored.eval", JUDGE_JSON, SAMPLES, *((REPORTS, SCORES) if packed else ())),
                    reads=() if entry.judge_config is None else (entry.judge_config,),
                    settings={"judge_model": None if judge is None else judge.id, "args": list(self.judge_args)},
                    model=judge,
                )
            )
        return steps

    def targets(self, entry: Entry) -> Sequence[Target]:
        """The entry's model and the judge's."""
        found: list[Target] = []
        where, judge = place(self.endpoint, entry.config, entry), judge_of(entry)
        if where is not None:
            found.append(Target(step="eval", base_url=where.base_url, model=entry.model, api_key=where.api_key))
        seat = self._judge_place(entry)
        if seat is not None and judge is not None:
            found.append(Target(step="judge", base_url=seat.base_url, model=judge, api_key=seat.api_key))
        return found

    def argv(self, entry: Entry, step: Step, bundle: Path) -> Sequence[str]:
        """The driver's command line; keys are not in it."""
        start = [find_python(self.python, entry.base_dir), str(DRIVER), step.name, "--bundle", str(bundle)]
        pack = ["--pack", str(entry.pack)] if _is_pack(entry) else []
        if step.name == "judge":
            seat = self._judge_place(entry) if step.model is not None else None
            words = [] if seat is None else ["--base-url", seat.base_url, "--key", seat.key]
            model = [] if step.model is None else ["--model", step.model.id]
            return [*start, *pack, *words, *model, "--", *self.judge_args]
        where = needed_place(self.endpoint, entry.config, entry)
        settings = {"model": entry.model.as_written(), **step.settings}
        return [
            *start,
            *pack,
            "--task",
            f"{PACK_TASK}@pack" if pack else _task(entry),
            "--task-args",
            json.dumps(self._task_args(entry)),
            "--settings",
            json.dumps(settings, sort_keys=True),
            "--model",
            entry.model.id,
            "--base-url",
            where.base_url,
            "--key",
            where.key,
            "--",
            *self._limits(entry),
            *self.args,
        ]

    def check(self, entry: Entry, step: Step, bundle: Path) -> Evidence:
        """What the driver wrote down of the log."""
        name = JUDGE_JSON if step.name == "judge" else EVAL_JSON
        try:
            data = json.loads((bundle / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            return Evidence(ok=False, reason=f"{name} cannot be read: {error}")
        if step.name == "eval":
            return _check_eval(data)
        reports = scan(bundle / REPORTS) if _is_pack(entry) else None
        return _check_judge(data, reports.problem(REPORTS) if reports else "")

    @classmethod
    def answers(cls, bundle: Path) -> Mapping[str, Mapping[str, float]]:
        """Each question's own score, as the driver wrote it down."""
        from runq_plugins.harness.answer_scores import AnswerScores, json_rows

        found = AnswerScores()
        if (bundle / SAMPLES).is_file():
            for row in json_rows(bundle / SAMPLES):
                found.add(row["score"], row["question"], float(row["value"]), answer=row["answer"])
        return found.by_question()

    def _task_args(self, entry: Entry) -> dict[str, Any]:
        if not _is_pack(entry):
            return dict(self.task_args)
        model = entry.model
        return {
            "path": str(entry.pack),
            "max_tokens_default": model.max_tokens_default,
            "reasoning_headroom_tokens": model.reasoning_headroom_tokens,
        }

    def _limits(self, entry: Entry) -> list[str]:
        """What the entry says of its model beside its name, for a task that does not say it itself."""
        words: list[str] = []
        if "max_tokens_default" in entry.model.as_written() and not _is_pack(entry):
            words += ["--max-tokens", str(entry.model.max_tokens_default + entry.model.reasoning_headroom_tokens)]
        if entry.model.extra_body:
            words += ["--extra-body", json.dumps(entry.model.extra_body)]
        return words

    def _judge_place(self, entry: Entry) -> Place | None:
        if self.judge_endpoint is not None:
            return place(self.judge_endpoint, None, entry)
        if read_endpoint(entry.judge_config) is not None:
            return place(None, entry.judge_config, entry)
        return place(self.endpoint, entry.config, entry)


def _check_eval(data: Mapping[str, Any]) -> Evidence:
    samples, failed, expected = int(data["samples"]), int(data["failed"]), int(data["expected"])
    facts: dict[str, Any] = {"answers": samples, "answers_failed": failed}
    if data["empty"]:
        facts["answers_empty"] = data["empty"]
    if data["first_error"]:
        facts["first_error"] = data["first_error"]
    reason = ""
    if data["status"] != "success":
        reason = f"Inspect's log says {data['status']}: {data['error']}"
    elif samples == 0:
        reason = "the log holds no sample"
    elif data["limit"] is None and samples != expected:
        reason = f"the log holds {samples} of {expected} samples"
    elif failed == samples:
        reason = f"{failed} of {samples} answers failed, none is ok; the first error: {data['first_error']}"
    return Evidence(ok=not reason, reason=reason, facts=facts)


def _check_judge(data: Mapping[str, Any], problem: str) -> Evidence:
    metrics = tuple(
        Metric(name=one["name"], value=float(one["value"]), stderr=one["stderr"], n=one["n"])
        for one in {one["name"]: one for one in data["metrics"]}.values()
    )
    reason = problem
    if not reason and data["status"] != "success":
        reason = f"Inspect's log says {data['status']}: {data['error']}"
    if not reason and not metrics:
        reason = "no answer got a score"
    return Evidence(ok=not reason, reason=reason, facts={"scored": data["samples"]}, metrics=metrics)


def _written(entry: Entry) -> str:
    """The entry's `pack` as the queue file has it."""
    if entry.pack is None:
        raise PluginError(
            "inspect needs a pack", remedy="add `pack: task.py`, or a registered task's name, to the entry"
        )
    inside = entry.pack.is_relative_to(entry.base_dir)
    return entry.pack.relative_to(entry.base_dir).as_posix() if inside else str(entry.pack)


def _is_pack(entry: Entry) -> bool:
    return entry.pack is not None and entry.pack.suffix in (".yaml", ".yml")


def _task(entry: Entry) -> str:
    """The task as Inspect is told of it: a file by its whole path, a registered one by its name."""
    written = _written(entry)
    file, at, name = written.partition("@")
    return f"{entry.base_dir / file}{at}{name}" if file.endswith(".py") else written
