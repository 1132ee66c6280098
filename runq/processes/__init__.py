"""Processes: started in sessions of their own, watched, and ended with all that they ever started.

spawn      start a step or server; what its mark is
watch      wait for its end, its timeout, its stall, or a signal
tree       remember its descendants, and end them all
orphans    end what a dead runner left
interrupts Ctrl-C, SIGTERM, SIGHUP, Ctrl-Z
foreign    code of plugins, which may block for ever
freezing   stop every tree and let it go on, as Ctrl-Z and `fg` do
boot, subreaper, table, ending: what differs by platform, and the one way of ending
"""

from runq.processes.boot import boot_id
from runq.processes.ending import Ended
from runq.processes.foreign import LIMIT_S, foreign, ours
from runq.processes.freezing import freeze, thaw
from runq.processes.interrupts import FakeInterrupts, Interrupted, Interrupts, JobSignals, Stopper
from runq.processes.orphans import Recorded, sweep
from runq.processes.spawn import Child, ExitStatus, SpawnError, helper_mark, spawn, step_mark
from runq.processes.subreaper import become_subreaper
from runq.processes.table import MARK_VARIABLE
from runq.processes.tree import GRACE_S, Tree, end_tree
from runq.processes.watch import End, growth, wait_for_end, watch

__all__ = [
    "GRACE_S",
    "LIMIT_S",
    "MARK_VARIABLE",
    "Child",
    "End",
    "Ended",
    "ExitStatus",
    "FakeInterrupts",
    "Interrupted",
    "Interrupts",
    "JobSignals",
    "Recorded",
    "SpawnError",
    "Stopper",
    "Tree",
    "become_subreaper",
    "boot_id",
    "end_tree",
    "foreign",
    "freeze",
    "growth",
    "helper_mark",
    "ours",
    "spawn",
    "step_mark",
    "sweep",
    "thaw",
    "wait_for_end",
    "watch",
]
