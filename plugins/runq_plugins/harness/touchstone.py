"""touchstone: an eval that answers a pack, and a judge that scores the answers."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runq.plugin import Entry, Evidence, PluginError, Step, Target
from runq_plugins.harness.endpoint import judge_of, read_endpoint
from runq_plugins.harness.interpreter import find_python
from runq_plugins.harness.rows import Rows, scan
from runq_plugins.options import not_empty

if TYPE_CHECKING:
    from runq.plugin import Metric, Need
    from runq_plugins.harness.answer_scores import AnswerScores

RESPONSES = "responses.jsonl"
REPORTS = "reports.jsonl"
SCORES = "scores.csv"
JUDGEMENTS = "judgements.jsonl"


def _given(_: Any, attribute: attrs.Attribute[Any], value: str | None) -> None:
    if value is not None:
        not_empty(_, attribute, value.strip())


@attrs.frozen(kw_only=True)
class TouchstoneHarness:
    """`python -m touchstone eval`, then `judge` where the entry has a `judge_config`.

    Never with `--resume`: touchstone's own resume drops the model override.
    """

    python: str | None = attrs.field(
        default=None,
        validator=_given,
        metadata={"description": "Interpreter that has touchstone; by default the `python` on the PATH."},
    )

    def needs(self, base_dir: Path) -> Sequence[Need]:
        """The interpreter, with touchstone in it."""
        from runq.plugin import Need

        remedy = "install touchstone for that interpreter, or name the one that has it as the harness's `python`"
        return (Need(program=find_python(self.python, base_dir), module="touchstone", remedy=remedy),)

    def requires(self) -> Sequence[str]:
        """`config` and `pack`."""
        return ("config", "pack")

    def steps(self, entry: Entry) -> Sequence[Step]:
        """The eval, and the judge if the entry has a judge configuration.

        Raises:
            PluginError: the entry has no config or no pack.
        """
        config, pack = _needed(entry.config, "config"), _needed(entry.pack, "pack")
        steps = [Step(name="eval", artifacts=(RESPONSES,), reads=(config, pack), model=entry.model)]
        if entry.judge_config is not None:
            steps.append(
                Step(
                    name="judge",
                    artifacts=(REPORTS, SCORES),
                    reads=(entry.judge_config,),
                    settings={"judge_model": entry.judge_model},
                    model=judge_of(entry),
                )
            )
        return steps

    def step_names(self) -> Sequence[str]:
        """``eval`` and ``judge``: touchstone's own files time a judge also where no entry has one."""
        return ("eval", "judge")

    def targets(self, entry: Entry) -> Sequence[Target]:
        """The entry's model and the judge's, each on the endpoint of its configuration."""
        return tuple(
            Target(step=step, base_url=endpoint.base_url, model=model, api_key=endpoint.api_key)
            for step, path, model in (
                ("eval", entry.config, entry.model),
                ("judge", entry.judge_config, judge_of(entry)),
            )
            if (endpoint := read_endpoint(path)) is not None
        )

    def argv(self, entry: Entry, step: Step, bundle: Path) -> Sequence[str]:
        """touchstone's command line, as its own queue gives it."""
        start = [find_python(self.python, entry.base_dir), "-m", "touchstone", step.name]
        if step.name == "judge":
            model = [] if entry.judge_model is None else ["--judge-model", entry.judge_model]
            config = _needed(entry.judge_config, "judge_config")
            return [*start, "--bundle", str(bundle), "--judge-config", str(config), *model, "--emit-events"]
        return [
            *start,
            "--config",
            str(_needed(entry.config, "config")),
            "--pack",
            str(_needed(entry.pack, "pack")),
            "--models-json",
            json.dumps([entry.model.as_written()]),
            "--run-dir",
            str(bundle),
            "--emit-events",
        ]

    @classmethod
    def answers(cls, bundle: Path) -> Mapping[str, Mapping[str, float]]:
        """Each question's score by the judge, a question being a prompt with a variant."""
        return _answers(bundle).by_question()

    def check(self, entry: Entry, step: Step, bundle: Path) -> Evidence:
        """Read the answers of an eval, the reports and scores of a judge."""
        try:
            return _check_judge(bundle) if step.name == "judge" else _check_eval(scan(bundle / RESPONSES))
        except OSError as error:
            return Evidence(ok=False, reason=f"{Path(error.filename or bundle).name} cannot be read: {error.strerror}")


def _check_eval(rows: Rows) -> Evidence:
    reason = rows.problem(RESPONSES)
    if not reason and rows.passed == 0:
        reason = rows.no_answer()
    return Evidence(ok=not reason, reason=reason, facts=rows.answer_facts())


def _check_judge(bundle: Path) -> Evidence:
    reports = scan(bundle / REPORTS)
    reason = reports.problem(REPORTS)
    scores = 0
    try:
        with (bundle / SCORES).open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            lines = sum(1 for row in csv.reader(stream) if any(cell.strip() for cell in row))
        scores = max(0, lines - 1)
    except csv.Error as error:
        reason = reason or f"{SCORES} cannot be read: {error}"
    if not reason and scores == 0:
        reason = f"{SCORES} holds no score"
    facts: dict[str, Any] = {"reports": reports.rows, "scores": scores}
    if reports.torn:
        facts["torn_rows"] = reports.torn
    return Evidence(ok=not reason, reason=reason, facts=facts, metrics=() if reason else _metrics(bundle))


def _metrics(bundle: Path) -> tuple[Metric, ...]:
    """The answers' mean score, then each dimension's over all answers of a variant."""
    from runq.plugin import Metric
    from runq_plugins.harness.answer_scores import number, table_rows

    found = {metric.name: metric for metric in _answers(bundle).metrics()}
    for row in table_rows(bundle / SCORES):
        value = number(row.get("score", ""))
        if row.get("metric_type") == "dimension" and row.get("metric") and value is not None:
            name = "/".join(part for part in (row.get("variant"), row["metric"]) if part)
            found.setdefault(name, Metric(name=name, value=value))
    return tuple(found.values())


def _answers(bundle: Path) -> AnswerScores:
    """The judge's score of each answer: of `judgements.jsonl`, else of a table with a row per answer."""
    from runq_plugins.harness.answer_scores import AnswerScores, json_rows, number, read_table

    found = AnswerScores()
    if (bundle / JUDGEMENTS).is_file():
        for row in json_rows(bundle / JUDGEMENTS):
            figure = None if row.get("unscored") is True else number(row.get("score"))
            if figure is not None and not isinstance(row["score"], str) and row.get("prompt_id"):
                question = "/".join(str(row[name]) for name in ("prompt_id", "variant") if row.get(name))
                found.add("score", question, figure, answer=str(row.get("repeat", "")))
    if not found.by_question() and (bundle / SCORES).is_file():
        return read_table(bundle / SCORES).only("score")
    return found


def _needed(path: Path | None, key: str) -> Path:
    if path is None:
        raise PluginError(f"touchstone needs a {key}", remedy=f"add `{key}: ...` to the entry")
    return path
