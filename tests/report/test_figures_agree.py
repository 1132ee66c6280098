"""The page, summary.json, `runq status --json`, CSV and Datasette tell the same figures of a real night."""

from __future__ import annotations

import csv
import io
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ..browse.conftest import browsing
from ..night.conftest import Workshop


class Entries(HTMLParser):
    """The rows of the page's first table: by column, the figure where there is one and else the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[dict[str, Any]] = []
        self.unproven: list[set[str]] = []
        self._column: str | None = None
        self._tables = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._tables += tag == "table"
        if self._tables != 1:
            return
        if tag == "tr":
            self.rows.append({})
            self.unproven.append(set())
        self._column = values.get("data-label") or self._column
        if tag == "data" and self._column:
            self.rows[-1][self._column] = float(str(values["value"]))

    def handle_data(self, data: str) -> None:
        if self._tables != 1 or not self.rows or not self._column or not data.strip():
            return
        if data.strip() == "not proven":
            self.unproven[-1].add(self._column)
        elif not isinstance(self.rows[-1].get(self._column), float):
            self.rows[-1].setdefault(self._column, data.strip())

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._column = None


FIELDS = ("status", "baseline_mb", "peak_mb", "model_delta_mb", "tokens_per_second", "answers", "answers_failed")


@pytest.fixture(scope="module")
def summary(real_night: Workshop) -> dict[str, Any]:
    return real_night.summary()


def test_the_night_was_as_it_was_meant_to_be(summary: dict[str, Any]) -> None:
    """What follows compares; this says that what is compared is right."""
    assert [
        (e["model_id"], e["status"], e["eval_status"], e["baseline_mb"], e["baseline_proven"], e["model_delta_mb"])
        for e in summary["entries"]
    ] == [
        ("good", "complete", "ok", 1000.0, True, 500.0),
        ("broken", "failed", "failed", 1000.0, True, 1000.0),
        ("endless", "failed", "timeout", 1000.0, True, 1000.0),
        ("late", "complete", "ok", 1400.0, False, 600.0),
        ("better", "complete", "ok", 1000.0, True, 2200.0),
    ]
    assert [e["tokens_per_second"] for e in summary["entries"]] == [31.25, None, None, 31.25, 31.25]


def test_status_says_what_the_summary_says(real_night: Workshop, summary: dict[str, Any]) -> None:
    status = json.loads(real_night.runq("status", "--runs", "runs", "--json").stdout)
    assert {name: status[name] for name in summary} == summary


def test_the_page_says_what_the_summary_says(real_page: Path, summary: dict[str, Any]) -> None:
    found = Entries(real_page.read_text())
    rows, unproven = found.rows[1:], found.unproven[1:]  # the first is the head
    assert len(rows) == 5
    for row, marked, entry in zip(rows, unproven, summary["entries"], strict=True):
        assert (row["entry"], row["model"], row["result"]) == (f"e{entry['id']}", entry["model_id"], entry["status"])
        assert row["baseline MB"] == entry["baseline_mb"]
        assert row["model delta MB"] == entry["model_delta_mb"]
        assert row.get("tokens/s") == entry["tokens_per_second"]
        assert row["work"] == entry["steps"][0]["seconds"]
        assert marked == (set() if entry["baseline_proven"] else {"baseline MB", "model delta MB"})
        if entry["metrics"]:
            assert row["first scores"] == f"accuracy {entry['metrics'][0]['value']:g} ±0.125 (n=40)"


def test_csv_says_what_the_summary_says(real_night: Workshop, summary: dict[str, Any]) -> None:
    ran = real_night.runq("report", "--runs", "runs", "--format", "csv")
    for row, entry in zip(csv.DictReader(io.StringIO(ran.stdout)), summary["entries"], strict=True):
        for name in FIELDS:
            assert row[name] == ("" if entry[name] is None else str(entry[name])), name
        assert row["work_seconds"] == str(entry["steps"][0]["seconds"])
        scores = {metric["name"]: str(metric["value"]) for metric in entry["metrics"]}
        assert (row["work/accuracy"], row["work/f1"]) == (scores.get("accuracy", ""), scores.get("f1", ""))


def test_datasette_says_what_the_summary_says(real_night: Workshop, summary: dict[str, Any], tmp_path: Path) -> None:
    night = summary["night"]
    with browsing(real_night.runs, state=tmp_path) as served:
        results = served.rows(f"/journal/entry_result.json?night={night}&_shape=array&_sort=index")
        scores = served.rows(f"/journal/step_metric.json?night={night}&_shape=array")
        counts = served.rows(f"/journal/night_summary.json?night={night}&_shape=array")
    for row, entry in zip(results, summary["entries"], strict=True):
        assert {name: row[name] for name in FIELDS} == {name: entry[name] for name in FIELDS}
        assert row["eval_seconds"] == entry["eval_seconds"] == round(entry["steps"][0]["seconds"], 1)
        assert bool(row["baseline_proven"]) == entry["baseline_proven"]
    told = [(entry["id"], m["name"], m["value"], m["n"]) for entry in summary["entries"] for m in entry["metrics"]]
    assert sorted((row["entry"], row["name"], row["value"], row["n"]) for row in scores) == sorted(told)
    assert len(told) == 6
    assert [counts[0][name] for name in ("total", "complete", "failed", "pending")] == [5, 3, 2, 0]
