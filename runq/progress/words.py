"""One line of words per transition, for terminals and for logs alike."""

from __future__ import annotations

import attrs

from runq.logs import one_line
from runq.scores import metric_text
from runq.text import duration
from runq_schemas import events
from runq_schemas.events import Event


def words(
    event: Event, *, entry: int | None, step: str | None, names: dict[int, str], with_log: bool = True
) -> str | None:
    """What an event says to somebody who watches; ``None`` when it is not worth a line.

    Args:
        names: the model id of each entry.
        with_log: whether a step that starts says where its log is.
    """
    text = _words(event, entry, step, names)
    if isinstance(event, events.StepStarted) and with_log:
        text = f"{text}, log {event.log}"
    if text is None:
        return None
    prefix = "" if entry is None else f"e{entry} "
    return one_line(prefix + text)


_ASKED = {
    "pause": "pause as soon as nothing runs",
    "unpause": "go on",
    "stop": "stop now",
    "stop_after_step": "stop after the running step",
    "stop_after_entry": "stop after this entry",
    "skip": "skip the rest of this entry",
}


def _words(  # noqa: PLR0912 - one branch per kind of event
    event: Event, entry: int | None, step: str | None, names: dict[int, str]
) -> str | None:
    match event:
        case events.NightResumed():
            return f"night resumed: {_steps(event)}"
        case events.NightStarted():
            return f"night started: {_steps(event)}"
        case events.NightWaiting():
            return f"waiting until {event.until[:16].replace('T', ' ')}"
        case events.NightAsked():
            return f"asked by {event.by}: {_ASKED.get(event.what, event.what)}"
        case events.NightPaused():
            return "paused; `runq unpause` goes on"
        case events.NightUnpaused():
            return f"goes on after a pause of {duration(event.seconds)}"
        case events.NightFrozen():
            return "stopped by Ctrl-Z, with all that runs; `fg` goes on"
        case events.NightContinued():
            return f"goes on after {duration(event.seconds)}"
        case events.NightKeptAwake():
            return f"the machine is kept awake by {event.how}"
        case events.NightSlept():
            return f"the machine slept for {duration(event.seconds)}"
        case events.EntryStarted():
            return f"{names.get(entry or 0, '')}"
        case events.ResetFinished():
            return _reset(event)
        case events.SettleFinished():
            return _settled(event)
        case events.CooldownStarted():
            return f"cooldown {duration(event.seconds)}"
        case events.StepStarted():
            return f"{step} started (timeout {duration(event.timeout_s)})"
        case events.StepFinished():
            return _finished(event, step or "")
        case events.StepSkipped():
            return f"{step} {'' if event.gave_up else 'skipped: '}{event.reason}"
        case events.StepDeferred():
            return f"{step} left for another time: {event.reason}"
        case events.RetryWaiting():
            return f"{step} is tried again in {duration(event.seconds)} (retry {event.number} of {event.of})"
        case events.EndpointDead():
            return f"{step}: {event.endpoint} does not answer ({event.failures} times): {event.reason}"
        case events.RestartStarted():
            return "restarting the endpoint"
        case events.RestartFinished():
            code = f"exit code {event.exit_code}" if event.exit_code is not None else event.signal or "not started"
            why = f" - {event.reason}" if event.reason else ""
            return f"restart command ended: {code}, {duration(event.seconds)}{why}"
        case events.ServerSpawned():
            return f"server started (pid {event.pid})"
        case events.ServerFinished():
            how = "stopped" if event.stopped else f"ended: {event.reason}"
            return f"server {how}" + (f"; could not end {list(event.survivors)}" if event.survivors else "")
        case events.Warned():
            return f"warning: {event.message}" + (f" - {event.remedy}" if event.remedy else "")
        case events.HostJoined():
            return f"{event.host} takes part ({event.slots} at a time)"
        case events.HostLost():
            return f"{event.host} cannot be reached: {event.reason}"
        case events.LeaseGranted():
            return f"goes to {event.host}"
        case events.LeaseEnded():
            return None if event.how == "done" else f"taken back from {event.host}: {event.reason}"
        case events.DeliveredLate():
            return f"{event.name} of {event.host} came after its lease had ended"
        case events.NightInterrupted():
            return f"night interrupted: {event.reason}"
        case events.CheckStarted():
            return f"check started: {len(event.models)} model{'s' * (len(event.models) != 1)}"
        case events.CheckedModel():
            return _checked(event)
        case events.CheckFinished():
            return (
                f"check interrupted: {event.interrupted}"
                if event.interrupted
                else f"check finished: {event.failed} failed"
            )
        case events.NightFinished():
            early = f"; {event.stopped}" if event.stopped else ""
            return f"night finished: {event.complete} of {event.total} entries complete{early}"
        case _:
            return None


def _steps(event: events.NightStarted | events.NightResumed) -> str:
    count = sum(1 for entry in event.entries for step in entry.steps if step.run)
    return f"{len(event.entries)} entries, {count} steps to run"


def _reset(event: events.ResetFinished) -> str:
    before = f", was loaded: {', '.join(event.loaded_before)}" if event.loaded_before else ""
    why = f" ({event.reason})" if event.reason else ""
    return f"reset {event.backend}: {event.verdict}{why}{before}, {duration(event.seconds)}"


def _settled(event: events.SettleFinished) -> str:
    figures = ", ".join(f"{probe} {mb:.0f} MB" for probe, mb in event.baseline_mb.items())
    proof = "proven" if event.proven else "not proven"
    return f"memory {event.status} after {duration(event.waited_s)}: {figures or 'no figure'} ({proof})"


def _finished(event: events.StepFinished, step: str) -> str:
    parts = [f"{step} {event.status}"]
    if event.seconds is not None:
        parts.append(f"in {duration(event.seconds)}")
    if event.reason:
        parts.append(f"- {event.reason}")
    if event.metrics:
        parts.append(f"({metric_text(attrs.asdict(event.metrics[0]))})")
    for probe, mb in event.model_delta_mb.items():
        mark = "" if event.baseline_proven else " (baseline not proven)"
        parts.append(f"[{probe} {round(mb):+d} MB{mark}]")
    if event.survivors:
        parts.append(f"(could not end {list(event.survivors)})")
    return " ".join(parts)


def _checked(event: events.CheckedModel) -> str:
    delta = "" if event.ram_delta_mb is None else f" [{round(event.ram_delta_mb):+d} MB]"
    problem = f" - {event.problem}" if event.problem else ""
    return f"{event.model}: {event.verdict} (answer {event.status}){delta}{problem}"
