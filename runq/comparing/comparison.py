"""The rows of a comparison: each figure of both sides, their difference, and what it means."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import attrs

from runq.comparing.chance import ALPHA, beyond_chance, by_number, by_stderr, counts, sign_test
from runq.comparing.sides import Result, Side
from runq.identity import difference

LOWER_IS_BETTER = frozenset({"bits_per_byte", "brier_score", "byte_perplexity", "perplexity", "ter", "word_perplexity"})
"""Metrics that lm-eval registers with ``higher_is_better=False`` (lm_eval/api/metrics.py)."""


@attrs.frozen(kw_only=True)
class Row:
    """One figure.

    Args:
        of: the entry, by what both sides have in common.
        what: ``status``, ``score``, ``seconds`` or ``memory``.
        name: the step, with the score's name or the probe's figure.
        a, b: the figures; ``None`` where a side has none.
        p: the p-value of the difference; ``None`` where nothing tells it.
        test: how: ``sign`` over paired questions (McNemar's for right and wrong), ``stderr`` by standard errors,
            ``number`` by how many figures between 0 and 1 a score is over.
        low, high: the interval of the difference, where it is judged by standard errors or numbers.
        pairs: questions that both sides answered.
        better, worse: how many of them are better and worse on the second side.
        verdict: ``better`` or ``worse`` beyond chance (a status: ``worse`` when it was complete); else empty.
        a_proven, b_proven: whether that side's memory figure stands on a proven baseline.
    """

    of: str
    what: str
    name: str
    a: float | str | None
    b: float | str | None
    p: float | None = None
    test: str = ""
    low: float | None = None
    high: float | None = None
    pairs: int | None = None
    better: int | None = None
    worse: int | None = None
    verdict: str = ""
    a_proven: bool = True
    b_proven: bool = True
    lower_is_better: bool = False

    @property
    def difference(self) -> float | None:
        """Second minus first."""
        if isinstance(self.a, int | float) and isinstance(self.b, int | float):
            return self.b - self.a
        return None


@attrs.frozen
class Note:
    """Why the two results of an entry may not be alike in what was asked; one sentence in ``text``."""

    of: str
    text: str


@attrs.frozen(kw_only=True)
class Comparison:
    """Two sides and what came of them."""

    a: Side
    b: Side
    rows: tuple[Row, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    notes: tuple[Note, ...]
    alpha: float

    @property
    def regressions(self) -> tuple[Row, ...]:
        """The rows that are worse on the second side, beyond chance."""
        return tuple(row for row in self.rows if row.verdict == "worse")


def compare(a: Side, b: Side, *, alpha: float = ALPHA, lower: Collection[str] = ()) -> Comparison:
    """Compare what two sides have in common.

    Args:
        alpha: the chance of a single false alarm among all scores.
        lower: names of further scores of which less is better.
    """
    common = [key for key in a.results if key in b.results]
    rows = [row for key in common for row in _rows(key, a.results[key], b.results[key], lower, alpha)]
    beyond = beyond_chance([row.p for row in rows], alpha)
    pairs = zip(rows, beyond, strict=True)
    judged = [attrs.evolve(row, verdict=_direction(row)) if found else row for row, found in pairs]
    return Comparison(
        a=a,
        b=b,
        rows=tuple(judged),
        only_a=tuple(key for key in a.results if key not in b.results),
        only_b=tuple(key for key in b.results if key not in a.results),
        notes=tuple(Note(key, text) for key in common for text in _unlike(a.results[key], b.results[key], a.kind)),
        alpha=alpha,
    )


def _unlike(a: Result, b: Result, kind: str) -> Iterator[str]:
    """What is not the same of the two but the model: the files that a step reads, and in nights its settings too."""
    for step, now in b.parts.items():
        before = a.parts.get(step)
        if not before or not now:
            continue
        if kind == "night":
            text = difference({**before, "predecessor": None}, {**now, "predecessor": None})
        else:
            files = [[digest for _, digest in parts["files"]] for parts in (before, now)]
            text = "it read other files" if files[0] != files[1] else ""
        if text:
            yield f"{step} was not the same: {text}"


def _direction(row: Row) -> str:
    """Better or worse: by the answers that differ where there are pairs, else by the figures."""
    if row.better is not None and row.worse is not None:
        return "better" if row.better > row.worse else "worse"
    rise = (row.difference or 0.0) * (-1 if row.lower_is_better else 1)
    return "better" if rise > 0 else "worse"


def _rows(key: str, a: Result, b: Result, lower: Collection[str], alpha: float) -> Iterator[Row]:
    was, now = a.entry["status"], b.entry["status"]
    lost = was == "complete" and now not in ("complete", "pending", "running")
    yield Row(of=key, what="status", name="entry", a=was, b=now, verdict="worse" if lost else "")
    yield from _scores(key, a, b, lower, alpha)
    seconds = [{step["name"]: step["seconds"] for step in side.entry["steps"]} for side in (a, b)]
    for step in seconds[0]:
        if seconds[0][step] is not None and seconds[1].get(step) is not None:
            yield Row(of=key, what="seconds", name=step, a=seconds[0][step], b=seconds[1][step])
    if a.entry["model_delta_mb"] is not None and b.entry["model_delta_mb"] is not None:
        yield Row(
            of=key,
            what="memory",
            name="model delta",
            a=a.entry["model_delta_mb"],
            b=b.entry["model_delta_mb"],
            a_proven=bool(a.entry["baseline_proven"]),
            b_proven=bool(b.entry["baseline_proven"]),
        )


def _scores(key: str, a: Result, b: Result, lower: Collection[str], alpha: float) -> Iterator[Row]:
    first, second = _metrics(a), _metrics(b)
    names = [*first, *(name for name in second if name not in first)]
    names += [name for name in a.answers if name in b.answers and name not in names]
    for name in names:
        less = lower_is_better(name, lower)
        one, other = first.get(name), second.get(name)
        row = Row(
            of=key,
            what="score",
            name=name,
            a=one["value"] if one else _mean(a.answers.get(name)),
            b=other["value"] if other else _mean(b.answers.get(name)),
            lower_is_better=less,
        )
        pairs = (a.answers.get(name), b.answers.get(name))
        if pairs[0] and pairs[1] and pairs[0].keys() & pairs[1].keys():
            higher, lower_count, equal = counts(pairs[0], pairs[1])
            yield attrs.evolve(
                row,
                p=sign_test(higher, lower_count),
                test="sign",
                pairs=higher + lower_count + equal,
                better=lower_count if less else higher,
                worse=higher if less else lower_count,
            )
        else:
            yield _unpaired(row, one, other, alpha) if one and other else row


def _unpaired(row: Row, one: Mapping[str, Any], other: Mapping[str, Any], alpha: float) -> Row:
    """By the standard errors; by the numbers where one is missing or 0, as that of 20 right answers of 20 is."""
    found, test = None, "number"
    if not (one["stderr"] and other["stderr"]) and one["n"] is not None and other["n"] is not None:
        found = by_number(one["value"], one["n"], other["value"], other["n"], alpha=alpha)
    if found is None and one["stderr"] is not None and other["stderr"] is not None:
        found, test = by_stderr(one["value"], one["stderr"], other["value"], other["stderr"], alpha=alpha), "stderr"
    return row if found is None else attrs.evolve(row, p=found.p, test=test, low=found.low, high=found.high)


def _metrics(result: Result) -> dict[str, Mapping[str, Any]]:
    """The scores by name; those of several steps that have one name in common by the step's too."""
    metrics = result.entry["metrics"]
    names = [metric["name"] for metric in metrics]
    return {m["name"] if names.count(m["name"]) == 1 else f"{m['step']}/{m['name']}": m for m in metrics}


def _mean(answers: Mapping[str, float] | None) -> float | None:
    return sum(answers.values()) / len(answers) if answers else None


def lower_is_better(name: str, lower: Collection[str] = ()) -> bool:
    """Whether less of a score is better: one of `LOWER_IS_BETTER`, or of those named."""
    metric = name.rpartition("/")[2].partition(",")[0]
    return name in lower or metric in lower or metric in LOWER_IS_BETTER
