"""One screen of `runq watch`: what stands on it, and what gives way on a small terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from runq.logs import clean
from runq.progress.living import Now
from runq.progress.sparkline import highest_of_each_share, sparkline
from runq.watching.frame import Frame, Level, Log
from runq.watching.screen import screen, window

AT = datetime(2026, 10, 1, 22, 14, 5, tzinfo=UTC)
KEYS = "q leave  p pause  s stop  k skip  l log"


def entry(number: int, model: str, status: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": number,
        "model_id": model,
        "status": status,
        "reason": None,
        "metrics": [],
        "model_delta_mb": None,
        "baseline_proven": True,
        "steps": [],
        **changes,
    }


def step(name: str, status: str, seconds: float | None = None) -> dict[str, Any]:
    return {"name": name, "status": status, "seconds": seconds}


DATA: dict[str, Any] = {
    "night": "2026-10-01_220000",
    "state": "running",
    "runner": {"pid": 4711, "since": ""},
    "complete": 1,
    "total": 3,
    "failed": 1,
    "asked": [],
    "now": {"kind": "step.spawned", "entry": 2, "step": "eval", "attempt": 1, "at": "2026-10-01T20:14:00.000000Z"},
    "entries": [
        entry(0, "gemma", "complete", steps=[step("eval", "ok", 61.0)], model_delta_mb=8000.0),
        entry(1, "broken", "failed", steps=[step("eval", "failed", 2.0)], reason="it exited with 3"),
        entry(2, "qwen", "running", steps=[step("eval", "running")]),
    ],
}

FRAME = Frame(
    data=DATA,
    now=Now(entry=2, model="qwen", place=3, of=3, step="eval", seconds=61.0, timeout_s=14400.0, memory_mb=9321.0),
    doing="e2 eval running, for 1:01 min",
    level=Level(
        probe="system",
        mb=9321.0,
        peak_mb=9500.0,
        curve=[1000.0, 5000.0, 9500.0, 9321.0],
        baseline_mb=1000.0,
        proven=True,
    ),
    log=Log(title="log of e2 eval, attempt 1", lines=("answer 1 of 40", "answer 2 of 40", "answer 3 of 40")),
    happened=[(AT, Text(f"transition {number}")) for number in range(30)],
    at=AT,
    keys=KEYS,
)


def shown(frame: Frame, width: int = 80, height: int = 24, **options: Any) -> list[str]:
    return [line.plain.rstrip() for line in screen(frame, width, height, **options)]


def test_an_ordinary_terminal() -> None:
    lines = shown(FRAME)
    assert lines[:8] == [
        "22:14:05  running  1 of 3 complete, 1 failed  night 2026-10-01_220000 (pid 4711)",
        "[3/3] e2 qwen · eval · 1:01 min of 4:00 h · memory 9,321 MB",
        # 1,000 to 9,500 MB in eighths of 1,062.5: 5,000 is above three of them, 9,321 above seven.
        "▁▄██ peak 9,500, baseline 1,000 MB (system)",
        "e0   gemma   eval ok 1:01 min  +8000 MB",
        "e1   broken  eval failed 2 s",
        "      it exited with 3",
        "e2   qwen    eval running",
        "── what happened " + "─" * 63,
    ]
    # 24 lines less 3 above, 4 entries' and the keys leave 16: the log needs 4 of them.
    assert lines[8:19] == [f"22:14:05 transition {number}" for number in range(19, 30)]
    assert lines[19:23] == [
        "── log of e2 eval, attempt 1 " + "─" * 51,
        "answer 1 of 40",
        "answer 2 of 40",
        "answer 3 of 40",
    ]
    assert lines[-1] == KEYS
    assert len(lines) == 24


def test_a_long_log_leaves_a_third_for_what_happened() -> None:
    lines = shown(attrs.evolve(FRAME, log=Log(title="log", lines=[f"line {number}" for number in range(50)])))
    assert lines[8:12] == [f"22:14:05 transition {number}" for number in (26, 27, 28, 29)]
    assert lines[12] == "── log " + "─" * 73
    assert lines[13:23] == [f"line {number}" for number in range(40, 50)]


def test_colours_say_how_entries_ended_and_words_say_it_too() -> None:
    lines = screen(FRAME, 80, 24)
    assert [str(line.style) for line in lines[3:7]] == ["green", "red", "red", "bold"]
    assert "ok" in lines[3].plain and "failed" in lines[4].plain


def test_a_baseline_that_is_not_proven_is_marked() -> None:
    assert FRAME.level is not None
    frame = attrs.evolve(FRAME, level=attrs.evolve(FRAME.level, proven=False))
    assert shown(frame)[2] == "▁▄██ peak 9,500, baseline 1,000* MB (system) * not proven"
    unproven = entry(
        0, "gemma", "complete", steps=[step("eval", "ok", 61.0)], model_delta_mb=8000.0, baseline_proven=False
    )
    frame = attrs.evolve(FRAME, data={**DATA, "entries": [unproven]})
    assert shown(frame)[3].endswith("+8000 MB*")


def test_a_terminal_without_block_characters() -> None:
    lines = shown(FRAME, ascii_only=True)
    assert lines[2].startswith("_=## peak")
    assert lines[7].startswith("-- what happened ---")


def test_a_narrow_terminal_keeps_what_one_looks_for() -> None:
    lines = shown(FRAME, 30, 24)
    assert lines[0] == "22:14:05  running  1 of 3 com…"
    assert lines[1] == "[3/3] e2 … · eval · 1:01 min …"
    assert lines[2] == "peak 9,500, baseline 1,000 MB…"
    assert lines[-1].startswith("q leave  p pause  s stop  k s")
    assert all(cell_len(line) <= 30 for line in lines)


@pytest.mark.parametrize("height", range(1, 12))
def test_on_a_low_terminal_the_keys_and_what_goes_on_stay(height: int) -> None:
    frame = attrs.evolve(FRAME, data={**DATA, "asked": ["pause"]}, message="the runner is busy")
    lines = shown(frame, 80, height)
    assert len(lines) == height
    assert lines[-1] == KEYS
    if height >= 3:
        assert lines[1].startswith("[3/3] e2 qwen")
    if height >= 6:
        assert "asked for: a pause, as soon as nothing runs" in lines
        assert lines[-2] == "the runner is busy"


def test_the_log_alone_folds_long_lines() -> None:
    frame = attrs.evolve(FRAME, log=Log(title="log", lines=("x" * 100, "end")), log_only=True)
    lines = shown(frame, 40, 10)
    assert lines[3:8] == ["── log " + "─" * 33, "x" * 40, "x" * 40, "x" * 20, "end"]
    assert "gemma" not in " ".join(lines)


def test_the_entry_whose_turn_it_is_is_in_sight_among_many() -> None:
    entries = [entry(number, f"model-{number}", "pending") for number in range(200)]
    data = {**DATA, "entries": entries, "now": {**DATA["now"], "entry": 120}}
    lines = shown(attrs.evolve(FRAME, data=data))
    assert any(line.startswith("e120") for line in lines)
    assert "… 118 lines above" in lines[3]
    assert "lines below" in "\n".join(lines)


@pytest.mark.parametrize(
    ("focus", "room", "expected"),
    [
        (0, 10, ["a", "b", "c", "d", "e", "f"]),
        (0, 4, ["a", "b", "c", "… 3 lines below"]),
        (5, 4, ["… 3 lines above", "d", "e", "f"]),
        (3, 3, ["… 3 lines above", "d", "… 2 lines below"]),
        (3, 1, ["d"]),
        (3, 0, []),
    ],
)
def test_a_window_over_lines(focus: int, room: int, expected: list[str]) -> None:
    assert [line.plain for line in window([Text(char) for char in "abcdef"], focus, room)] == expected


def test_a_pause_is_told_in_the_place_of_what_goes_on() -> None:
    frame = attrs.evolve(FRAME, data={**DATA, "state": "paused"}, doing="paused for 5 s, asked by nora; `runq unpause`")
    assert shown(frame)[1] == "paused for 5 s, asked by nora; `runq unpause`"


HOSTILE = ("a\nb", "\x1b[2Ja", "a\tb", "[red]a[/red]", "\u202egnp.exe", "模型" * 30)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_or_line_stays_on_its_line(text: str) -> None:
    data = {**DATA, "entries": [entry(2, text, "failed", reason=text)]}
    frame = attrs.evolve(
        FRAME, data=data, now=attrs.evolve(FRAME.now, model=text), log=Log(title=f"log {text}", lines=("fine",))
    )
    lines = [line.plain for line in screen(frame, 60, 24)]
    assert len(lines) == 24 and all(cell_len(line) <= 60 for line in lines)
    assert not any(char in line for line in lines for char in "\n\x1b\u202e")


@given(width=st.integers(1, 200), height=st.integers(1, 80), lines=st.lists(st.text(max_size=300), max_size=40))
def test_no_line_is_too_wide_and_none_is_too_many(width: int, height: int, lines: list[str]) -> None:
    frame = attrs.evolve(FRAME, log=Log(title="log", lines=[clean(line).replace("\n", "") for line in lines]))
    drawn = screen(frame, width, height)
    assert len(drawn) == height
    assert all(cell_len(line.plain) <= max(width, 1) for line in drawn)


# --- curves -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "width", "curve"),
    [
        ([], 5, ""),
        ([100.0], 5, "▁"),
        ([0.0, 800.0], 5, "▁█"),
        ([0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0], 9, "▁▂▃▄▅▆▇██"),
        ([100.0, 130.0, 110.0], 5, "▁▁▁"),  # 30 MB of wavering is no load
        ([0.0, 800.0, 0.0, 0.0], 2, "█▁"),  # a short peak is not lost in its column
    ],
)
def test_a_curve_of_characters(values: list[float], width: int, curve: str) -> None:
    assert sparkline(values, width) == curve


def test_a_curve_between_given_levels() -> None:
    assert sparkline([500.0], 3, low=0.0, high=1000.0) == "▅"
    assert sparkline([500.0], 3, low=0.0, high=1000.0, ascii_only=True) == "+"


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.integers(1, 50))
def test_no_peak_is_lost(values: list[float], shares: int) -> None:
    cut = highest_of_each_share(values, shares)
    assert len(cut) == min(shares, len(values))
    assert max(cut) == max(values)
