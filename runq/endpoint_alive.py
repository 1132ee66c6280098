"""An endpoint that is up but dead: found out before a step, restarted once, and all of it written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runq.heartbeat import ask_before
from runq.paths import private_folder
from runq.plugin import StartsServer
from runq_schemas.events import EndpointDead, RestartFinished, RestartStarted

if TYPE_CHECKING:
    from runq.night_context import NightContext
    from runq.prepared import PreparedEntry

RESTART_LIMIT_S = 300.0
"""Seconds a restart command may take. A service that loads its model before it reports success needs minutes; a command
that asks a question needs for ever."""


def why_dead(context: NightContext, prepared: PreparedEntry, step: str) -> str:
    """Why the endpoint of a step cannot serve it now; empty when it can, or when nobody asked for a heartbeat.

    Raises:
        Interrupted: a signal ends the night.
    """
    beat = prepared.beats.get(step)
    if beat is None:
        return ""
    answer = ask_before(beat, sleep=context.interrupts.sleep, clock=context.clock)
    context.interrupts.check()
    if answer.verdict == "refused":
        tell_refused(context, prepared, step, answer.reason)
    if answer.verdict != "dead":
        return ""
    tell_dead(context, prepared, step, answer.reason, failures=beat.failures)
    return answer.reason or "it does not answer"


def tell_dead(context: NightContext, prepared: PreparedEntry, step: str, reason: str, *, failures: int) -> None:
    """Record that an endpoint does not answer."""
    beat = prepared.beats[step]
    event = EndpointDead(endpoint=beat.endpoint, model=beat.model.id, reason=reason, failures=failures)
    context.recorder.event(event, entry=prepared.entry.id, step=step)


def tell_refused(context: NightContext, prepared: PreparedEntry, step: str, reason: str) -> None:
    """Warn of a heartbeat that the endpoint refuses, once for each step: it proves nothing."""
    where = (prepared.entry.id, step)
    if where not in context.warned_refused:
        context.warned_refused.add(where)
        context.recorder.warn(
            f"the heartbeat was refused: {reason}",
            "correct `url` or `model` of `heartbeat`; until then it proves nothing",
            entry=prepared.entry.id,
            step=step,
        )


def can_restart(context: NightContext, prepared: PreparedEntry) -> bool:
    """Whether the endpoint of an entry may be restarted: at most once in a night's run, and only where there is a way.

    A server that runq itself starts is ended and started again; any other needs a `restart_command`.
    """
    way = bool(prepared.restart) or isinstance(prepared.reset, StartsServer)
    return way and prepared.entry.id not in context.restarted


def restart(context: NightContext, prepared: PreparedEntry, step: str) -> None:
    """Restart the endpoint of an entry. Whether that helped is for the next heartbeat to say.

    What the command leaves running is left alone when it ends in time: that is the server. Past its limit, or when the
    night is interrupted, it and all that it started is ended.

    Raises:
        Interrupted: a signal ends the night.
        JournalError: the journal cannot be written.
    """
    from runq.processes import SpawnError, Tree, spawn, watch

    entry = prepared.entry.id
    context.restarted.add(entry)
    if not prepared.restart:
        context.servers.stop_all()
        return
    where: dict[str, Any] = {"entry": entry, "step": step}
    log = context.log_path(entry, "restart", context.restart_number(entry))
    private_folder(log.parent)
    event = context.recorder.event(RestartStarted(argv=prepared.restart, log=str(log)), **where)
    started = context.clock()
    # Not the mark of a step: what it starts outlives the night, and no later start may take that for an orphan.
    env = context.helper_env(prepared, event)
    try:
        child = spawn(prepared.restart, cwd=prepared.entry.base_dir, env=env, log_path=log)
    except SpawnError as error:
        context.recorder.event(RestartFinished(seconds=0.0, reason=f"{error.message}. {error.remedy}"), **where)
        return
    tree, why = Tree(child), "interrupted"

    def tick(elapsed: float) -> None:
        tree.observe()
        context.recorder.tick(entry=entry, step="restart", seconds=elapsed, memory_mb=None)

    try:
        why = watch(
            child,
            timeout_s=RESTART_LIMIT_S,
            stall_timeout_s=None,
            activity=lambda: None,
            every_s=1.0,
            on_tick=tick,
            clock=context.clock,
            interrupts=context.interrupts,
        )
    finally:
        if why != "exited":
            context.end_tree(tree)
    exit_code, signal = child.status()
    reason = f"it ran past its limit of {RESTART_LIMIT_S:g} s" if why == "timeout" else ""
    if why == "interrupted":
        reason = "the night was interrupted"
    context.recorder.event(
        RestartFinished(exit_code=exit_code, signal=signal, seconds=round(context.clock() - started, 3), reason=reason),
        **where,
    )
    context.interrupts.check()
