"""A frame as lines of any width and height. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len, chop_cells
from rich.text import Text

from runq.logs import one_line
from runq.progress.living import STYLES, living_line
from runq.progress.sparkline import sparkline
from runq.status import asked_text, entry_lines, model_column
from runq.watching.frame import Frame, Level, Log

SHORTEST_CURVE = 8
"""Columns below which a curve of memory is left out rather than drawn."""

FEWEST_LINES = 3
"""Lines below which a part of the screen is left out: its title and two more."""

_STATES = {"running": "green", "paused": "yellow", "frozen": "yellow", "finished": "green"}


def screen(frame: Frame, width: int, height: int, *, ascii_only: bool = False) -> list[Text]:
    """The lines of a frame, none wider than ``width`` columns, and as many as ``height``.

    On a low terminal the parts give way in this order: what happened, the entries, the log, then what was asked for.
    The head, what goes on, memory and the keys stay.
    """
    top = [_head(frame), _now(frame, width, ascii_only)]
    if frame.level is not None:
        top.append(_level(frame.level, width, ascii_only))
    extra = [Text(f"asked for: {asked_text(what)}", style="yellow") for what in frame.data["asked"]]
    bottom = ([Text(frame.message, style="yellow")] if frame.message else []) + [_keys(frame)]
    room = height - len(top) - len(bottom)
    extra = extra[: max(room, 0)]
    body = _body(frame, width, room - len(extra), "-" if ascii_only else "─")
    padding = [Text()] * max(room - len(extra) - len(body), 0)
    lines = [*top, *extra, *body, *padding, *bottom]
    # On the lowest terminals the keys are what one cannot guess: they are kept, and what goes on above them.
    lines = lines if len(lines) <= height else [*lines[: height - 1], lines[-1]]
    return [_cut(line, width) for line in lines[-height:]]


def _head(frame: Frame) -> Text:
    data = frame.data
    state = "died" if data["state"] == "died" else data["state"]
    pid = f" (pid {data['runner']['pid']})" if data["runner"] else ""
    counts = f"{data['complete']} of {data['total']} complete"
    counts += f", {data['failed']} failed" if data["failed"] else ""
    return Text.assemble(
        f"{frame.at:%H:%M:%S}  ",
        (state, f"bold {_STATES.get(state, 'red')}"),
        f"  {counts}  night {data['night']}{pid}",
    )


def _now(frame: Frame, width: int, ascii_only: bool) -> Text:
    # A curve of its own stands below.
    if frame.now is not None and frame.data["state"] == "running":
        return living_line(frame.now, width, ascii_only=ascii_only)
    return Text(one_line(frame.doing), style="bold")


def _level(level: Level, width: int, ascii_only: bool) -> Text:
    figures = [f"peak {level.peak_mb:,.0f}"]
    if level.baseline_mb is not None:
        figures.append(f"baseline {level.baseline_mb:,.0f}{'' if level.proven else '*'}")
    tail = f" {', '.join(figures)} MB" + (f" ({level.probe})" if level.probe else "")
    if level.baseline_mb is not None and not level.proven:
        tail += " * not proven"
    columns = width - cell_len(tail) - 1
    if columns < SHORTEST_CURVE:
        return Text(tail.strip())
    curve = sparkline(level.curve, columns, low=level.baseline_mb, ascii_only=ascii_only)
    return Text.assemble((curve, "cyan"), tail)


def _keys(frame: Frame) -> Text:
    return Text(frame.keys, style="bold yellow" if frame.asks else "dim")


def _body(frame: Frame, width: int, room: int, rule: str) -> list[Text]:
    """The entries, what happened, and the log, in so many lines."""
    log = frame.log
    if frame.log_only and log is not None:
        return _log(log, width, room, rule, whole=True)
    if room < FEWEST_LINES:
        return _log(log, width, room, rule) if log is not None else []
    entries, focus = _entries(frame)
    needs = (1 + len(frame.happened) if frame.happened else 0, 1 + len(log.lines) if log is not None else 0)
    # A third each at least where all need it; what one part does not need is the others'.
    shown = window(entries, focus, max(room // 3, FEWEST_LINES, room - sum(needs)))
    room -= len(shown)
    for_log = min(needs[1], room - min(needs[0], room // 3))
    happened = _happened(frame, width, room - for_log, rule)
    room -= len(happened)
    return [*shown, *happened, *(_log(log, width, room, rule) if log is not None else [])]


def _entries(frame: Frame) -> tuple[list[Text], int]:
    """Every entry's lines, and the number of the line that is to be seen: that of the entry whose turn it is."""
    entries: Sequence[Mapping[str, Any]] = frame.data["entries"]
    turn = (frame.data["now"] or {}).get("entry")
    column, focus = model_column(entries), 0
    lines: list[Text] = []
    for entry in entries:
        if entry["id"] == turn:
            focus = len(lines)
        style = STYLES.get(entry["status"], "")
        lines += [Text(line, style=style) for line in entry_lines(entry, column)]
    return lines, focus


def window(lines: Sequence[Text], focus: int, room: int) -> list[Text]:
    """So many of the lines around one of them; the first or last says how many are not shown."""
    if len(lines) <= room:
        return list(lines)
    if room <= 0:
        return []
    first = min(max(focus - room // 2, 0), len(lines) - room)
    shown = list(lines[first : first + room])
    if first > 0 and room > 1:
        shown[0] = Text(f"… {first + 1} lines above", style="dim")
    if (below := len(lines) - first - room) > 0 and room > 2:
        shown[-1] = Text(f"… {below + 1} lines below", style="dim")
    return shown


def _happened(frame: Frame, width: int, room: int, rule: str) -> list[Text]:
    if room < FEWEST_LINES or not frame.happened:
        return []
    rows = frame.happened[-(room - 1) :]
    return [
        _title("what happened", width, rule),
        *(Text.assemble((f"{at:%H:%M:%S} ", "dim"), text) for at, text in rows),
    ]


def _log(log: Log, width: int, room: int, rule: str, *, whole: bool = False) -> list[Text]:
    """The end of the log; with ``whole`` long lines are folded rather than cut."""
    if room < 2:
        return []
    lines = [line.expandtabs(8) for line in log.lines]
    if whole:
        lines = [part for line in lines for part in (chop_cells(line, width) or [""])]
    return [_title(one_line(log.title), width, rule), *(Text(line) for line in lines[-(room - 1) :])]


def _title(text: str, width: int, rule: str) -> Text:
    """A part's title as a rule across the screen."""
    return Text(f"{rule * 2} {text} ".ljust(width, rule), style="dim")


def _cut(line: Text, width: int) -> Text:
    line = line.copy()
    line.no_wrap = True
    line.truncate(max(width, 1), overflow="ellipsis")
    return line
