"""The figures of single answers: gathered question by question, and made into scores."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from runq.plugin import Metric

QUESTION_COLUMNS = ("prompt_id", "question_id", "sample_id", "id")
"""Which column of a table of answers names the question: the first of these that it has."""

CONDITION_COLUMNS = ("variant", "prompt_variant")
"""Columns that make another question of the same prompt, such as another system prompt."""

REPEAT_COLUMNS = ("repeat", "run", "epoch")
"""Columns that tell several answers to one question apart."""


@attrs.define
class AnswerScores:
    """Figures of answers by score, question and answer."""

    _figures: dict[str, dict[str, dict[str, float]]] = attrs.field(factory=dict, init=False)

    def add(self, score: str, question: str, figure: float, *, answer: str = "") -> None:
        """Take a figure; a later one of the same answer replaces it."""
        self._figures.setdefault(score, {}).setdefault(question, {})[answer] = figure

    def only(self, score: str) -> AnswerScores:
        """That score alone."""
        found = AnswerScores()
        found._figures = {name: figures for name, figures in self._figures.items() if name == score}
        return found

    def by_question(self) -> dict[str, dict[str, float]]:
        """Per score the figure of each question: the mean where it was asked several times.

        Answers to one question are no independent throws; whoever counts questions must not count them as such.
        """
        return {
            score: {question: math.fsum(answers.values()) / len(answers) for question, answers in questions.items()}
            for score, questions in self._figures.items()
        }

    def metrics(self) -> tuple[Metric, ...]:
        """Each score's mean over the questions, its standard error (none of a single question), and their number.

        The standard error is that of the questions' means, so that repeats do not make it smaller than it is
        (E. Miller, Adding Error Bars to Evals, 2024: clustered standard errors).
        """
        return tuple(_metric(score, list(figures.values())) for score, figures in self.by_question().items())


def _metric(name: str, figures: list[float]) -> Metric:
    count = len(figures)
    mean = math.fsum(figures) / count
    spread = math.fsum((figure - mean) ** 2 for figure in figures)
    return Metric(name=name, value=mean, stderr=math.sqrt(spread / (count - 1) / count) if count > 1 else None, n=count)


def number(value: Any) -> float | None:
    """A finite number, or a truth as 1 and 0; from a table as text. ``None`` for all else."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "false"):
            return float(word == "true")
        value = word
    elif not isinstance(value, int | float):
        return None
    try:
        figure = float(value)
    except (ValueError, OverflowError):
        return None
    return figure if math.isfinite(figure) else None


def read_table(path: Path) -> AnswerScores:
    """The answers of a CSV file with a header, a row per answer.

    Each column of numbers, or of true and false, is a score. A column that names questions, conditions or repeats is
    none, nor is one with any other text in it; an empty cell is an answer without that score. A file without a column
    for the question has none at all.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no CSV.
    """
    found = AnswerScores()
    barred: set[str] = set()
    rows = list(table_rows(path))
    names = list(rows[0]) if rows else []
    named = next((name for name in QUESTION_COLUMNS if name in names), None)
    if named is None:
        return found
    scores = [name for name in names if name not in (*QUESTION_COLUMNS, *CONDITION_COLUMNS, *REPEAT_COLUMNS)]
    for row in rows:
        barred |= {name for name in scores if row[name] and number(row[name]) is None}
    for row in rows:
        question = "/".join(row[name] for name in (named, *CONDITION_COLUMNS) if row.get(name))
        answer = "/".join(row[name] for name in REPEAT_COLUMNS if row.get(name))
        for name in scores:
            figure = number(row[name]) if name not in barred else None
            if figure is not None and question:
                found.add(name, question, figure, answer=answer)
    return found


def table_rows(path: Path) -> Iterator[Mapping[str, str]]:
    """The rows of a CSV file by its header; a row that is too short has empty cells.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no CSV.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        try:
            for row in csv.DictReader(stream, restval=""):
                yield {name: cell for name, cell in row.items() if isinstance(name, str)}
        except csv.Error as error:
            raise ValueError(str(error)) from error


def json_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a file of JSON lines; what is none is passed over.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        for line in stream:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict):
                yield row
