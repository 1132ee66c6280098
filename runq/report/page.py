"""The page: what was gathered, in words and pictures, as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from runq.logs import one_line
from runq.report import since, table, words
from runq.report.best import Best, best, worked_s
from runq.report.failing import failed_entries
from runq.report.figures import Heading, missing
from runq.report.gathered import Gathered
from runq.report.memory_figure import memory
from runq.report.points import points
from runq.report.quality_figure import quality
from runq.report.table import Cell
from runq.report.time_figure import time
from runq.report.verdict import headline, tone
from runq.scores import score_text
from runq.text import clean_lines, duration, json_text


def to_html(found: Gathered) -> str:
    """The page.

    Args:
        found: the night.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    data, plan = found.data, found.plan
    templates = Environment(
        loader=PackageLoader("runq.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= words.filters(found.offset, Path(plan["base_dir"]))
    failures, leading = failed_entries(found), best(found.entries)
    figures = [section for section in (memory(found), time(found), quality(found)) if section is not None]
    css = files("runq.report").joinpath("templates", "report.css").read_text(encoding="utf-8")
    context: dict[str, Any] = {
        "data": data,
        "headline": headline(data),
        "tone_of_night": tone(data),
        "points": points(found, failures, leading),
        "columns": table.columns(found.entries),
        "unproven": table.any_unproven(found.entries),
        "words": table,
        "csv": base64.b64encode(table.to_csv(data).encode()).decode(),
        "markdown": base64.b64encode(table.to_markdown(data).encode()).decode(),
        "since": since.table(found.earlier) if found.earlier is not None else None,
        "since_notes": found.earlier.notes if found.earlier is not None else (),
        "compare_with": found.earlier.a.name if found.earlier is not None else "",
        "failures": failures,
        "failed_ids": {card.entry["id"] for card in failures},
        "best_headings": [
            Heading("score"),
            Heading("best"),
            Heading("value", True),
            Heading("time", True),
            Heading("model delta MB", True),
            Heading("among", True),
        ],
        "best": [row for one in leading for row in _best(one)],
        "left_headings": [Heading("entry"), Heading("model"), Heading("step"), Heading("usually"), Heading("why")],
        "left": _left(data),
        "score_headings": [
            Heading("entry"),
            Heading("model"),
            Heading("pack"),
            Heading("step"),
            Heading("score"),
            Heading("value", True),
            Heading("standard error", True),
            Heading("n", True),
        ],
        "scores": _scores(found),
        "figures": figures,
        "no_plots": missing(),
        "facts": _facts(found),
        "settings": _settings(found),
        "css": Markup(css),  # noqa: S704 - ours
        "made_at": found.made_at,
        "runq_version": version("runq"),
    }
    context["sections"] = _sections(context)
    return templates.get_template("report.html").render(context)


def _sections(context: dict[str, Any]) -> list[tuple[str, str]]:
    """What the page can jump to: id and title."""
    data = context["data"]
    found = [("entries", "Entries")]
    found += [("best", "Best scores")] if context["best"] else []
    found += [("since", "Since the night before")] if context["since"] else []
    found += [("failures", "Failures")] if context["failures"] else []
    goes_on = data["resume"] and data["state"] not in ("running", "paused", "frozen")
    found += [("left", "What is left")] if goes_on or data["left"] else []
    found += [(section.id, section.title) for section in context["figures"]]
    found += [("scores", "All scores")] if context["scores"] else []
    found += [("warnings", "Warnings")] if data["warnings"] else []
    return [*found, ("machine", "Machine and queue")]


def _best(one: Best) -> list[list[Cell]]:
    rows = []
    for entry, metric in one.entries:
        seconds, delta = worked_s(entry), entry["model_delta_mb"]
        what = f"{one.step} {one.name}" if one.step not in one.name else one.name
        rows.append(
            [
                Cell(one_line(what), lines=(one_line(one.pack),) if one.pack else ()),
                Cell(one_line(f"e{entry['id']} {entry['model_id']}")),
                Cell(score_text(metric["value"]), value=metric["value"]),
                Cell(duration(seconds), value=seconds) if seconds is not None else Cell(),
                Cell(f"{delta:,.1f}", value=delta, unproven=not entry["baseline_proven"])
                if delta is not None
                else Cell(),
                Cell(str(one.among), value=one.among),
            ]
        )
    return rows


def _left(data: dict[str, Any]) -> list[list[Cell]]:
    return [
        [
            Cell(f"e{one['entry']}"),
            Cell(one_line(one["model_id"])),
            Cell(one_line(one["step"])),
            Cell("" if one["usual_s"] is None else f"{duration(one['usual_s'])} (n={one['usual_n']})"),
            Cell(one_line(one["reason"])),
        ]
        for one in data["left"]
    ]


def _scores(found: Gathered) -> list[list[Cell]]:
    return [
        [
            Cell(f"e{entry['id']}"),
            Cell(one_line(entry["model_id"])),
            Cell(one_line(entry["pack"] or "")),
            Cell(one_line(metric["step"])),
            Cell(one_line(metric["name"])),
            Cell(score_text(metric["value"]), value=metric["value"]),
            Cell() if metric["stderr"] is None else Cell(score_text(metric["stderr"]), value=metric["stderr"]),
            Cell() if metric["n"] is None else Cell(str(metric["n"]), value=metric["n"]),
        ]
        for entry in found.entries
        for metric in entry["metrics"]
    ]


def _facts(found: Gathered) -> list[tuple[str, str]]:
    data, host = found.data, found.data["host"]
    facts = [
        (
            "Machine",
            f"{host['name']}: {host['system']}, {host['machine']}, {host['cpus']} cores, {host['memory_mb']:,.0f} MB",
        ),
        ("Versions", ", ".join(f"{name} {number}" for name, number in data["versions"].items())),
        ("Queue file", data["queue"]),
        ("Its SHA-256", data["queue_sha256"]),
        ("Plugins", ", ".join(_plugin(one) for one in data["plugins"])),
        ("Journal", data["journal"]),
    ]
    window = data["window"]
    if window:
        told = {"start_at": "not before", "until": "until"}
        asked = [f"{text} {window[name]}" for name, text in told.items() if window[name]]
        facts.append(("Time window", ", ".join(asked) + (", and no later" if window["hard"] else "")))
    return [(name, one_line(str(value))) for name, value in facts if value]


def _plugin(one: dict[str, Any]) -> str:
    kind = one["group"].rpartition(".")[2]
    brought = "" if one["distribution"] == "runq" else f" ({one['distribution']} {one['version']})"
    return f"{one['name']} ({kind}){brought}"


def _settings(found: Gathered) -> str:
    """Every entry as it was planned, without its steps' identities; secrets are not in the journal."""
    kept = [{name: value for name, value in entry.items() if name != "steps"} for entry in found.plan["entries"]]
    return clean_lines(json_text(kept))
