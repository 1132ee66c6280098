"""What is compared: the results of one night, or the latest results of one model over all nights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from runq.discovery import Plugins
from runq.plugin import TellsAnswers
from runq.replay import chosen_night
from runq_schemas.errors import PluginError, UsageError

if TYPE_CHECKING:
    from runq_journal.reader import JournalReader

Answers = Mapping[str, Mapping[str, float]]
"""Per score, each question's own figure."""


@attrs.frozen(kw_only=True)
class Result:
    """One entry's result.

    Args:
        night: where it is from.
        entry: the summary's entry.
        answers: the single answers' figures, where its harness can read them.
        parts: by step, what its result depends on (`runq.identity.step_parts`).
    """

    night: str
    entry: Mapping[str, Any]
    answers: Answers
    parts: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Side:
    """One of the two: its name, whether it is a night or a model, and its results by what they have in common."""

    name: str
    kind: str
    results: Mapping[str, Result]


def side_of(reader: JournalReader, word: str, plugins: Plugins) -> Side:
    """The side that a word of the command line names: a night's id or folder, or a model's id.

    Raises:
        UsageError: there is neither.
    """
    night = _night_of(reader, word)
    if night is not None:
        results = {_named(found, model=True): found for found in _results(reader, night, plugins)}
        return Side(name=night, kind="night", results=results)
    by_pack: dict[str, Result] = {}
    for known in reader.night_ids():  # the newest first
        for found in _results(reader, known, plugins, model=word):
            if found.entry["metrics"] or found.entry["status"] == "complete":
                by_pack.setdefault(_named(found, model=False), found)
    if not by_pack:
        raise UsageError(
            f"{word!r} is neither a night of this journal nor a model with a result in it",
            remedy="`runq nights` lists the nights; a model's id is written as its server spells it",
        )
    return Side(name=word, kind="model", results=by_pack)


def two_words(reader: JournalReader, a: str | None, b: str | None) -> tuple[str, str]:
    """What is compared: what was asked for, else a night (by default the latest) with the one before it of its queue.

    Raises:
        UsageError: there is no night before it, or the one word is a model's.
    """
    if a is not None and b is not None:
        return a, b
    latest = chosen_night(reader, None)
    now = latest if a is None else _night_of(reader, a)
    if now is None:
        raise UsageError(f"{a!r} is no night of this journal", remedy="give two nights or two models, or one night")
    before = night_before(reader, now)
    if before is None:
        raise UsageError(
            f"{now} is the first night of its queue, {reader.view('night', now)[0]['queue_path']}",
            remedy="name what to compare it with: `runq compare A B`; `runq nights` lists the nights",
        )
    return before, now


def night_before(reader: JournalReader, night: str) -> str | None:
    """The night of the same queue file that began before; ``None`` for the first."""
    nights = reader.nights()  # the newest first
    at = next(place for place, row in enumerate(nights) if row["night"] == night)
    return next((row["night"] for row in nights[at + 1 :] if row["queue_path"] == nights[at]["queue_path"]), None)


def _night_of(reader: JournalReader, word: str) -> str | None:
    known = reader.night_ids()
    name = Path(word).name.removesuffix("_queue")
    return name if name in known else None


def _results(reader: JournalReader, night: str, plugins: Plugins, model: str | None = None) -> list[Result]:
    from runq.summary import build

    plan = reader.latest_plan(night)
    if model is not None and all(entry["model"].get("id") != model for entry in plan["entries"]):
        return []
    harnesses = {entry["id"]: entry["settings"].get("harness", {}).get("name") for entry in plan["entries"]}
    base = Path(plan["base_dir"])
    parts: dict[int, dict[str, Any]] = {}
    for row in reader.step_evidence(night):
        parts.setdefault(row["entry"], {})[row["step"]] = row["identity_parts"]
    return [
        Result(
            night=night,
            entry=entry,
            answers=_answers(plugins, harnesses.get(entry["id"]), entry, base),
            parts=parts.get(entry["id"], {}),
        )
        for entry in build(reader, night)["entries"]
        if model in (None, entry["model_id"])
    ]


def _named(result: Result, *, model: bool) -> str:
    """What makes two results the same thing: pack and configuration, and in nights the model too."""
    entry = result.entry
    parts = [entry["model_id"]] if model else []
    parts += [part for part in (entry["pack"], entry["config"] if model else None) if part]
    return " · ".join(parts) or "(no pack)"


def _answers(plugins: Plugins, harness: str | None, entry: Mapping[str, Any], base: Path) -> Answers:
    """The single answers of every step that is ok, read from its bundle by the harness that wrote it."""
    if harness is None:
        return {}
    try:
        cls = plugins.load("harness", harness).cls
    except PluginError:  # the harness of an old night may be uninstalled: its scores still compare
        return {}
    if not isinstance(cls, TellsAnswers):
        return {}
    found: dict[str, Mapping[str, float]] = {}
    for step in entry["steps"]:
        for attempt in step["attempts"]:
            if attempt["status"] == "ok" and attempt["bundle_dir"]:
                try:
                    found |= cls.answers(base / attempt["bundle_dir"])
                except (OSError, ValueError, KeyError, TypeError, json.JSONDecodeError):  # pruned, or edited by hand
                    continue
    return found
