"""The plan as data and as text: what would run and why, every setting resolved, how long it took before."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from runq import paths, planning
from runq.deadline import History, TimeWindow, Usual, forecast, in_words
from runq.liveness import runner_of
from runq.logs import one_line
from runq.pace import history_of
from runq.phases import turns
from runq.prepared import PreparedQueue
from runq.scores import metric_text
from runq.text import clean_lines, duration, left_text
from runq_schemas.errors import UsageError
from runq_schemas.queue import Order


def plan_data(
    queue: PreparedQueue,
    runs: Path,
    *,
    resume: bool,
    night: str | None,
    only: frozenset[int] | None,
    environ: Mapping[str, str],
    window: TimeWindow | None = None,
    lift: bool = False,
    now: datetime | None = None,
) -> dict[str, Any]:
    """The plan as JSON data, secrets removed. Durations are seconds, ``None`` without history.

    With a deadline, ``late`` of each step that runs is why it would not start, empty when it would, and ``deadline``
    what that comes to; the estimates count the steps alone, no resets, no waiting for memory, no retries.

    Raises:
        UsageError: the night to resume does not exist.
    """
    from runq_journal.reader import JournalReader

    journal = runs / paths.JOURNAL_NAME
    history: dict[tuple[str, str, str], Usual] = {}
    scores: Scores = {}
    if paths.is_begun(journal):
        with JournalReader.open(journal) as reader:
            if resume:
                night = planning.night_to_resume(reader, queue, night, runs)
                works = planning.resumed(
                    queue, reader, night, only=only, lift=lift, dead=runner_of(journal, reader) is None
                )
            else:
                works = planning.fresh(queue, only=only)
            history = history_of(reader)
            scores = _last_scores(reader.metrics())
    elif resume:
        raise UsageError(f"{runs} has no journal to resume from", remedy="start a night without --resume")
    else:
        works = planning.fresh(queue, only=only)
    redact = queue.redactor(runs, environ)
    entries = [_entry(work, history, scores) for work in works]
    order = _order(works, queue.spec.order)
    data = {
        "queue": str(queue.spec.path),
        "queue_sha256": queue.spec.sha256,
        "base_dir": str(queue.base_dir),
        "runs": str(runs),
        "night": night if resume else None,
        "max_failures": queue.spec.max_failures,
        "order": queue.spec.order,
        "turns": order,
        "deadline": _deadline(entries, order, window, now or datetime.now().astimezone()),
        "entries": entries,
        "plugins": [offer.data() for offer in queue.offers],
    }
    redacted: dict[str, Any] = redact(data)
    return redacted


Scores = dict[tuple[str, str, str, str], list[dict[str, Any]]]
"""The scores of the last attempt that has any, by step, model, configuration and pack."""


def _last_scores(rows: Iterable[Mapping[str, Any]]) -> Scores:
    scores: Scores = {}
    for row in rows:  # the oldest first
        found = scores.setdefault((row["step"], row["model_id"], row["config"] or "", row["pack"] or ""), [])
        if found and found[0]["event"] != row["event"]:
            found.clear()
        found.append({name: row[name] for name in ("name", "value", "stderr", "n", "night", "event")})
    return scores


def _entry(work: planning.Work, history: History, scores: Scores) -> dict[str, Any]:
    spec = work.prepared.spec
    steps = []
    for decision in work.decisions:
        usual = history.get((decision.step, spec.model.id, spec.pack or ""))
        steps.append(
            {
                "name": decision.step,
                "run": decision.run and work.runs,
                "why": work.why(decision),
                "attempt": decision.attempt,
                "timeout_s": work.prepared.timeouts_s[decision.step],
                "usual_s": usual.seconds if usual else None,
                "usual_n": usual.n if usual else 0,
                "late": "",
                "last_metrics": scores.get((decision.step, spec.model.id, spec.config or "", spec.pack or ""), []),
            }
        )
    return {
        "id": work.prepared.entry.id,
        "index": spec.index,
        "model": spec.model.as_written(),
        "config": spec.config,
        "pack": spec.pack,
        "judge_config": spec.judge_config,
        "judge_model": spec.judge_model,
        "steps": steps,
        "settings": work.prepared.settings(),
    }


def _order(works: Sequence[planning.Work], order: Order) -> list[dict[str, Any]]:
    """What runs one after the other: an entry's id, steps of it, and the model that later steps of a phase share."""
    found: list[dict[str, Any]] = []
    for turn in turns(works, order):
        steps = turn.running() if turn.work.runs else []
        if steps:
            first = next(step for step in turn.work.prepared.steps if step.name == steps[0])
            model = first.model.id if turn.group is not None and first.model is not None else None
            found.append({"entry": turn.work.prepared.entry.id, "steps": steps, "model": model})
    return found


