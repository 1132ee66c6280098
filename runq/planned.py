"""The plan as data and as text: what would run and why, every setting resolved, how long it took before."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from runq import paths, planning
from runq.logs import one_line
from runq.prepared import PreparedQueue
from runq.scores import metric_text
from runq.text import clean_lines, duration
from runq_schemas.errors import UsageError


def plan_data(
    queue: PreparedQueue,
    runs: Path,
    *,
    resume: bool,
    night: str | None,
    only: frozenset[int] | None,
    environ: Mapping[str, str],
) -> dict[str, Any]:
    """The plan as JSON data, secrets removed. Durations are seconds, ``None`` without history.

    Raises:
        UsageError: the night to resume does not exist.
    """
    from runq_journal.reader import JournalReader

    journal = runs / paths.JOURNAL_NAME
    estimates: dict[tuple[str, str, str], tuple[float, int]] = {}
    scores: Scores = {}
    if paths.is_begun(journal):
        with JournalReader.open(journal) as reader:
            if resume:
                night = planning.night_to_resume(reader, queue, night, runs)
                works = planning.resumed(queue, reader, night, only=only)
            else:
                works = planning.fresh(queue, only=only)
            for row in reader.durations():
                estimates[row["step"], row["model_id"], row["pack"] or ""] = (row["seconds"], row["n"])
            scores = _last_scores(reader.metrics())
    elif resume:
        raise UsageError(f"{runs} has no journal to resume from", remedy="start a night without --resume")
    else:
        works = planning.fresh(queue, only=only)
    redact = queue.redactor(runs, environ)
    data = {
        "queue": str(queue.spec.path),
        "queue_sha256": queue.spec.sha256,
        "base_dir": str(queue.base_dir),
        "runs": str(runs),
        "night": night if resume else None,
        "entries": [_entry(work, estimates, scores) for work in works],
        "plugins": [attrs.asdict(plugin) for plugin in queue.plugins],
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


def _entry(
    work: planning.Work, estimates: Mapping[tuple[str, str, str], tuple[float, int]], scores: Scores
) -> dict[str, Any]:
    spec = work.prepared.spec
    steps = []
    for decision in work.decisions:
        seconds, n = estimates.get((decision.step, spec.model.id, spec.pack or ""), (None, 0))
        steps.append(
            {
                "name": decision.step,
                "run": decision.run and work.selected,
                "why": decision.why if work.selected else "not selected by --only",
                "attempt": decision.attempt,
                "timeout_s": work.prepared.timeouts_s[decision.step],
                "usual_s": seconds,
                "usual_n": n,
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
            if step["last_metrics"]:
                first = step["last_metrics"][0]
                lines.append(f"         last {metric_text(first)}, night {one_line(first['night'])}")
            if step["run"]:
                total += step["usual_s"] or 0.0
                unknown += step["usual_s"] is None
        lines += [f"    {name:<15} {text}" for name, text in _settings_text(entry["settings"])]
    running = sum(1 for entry in data["entries"] for step in entry["steps"] if step["run"])
    lines += ["", f"{len(data['entries'])} entries, {running} steps to run"]
    if total:
        lines.append(
            f"about {duration(total)} by earlier nights" + (f", {unknown} steps without history" * bool(unknown))
        )
    return clean_lines("\n".join(lines))


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
