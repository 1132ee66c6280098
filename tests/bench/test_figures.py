"""The bench's own arithmetic and tables. Nothing is timed here."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0000412, "0.000041"),
        (0.00512, "0.00512"),
        (1.0, "1"),
        (12.345, "12.3"),
        (999.4, "999"),
        (1000, "1,000"),
        (311622.4, "311,622"),
        (-2.5, "-2.5"),
    ],
)
def test_figures_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    from bench.measure import number

    assert number(value) == text


def test_cases_take_turns() -> None:
    from bench.measure import alternate

    calls: list[str] = []

    def case(name: str, figure: float):
        def run() -> float:
            calls.append(name)
            return figure

        return run

    found = alternate({"a": case("a", 1.0), "b": case("b", 3.0)}, 2)
    assert calls == ["a", "b", "a", "b"]
    assert found.figures == {"a": [1.0, 1.0], "b": [3.0, 3.0]}


def test_a_ratio_is_taken_round_by_round() -> None:
    """A machine ten times slower in one round leaves every ratio; the ratio of the medians would be 20 / 20."""
    from bench.measure import Rounds

    rounds = Rounds({"floor": [1.0, 10.0, 20.0], "runq": [2.0, 20.0, 40.0]})
    assert rounds.ratio("runq", "floor") == 2.0
    assert rounds.median("runq") == 20.0
    mixed = Rounds({"floor": [1.0, 10.0, 20.0], "runq": [2.0, 30.0, 20.0]})
    assert mixed.ratio("runq", "floor") == 2.0  # of 2, 3 and 1


def test_a_table_is_markdown() -> None:
    from bench.measure import Table

    table = Table(title="Steps")
    table.add("floor", 1.0, "ms", ratio=1.0)
    table.add("runq", 1.234, "ms", ratio=1.234, limit="at most 1.5", note="durable")
    table.notes.append("- said")
    assert table.text() == (
        "## Steps\n"
        "\n"
        "| what | figure | ratio | limit | note |\n"
        "| --- | ---: | ---: | --- | --- |\n"
        "| floor | 1 ms | 1 |  |  |\n"
        "| runq | 1.23 ms | 1.23 | at most 1.5 | durable |\n"
        "\n"
        "- said\n"
    )


def test_a_table_is_json_too() -> None:
    from bench.measure import Table, as_json

    table = Table(title="Steps")
    table.add("floor", 1.0, "ms")
    row = {"name": "floor", "figure": 1.0, "unit": "ms", "ratio": None, "limit": "", "note": ""}
    assert json.loads(as_json("a machine", [table])) == {
        "machine": "a machine",
        "tables": [{"title": "Steps", "rows": [row], "notes": []}],
    }


def test_growth_is_from_where_caches_are_full_to_the_last_steps() -> None:
    from bench.memory import Reading, growth

    start = [Reading(0, 5.0), Reading(1, 20.0)]  # imports: no growth of the night
    filling = [Reading(100, 25.0), Reading(399, 29.0)]
    early = [Reading(400, 30.0), Reading(450, 31.0), Reading(500, 32.0)]
    middle = [Reading(700, 90.0)]
    late = [Reading(900, 33.0), Reading(950, 33.5), Reading(999, 34.0)]
    summary = [Reading(1000, 99.0)]
    assert growth([*start, *filling, *early, *middle, *late, *summary], 1000) == 2.5


def test_every_part_is_there_and_told_of() -> None:
    from bench.__main__ import PARTS

    done = subprocess.run(
        [sys.executable, "-m", "bench", "--help"], cwd=REPO, capture_output=True, text=True, check=True
    )
    for name, (module, text) in PARTS.items():
        assert callable(importlib.import_module(module).run)
        assert f"  {name:9}{text}" in done.stdout


def test_a_part_that_fails_costs_no_other(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from bench import __main__ as bench
    from bench import parsing, sampler
    from bench.measure import Table

    def broken(*, quick: bool) -> list[Table]:
        raise RuntimeError(f"quick is {quick}")

    monkeypatch.setattr(parsing, "run", broken)
    monkeypatch.setattr(sampler, "run", lambda *, quick: [Table(title=f"sampled, quick is {quick}")])
    assert bench.main(["--quick", "--only", "parsing", "--only", "sampler"]) == 1
    out, err = capsys.readouterr()
    assert "error: parsing: RuntimeError: quick is True" in err
    assert "## sampled, quick is True" in out


def test_an_environment_is_made_anew_for_other_metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What an environment was made for tells runq's metadata, so that a new dependency is installed."""
    from bench import peers

    (tmp_path / "pyproject.toml").write_text("[project]\n")
    before = peers._wanted("runq")
    monkeypatch.setattr(peers, "REPOSITORY", tmp_path)
    assert peers._wanted("runq") != before
    assert peers._wanted("doit") == f"{sys.version}\ndoit"
