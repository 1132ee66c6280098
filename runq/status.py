"""A night at one glance, live or past: the summary, whether its runner is alive, and what runs now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runq import summary
from runq.control.standing import BESIDE, KINDS, standing
from runq.liveness import runner_of, state_of
from runq.logs import one_line
from runq.one_screen import Block, fitted_blocks
from runq.replay import chosen_night
from runq.resume_command import resume_command
from runq.running_step import running_step
from runq.scores import first_metrics, metric_text
from runq.summary_left import left_in_short
from runq.text import clean_lines, duration
from runq_journal.reader import JournalReader

if TYPE_CHECKING:
    from runq_journal.stored import StoredEvent


def status_data(journal: Path, night: str | None) -> dict[str, Any]:
    """The summary of a night with more fields: see `status_of`.

    Raises:
        UsageError: there is no such night.
    """
    with JournalReader.open(journal) as reader:
        return status_of(reader, journal, chosen_night(reader, night))


def status_of(reader: JournalReader, journal: Path, wanted: str) -> dict[str, Any]:
    """The summary of a night with more fields.

    ``runner`` is the runner's process when it is alive (else ``None``), ``now`` the latest transition, ``resume`` the
    command that goes on with the night (``None`` when it is complete), and ``state`` is ``running``, ``paused``,
    ``frozen`` (by Ctrl-Z), ``finished``, ``interrupted`` or ``died``. ``pause`` says since when it pauses and who asked
    (else ``None``), ``asked`` what somebody asked for that is still to come, ``running`` the step that runs
    (`runq.running_step.running_step`).
    """
    data = summary.build(reader, wanted)
    plan = reader.latest_plan(wanted)
    last = _doing(reader, wanted)
    stands = standing(reader.events(wanted, kinds=KINDS))
    runner = runner_of(journal, reader)
    data["state"] = state_of(wanted, data["state"], runner)
    mine = runner is not None and runner.night == wanted
    data["runner"] = {"pid": runner.holder.pid, "since": runner.holder.since} if runner and mine else None
    running = data["state"] == "running"
    if running and (stands.paused or stands.frozen):
        data["state"] = "frozen" if stands.frozen else "paused"
    data["pause"] = {"since": stands.paused, "by": stands.by} if running and stands.paused else None
    data["asked"] = list(stands.asked) if running else []
    data["now"] = (
        None
        if last is None
        else {
            "at": last.at,
            "kind": last.kind,
            "entry": last.entry,
            "step": last.step,
            "attempt": last.attempt,
        }
    )
    data["running"] = running_step(reader, wanted, data["now"], data["entries"]) if mine else None
    if hosts := reader.hosts(wanted):
        data["entries"] = [{**entry, "host": hosts.get(entry["id"])} for entry in data["entries"]]
    data["journal"] = str(journal)
    data["resume"] = resume_command(plan, wanted, journal.parent) if data["complete"] < data["total"] else None
    return data


def _doing(reader: JournalReader, night: str) -> StoredEvent | None:
    """The latest event that says what the night does."""
    last = reader.last_event(night)
    if last is None or last.kind not in BESIDE:
        return last
    after = max(0, last.id - LOOK_BACK)
    found = [event for event in reader.events(night, after=after) if event.kind not in BESIDE]
    return found[-1] if found else last


LOOK_BACK = 200
"""Events: so many warnings and questions in a row are not to be expected, and reading them takes milliseconds."""

MODEL_COLUMN = 24
"""Characters after which a long model id pushes its steps to the right rather than all others' too."""


_DOING = {
    "night.waiting": "waiting for its time",
    "restart.started": "restarting the endpoint",
    "retry.waiting": "waiting before the next try",
    "reset.started": "resetting the endpoint",
    "settle.started": "waiting for memory to be back",
    "cooldown.started": "cooling down",
    "server.started": "starting",
    "server.spawned": "starting",
    "step.started": "running",
    "step.spawned": "running",
}


def status_text(data: Mapping[str, Any], *, height: int | None = None) -> str:
    """The status for people.

    Args:
        data: as `status_of` gives it.
        height: lines of a screen it is to fit; entries that matter less are counted then. ``None``: all are shown.
    """
    lines = [
        f"night {data['night']}  {data['state']}" + (f" (pid {data['runner']['pid']})" if data["runner"] else ""),
        f"{data['complete']} of {data['total']} entries complete, {data['failed']} failed, {data['pending']} pending",
        "",
    ]
    width = model_column(data["entries"])
    blocks = [Block(status=entry["status"], lines=entry_lines(entry, width)) for entry in data["entries"]]
    below = _below(data)
    room = sum(len(block.lines) for block in blocks) if height is None else height - len(lines) - len(below)
    lines += fitted_blocks(blocks, room)
    if height is not None and lines[-1].startswith("…"):
        lines[-1] += "; `runq status --all` shows them"
    return clean_lines("\n".join(lines + below))