def _deadline(
    entries: list[dict[str, Any]], order: list[dict[str, Any]], window: TimeWindow | None, now: datetime
) -> dict[str, Any] | None:
    """What the window comes to; every step of the entries gets its word. ``None`` without a window."""
    recorded = window.recorded() if window else None
    if window is None or recorded is None:
        return None
    found: dict[str, Any] = attrs.asdict(recorded) | {"left": 0, "left_s": 0.0, "left_unknown": 0}
    if window.until is None:
        return found
    begin = max(now, window.start) if window.start else now
    planned = {(entry["id"], step["name"]): step for entry in entries for step in entry["steps"]}
    running = [[planned[turn["entry"], name] for name in turn["steps"]] for turn in order]
    usual = [
        [Usual(seconds=step["usual_s"], n=step["usual_n"]) if step["usual_n"] else None for step in steps]
        for steps in running
    ]
    rulings = forecast(
        usual, (window.until - begin).total_seconds(), in_words(window.until), [turn["entry"] for turn in order]
    )
    for step, one in zip(itertools.chain(*running), itertools.chain(*rulings), strict=True):
        step["late"] = one.reason
        if not one.starts:
            found["left"] += 1
            found["left_s"] += step["usual_s"] or 0.0
            found["left_unknown"] += step["usual_s"] is None
    return found


def plan_text(data: Mapping[str, Any]) -> str:
    """The plan for people."""
    lines = [f"queue   {data['queue']}", f"runs    {data['runs']}"]
    if data["night"]:
        lines.append(f"resumes {data['night']}")
    total: float = 0.0
    unknown = 0
    for entry in data["entries"]:
        pack = f" · {one_line(entry['pack'])}" if entry["pack"] else ""
        lines += ["", f"e{entry['id']}  {one_line(entry['model']['id'])}{pack}"]
        for step in entry["steps"]:
            usual = f", usually {duration(step['usual_s'])} (n={step['usual_n']})" if step["usual_s"] else ""
            what = "run " if step["run"] else "keep"
            lines.append(
                f"    {what} {step['name']}: {one_line(step['why'])} (timeout {duration(step['timeout_s'])}{usual})"
            )
            if step["late"]:
                lines.append(f"         would not start: {step['late']}")
            if step["last_metrics"]:
                first = step["last_metrics"][0]
                lines.append(f"         last {metric_text(first)}, night {one_line(first['night'])}")
            if step["run"]:
                total += step["usual_s"] or 0.0
                unknown += step["usual_s"] is None
        lines += [f"    {name:<15} {text}" for name, text in _settings_text(entry["settings"])]
    if data["order"] == "phases":
        lines += _order_text(data["turns"])
    running = sum(1 for entry in data["entries"] for step in entry["steps"] if step["run"])
    lines += ["", f"{len(data['entries'])} entries, {running} steps to run"]
    if total:
        lines.append(
            f"about {duration(total)} by earlier nights" + (f", {unknown} steps without history" * bool(unknown))
        )
    if data["deadline"]:
        lines += _deadline_text(data["deadline"])
    return clean_lines("\n".join(lines))


def _order_text(order: Sequence[Mapping[str, Any]]) -> list[str]:
    """The phases: the first steps, then those that share a model."""
    lines: list[str] = []
    for model, group in itertools.groupby(order, key=lambda turn: turn["model"]):
        words = ", ".join(f"e{turn['entry']} {' and '.join(turn['steps'])}" for turn in group)
        lines.append(f"    {words}" + (f", with {one_line(model)} loaded once" if model else ""))
    return ["", "order: phases", *lines]


def _deadline_text(deadline: Mapping[str, Any]) -> list[str]:
    moments = (deadline[name] for name in ("start_at", "until"))
    start, until = (moment and in_words(datetime.fromisoformat(moment)) for moment in moments)
    lines = [f"starts at {start}"] if start else []
    if until:
        hard = ", and ends a step that still runs then" if deadline["hard"] else ""
        lines.append(f"starts no step that would not end by {until}{hard}")
        if deadline["left"]:
            lines.append(f"would leave {left_text(deadline['left'], deadline['left_s'], deadline['left_unknown'])}")
    return lines


def _settings_text(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, value in settings.items():
        if name == "step_timeout_s" or value in ([], {}, None):
            continue
        if isinstance(value, Mapping) and all(inner is None for inner in value.values()):
            continue
        rows.append((name, one_line(_value_text(value))))
    return rows


def _value_text(value: Any) -> str:
    """A setting on one line: a plugin by its name and options, a command line as a shell shows it."""
    if isinstance(value, Mapping):
        given = {key: inner for key, inner in value.items() if inner not in (None, {}, [])}
        name = given.pop("name", None)
        options = ", ".join(f"{key}: {_nested_text(inner)}" for key, inner in given.items())
        return options if name is None else f"{name} {options}".rstrip()
    if isinstance(value, list):
        if all(isinstance(inner, str) for inner in value):
            return shlex.join(value)
        return "; ".join(_value_text(inner) for inner in value)
    return str(value)


def _nested_text(value: Any) -> str:
    return f"{{{_value_text(value)}}}" if isinstance(value, Mapping) else _value_text(value)
