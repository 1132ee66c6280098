"""Scores in words: one way to write them in every table and line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runq.logs import one_line


def score_text(value: float) -> str:
    """A score for people: four significant digits, whole figures of any size in full."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.4g}"


def metric_text(metric: Mapping[str, Any]) -> str:
    """A score in one line: ``match/accuracy 0.42 ±0.05 (n=50)``."""
    stderr = "" if metric["stderr"] is None else f" ±{score_text(metric['stderr'])}"
    n = "" if metric["n"] is None else f" (n={metric['n']})"
    return f"{one_line(metric['name'])} {score_text(metric['value'])}{stderr}{n}"


def first_metrics(metrics: Iterable[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """The first score of each step: the one its harness says to look at first."""
    first: dict[str, Mapping[str, Any]] = {}
    for metric in metrics:
        first.setdefault(metric["step"], metric)
    return [(one_line(step), metric) for step, metric in first.items()]