def status_line(data: Mapping[str, Any]) -> str:
    """The status in one short line, for a status bar."""
    parts = [f"{data['state']} {data['complete']}/{data['total']}"]
    running = data["running"]
    if running is not None and data["state"] == "running":
        took = duration(running["seconds"])
        took += "" if running["usual_s"] is None else f" of usually {duration(running['usual_s'])}"
        parts += [f"e{running['entry']} {one_line(running['model_id'])}", f"{one_line(running['step'])} {took}"]
        if running["memory_mb"] is not None:
            parts.append(f"{running['memory_mb']:,.0f} MB")
    if data["failed"]:
        parts.append(f"{data['failed']} failed")
    return clean_lines(" · ".join(parts))


def _below(data: Mapping[str, Any]) -> list[str]:
    """What stands below the entries."""
    lines: list[str] = []
    if any(_delta_text(entry).endswith("*") for entry in data["entries"]):
        lines += ["", "* The baseline is not proven: the model delta may hold what an earlier model left behind."]
    lives = data["state"] in ("running", "paused", "frozen")
    if lives and data["now"]:
        lines += ["", f"now: {doing_text(data)}"]
        lines += [f"asked for: {asked_text(what)}" for what in data["asked"]]
    if data["stopped"]:
        lines += ["", one_line(data["stopped"])]
    if data["left"]:
        lines += ["", f"left for another time: {left_in_short(data)}"]
    if data["warnings"]:
        count, last = len(data["warnings"]), one_line(data["warnings"][-1]["message"])
        lines += ["", f"1 warning: {last}" if count == 1 else f"{count} warnings, the last: {last}"]
    if not lives and data["complete"] < data["total"]:
        why = "its runner died; " if data["state"] == "died" else ""
        lines += ["", f"{why}go on with: {data['resume']}"]
    return lines


def model_column(entries: Sequence[Mapping[str, Any]]) -> int:
    """How many characters the models' ids take as a column."""
    return min(max((len(one_line(entry["model_id"])) for entry in entries), default=0), MODEL_COLUMN)


def entry_lines(entry: Mapping[str, Any], width: int) -> list[str]:
    """An entry as one line, below it its first scores and what went wrong.

    Args:
        entry: of a summary.
        width: of the column of models; see `model_column`.
    """
    steps = "  ".join(_step_text(step) for step in entry["steps"]) or entry["status"]
    host = f"  on {one_line(entry['host'])}" if entry.get("host") else ""
    lines = [f"{'e' + str(entry['id']):<3}  {one_line(entry['model_id']):<{width}}  {steps}{_delta_text(entry)}{host}"]
    lines += [f"      {step}: {metric_text(first)}" for step, first in first_metrics(entry["metrics"])]
    return [*lines, f"      {one_line(entry['reason'])}"] if entry["reason"] else lines


def _delta_text(entry: Mapping[str, Any]) -> str:
    """The model delta, marked where it stands on a baseline that is not proven."""
    if entry["model_delta_mb"] is None:
        return ""
    return f"  {entry['model_delta_mb']:+.0f} MB" + ("" if entry["baseline_proven"] else "*")


def _step_text(step: Mapping[str, Any]) -> str:
    seconds = f" {duration(step['seconds'])}" if step["seconds"] else ""
    return f"{step['name']} {step['status']}{seconds}"


_ASKED = {
    "pause": "a pause, as soon as nothing runs",
    "stop": "the end of the night",
    "stop_after_step": "the end of the night, after the running step",
    "stop_after_entry": "the end of the night, after the running entry",
}


def asked_text(what: str) -> str:
    """What somebody asked for that is still to come."""
    return _ASKED.get(what, what)


def doing_text(data: Mapping[str, Any]) -> str:
    """What a running night does now, and since when; a pause before all else."""
    return _pause_text(data) or _now_text(data["now"])


def _pause_text(data: Mapping[str, Any]) -> str:
    if data["state"] == "frozen":
        return "stopped by Ctrl-Z; `fg` in its terminal goes on" + (
            f", or `kill -CONT {data['runner']['pid']}`" if data["runner"] else ""
        )
    if data["pause"] is None:
        return ""
    since = datetime.now(UTC) - datetime.fromisoformat(data["pause"]["since"])
    return f"paused for {duration(max(0.0, since.total_seconds()))}, asked by {data['pause']['by']}; `runq unpause`"


def _now_text(now: Mapping[str, Any]) -> str:
    since = (datetime.now(UTC) - datetime.fromisoformat(now["at"])).total_seconds()
    where = "" if now["entry"] is None else f"e{now['entry']} "
    step = "" if now["step"] is None else f"{now['step']} "
    doing = _DOING.get(now["kind"])
    ago = duration(max(0.0, since))
    return f"{where}{step}{doing}, for {ago}" if doing else f"{where}{step}{now['kind']}, {ago} ago"
