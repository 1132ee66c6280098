"""Each law holds for nights as runners write them, and breaks for a journal that no runner may write."""

import sqlite3
from datetime import timedelta

import pytest

from bench import laws
from runq_journal import Sample
from runq_journal.schema import GUARDS
from runq_schemas import events as ev

NIGHT = "2026-10-01_220000"


# --- sound nights -----------------------------------------------------------------------------------------------


def test_every_law_holds_for_a_night_without_incident(tell, holds):
    tell.good(0, 1, 2)
    assert holds() == {}


def test_every_law_holds_for_a_night_whose_runner_died_twice(tell, holds):
    tell.open(0, 1)
    tell.turn(0)
    tell.start(0, "eval")
    tell.die(0)
    tell.open(0, 1, resumed=True)
    tell.turn(0)
    tell.step(0, "eval", attempt=2)
    tell.say(ev.ResetStarted(backend="lms", before_step="judge"), 0)
    tell.die(None)
    tell.open(0, 1, resumed=True, why="the step before it ran again since")
    tell.turn(0)
    tell.step(0, "judge")
    tell.leave(0)
    tell.turn(1)
    tell.step(1, "eval", "failed")
    tell.say(ev.StepSkipped(reason="eval: it exited with 3"), 1, "judge")
    tell.leave(1, "incomplete")
    tell.end(2, 1)
    assert holds() == {}


def test_every_law_holds_for_a_step_that_is_asked_for_again(tell, holds):
    tell.good()
    tell.runner()
    tell.open(resumed=True, why="asked for")
    tell.turn()
    tell.step(0, "eval", attempt=2)
    tell.step(0, "judge", attempt=2)
    tell.leave()
    tell.end()
    assert holds() == {}


def test_every_law_holds_where_phases_share_a_baseline(tell, holds):
    tell.open(0, 1, order="phases")
    for entry in (0, 1):
        tell.turn(entry)
        tell.step(entry, "eval")
        tell.leave(entry, "waiting")
    for entry in (0, 1):
        tell.say(ev.EntryStarted(), entry)
        tell.step(entry, "judge")
        tell.leave(entry)
    tell.end(2, 2)
    assert holds() == {}


def test_every_law_holds_for_what_a_deadline_leaves(tell, holds):
    tell.open(0, 1)
    tell.turn(0)
    tell.step(0, "eval")
    tell.step(0, "judge")
    tell.leave(0)
    left = ev.StepDeferred(reason="too late", until="2026-10-02T07:00:00+02:00", left_s=10.0)
    tell.say(left, 1, "eval")
    tell.say(left, 1, "judge")
    tell.end(2, 1)
    assert holds() == {}


def test_every_law_holds_for_two_machines_side_by_side(tell, holds):
    tell.open(0, 1)
    leases = {host: granted(tell, entry, host) for entry, host in enumerate(("one", "two"))}
    seq = dict.fromkeys(leases, 0)

    def both(told, step=None, attempt=None):
        for entry, (host, lease) in enumerate(leases.items()):
            seq[host] += 1
            origin = {
                "host": host,
                "lease": lease,
                "outbox": host,
                "seq": seq[host],
                "at": tell.clock.now().isoformat(),
            }
            tell.say(ev.UnknownEvent(name=told.kind, data={**ev.to_data(told), "origin": origin}), entry, step, attempt)

    both(ev.EntryStarted())
    both(ev.ResetStarted(backend="none", before_step="eval"))
    both(ev.ResetFinished(backend="none", verdict="verified", loaded_before=(), loaded_after=(), seconds=1.0))
    both(ev.SettleStarted(reference_mb={}))
    both(ev.SettleFinished(status="settled", proven=True, waited_s=0.0, baseline_mb={}, probes=()))
    for step in ("eval", "judge"):
        parts = {"argv": ("x",), "log": "x", "bundle": "x", "timeout_s": 1.0, "stall_timeout_s": None}
        both(ev.StepStarted(**parts, identity="1:x", identity_parts={}), step, 1)
        both(ev.StepSpawned(pid=1, created_at=1.0, boot_id="b"), step, 1)
        tell.clock.tick(10)
        both(ev.StepFinished(status="ok", exit_code=0), step, 1)
    both(ev.EntryFinished(status="complete"))
    for entry, (host, lease) in enumerate(leases.items()):
        end_of_lease(tell, lease, entry, host)
    tell.end(2, 2)
    assert holds() == {}


# --- what no runner may write -----------------------------------------------------------------------------------


def no_end(tell):
    tell.open()
    tell.turn()
    tell.start(0, "eval")


def two_ends(tell):
    tell.open()
    tell.turn()
    tell.step()
    tell.finish(0, "eval", seconds=1.0)


def end_without_start(tell):
    tell.open()
    tell.turn()
    tell.finish(0, "eval", seconds=1.0)


def the_same_attempt_twice(tell):
    tell.open()
    tell.turn()
    tell.step(0, "eval", "failed")
    tell.step(0, "eval")


def a_server_without_end(tell):
    tell.open()
    tell.turn()
    tell.say(ev.ServerStarted(argv=("x",), log="x", model="m"), 0, "server", 1)


def a_process_after_the_end(tell):
    tell.open()
    tell.turn()
    tell.step()
    tell.say(ev.StepSpawned(pid=1, created_at=1.0, boot_id="b"), 0, "eval", 1)


def two_processes(tell):
    tell.open()
    tell.turn()
    tell.start(0, "eval")
    tell.say(ev.StepSpawned(pid=1, created_at=1.0, boot_id="b"), 0, "eval", 1)
    tell.finish(0, "eval", seconds=1.0)


def a_process_that_nobody_recorded(tell):
    tell.open()
    tell.turn()
    started = ev.StepStarted(
        argv=("x",), log="x", bundle="x", timeout_s=1.0, stall_timeout_s=None, identity="1:x", identity_parts={}
    )
    tell.say(started, 0, "eval", 1)
    tell.finish(0, "eval", "failed", exit_code=3, seconds=1.0)


def attempts_that_leap(tell):
    tell.open()
    tell.turn()
    tell.step(0, "eval", attempt=2)


def ok_and_once_more(tell):
    tell.open()
    tell.turn()
    tell.step()
    tell.step(attempt=2)


def ok_and_run_by_a_plan_that_does_not_say_so(tell):
    tell.good()
    tell.runner()
    tell.open(resumed=True, run=False, why="done")
    tell.turn()
    tell.step(attempt=2)


def ok_and_run_for_a_reason_that_is_not_true(tell):
    tell.good()
    tell.runner()
    tell.open(resumed=True, why="failed in attempt 1")
    tell.turn()
    tell.step(attempt=2)


def a_judge_of_nothing(tell):
    tell.open()
    tell.turn()
    tell.step(0, "eval", "failed")
    tell.step(0, "judge")


def two_nights(tell):
    tell.open()
    tell.runner()
    tell.open()


def two_entries(tell):
    tell.open(0, 1)
    tell.turn(0)
    tell.turn(1)


def an_entry_without_a_turn(tell):
    tell.open()
    tell.leave()


def two_steps(tell):
    tell.open()
    tell.turn()
    tell.start(0, "eval")
    tell.finish(0, "eval", seconds=1.0)
    tell.start(0, "judge")
    tell.start(0, "plot")


def a_reset_beside_a_step(tell):
    tell.open()
    tell.turn()
    tell.start(0, "eval")
    tell.say(ev.ResetStarted(backend="lms", before_step="eval"), 0)


def an_end_in_mid_entry(tell):
    tell.open()
    tell.turn()
    tell.end(1, 0)


def a_night_without_end(tell):
    tell.open()


def no_baseline(tell):
    tell.open()
    tell.say(ev.EntryStarted(), 0)
    tell.step()


def a_baseline_without_a_reset(tell):
    tell.open()
    tell.say(ev.EntryStarted(), 0)
    tell.say(ev.SettleFinished(status="settled", proven=True, waited_s=0.0, baseline_mb={}, probes=()), 0)
    tell.step()


def another_writer(tell):
    tell.open()
    tell.turn()
    tell.runner()
    tell.step()


def an_entry_that_was_forgotten(tell):
    tell.open(0, 1)
    tell.turn(0)
    tell.step(0, "eval")
    tell.step(0, "judge")
    tell.leave(0)
    tell.end(2, 1)


def an_interrupted_step_that_nobody_ran_again(tell):
    tell.open()
    tell.turn()
    tell.step(0, "eval", "interrupted")
    tell.leave(0, "interrupted")
    tell.end(1, 0)


def granted(tell, entry=0, host="one", slot=0):
    return tell.say(ev.LeaseGranted(host=host, until="2026-10-02T00:00:00+00:00", lease_s=300.0, slot=slot), entry)


def end_of_lease(tell, lease, entry=0, host="one"):
    tell.say(ev.LeaseEnded(lease=lease, host=host, how="done"), entry)


def from_a_machine(tell, lease, seq, event, entry=0, host="one"):
    at = tell.clock.now().isoformat()
    origin = {"host": host, "lease": lease, "outbox": f"outbox-{host}", "seq": seq, "at": at}
    tell.say(ev.UnknownEvent(name=event.kind, data={**ev.to_data(event), "origin": origin}), entry)


def an_entry_of_two_machines(tell):
    tell.open()
    granted(tell, host="one")
    granted(tell, host="two")


def a_place_with_two_entries(tell):
    tell.open(0, 1)
    granted(tell, 0)
    granted(tell, 1)


def a_lease_that_was_over_is_renewed(tell):
    tell.open()
    lease = granted(tell)
    end_of_lease(tell, lease)
    tell.say(ev.LeaseRenewed(lease=lease, host="one", until="2026-10-02T00:00:00+00:00"), 0)


def a_word_under_a_lease_that_is_over(tell):
    tell.open()
    lease = granted(tell)
    end_of_lease(tell, lease)
    from_a_machine(tell, lease, 1, ev.EntryStarted())


def a_word_under_the_lease_of_another_entry(tell):
    tell.open(0, 1)
    from_a_machine(tell, granted(tell, 1), 1, ev.EntryStarted(), entry=0)


def a_word_that_comes_twice(tell):
    tell.open()
    lease = granted(tell)
    from_a_machine(tell, lease, 1, ev.EntryStarted())
    from_a_machine(tell, lease, 1, ev.EntryFinished(status="complete"))


def a_wrong_count(tell):
    tell.open()
    tell.turn()
    tell.step(0, "eval")
    tell.step(0, "judge")
    tell.leave()
    tell.end(1, 0)


MACHINES = "an entry is one machines at a time"

BROKEN = (
    ("every start has one end", no_end, "attempt 1 of e0 eval has no end"),
    ("every start has one end", two_ends, "attempt 1 of e0 eval has ended before"),
    ("every start has one end", end_without_start, "attempt 1 of e0 eval was never started"),
    ("every start has one end", the_same_attempt_twice, "attempt 1 of e0 eval was started before"),
    ("every start has one end", a_server_without_end, "attempt 1 of e0 server has no end"),
    ("a process is recorded between start and end", a_process_after_the_end, "has a process and does not run"),
    ("a process is recorded between start and end", two_processes, "has a second process"),
    ("a process is recorded between start and end", a_process_that_nobody_recorded, "never recorded"),
    ("attempts count up from one", attempts_that_leap, "should be attempt 1"),
    ("what is ok does not run again", ok_and_once_more, "started although it was ok"),
    ("what is ok does not run again", ok_and_run_by_a_plan_that_does_not_say_so, "the plan does not run it"),
    ("what is ok does not run again", ok_and_run_for_a_reason_that_is_not_true, "says: failed in attempt 1"),
    ("a step builds on an ok one", a_judge_of_nothing, "e0 judge started although eval is not ok"),
    ("one thing at a time", two_nights, f"night.started while the night {NIGHT} has no end"),
    ("one thing at a time", two_entries, "e1 started while e0 has its turn"),
    ("one thing at a time", an_entry_without_a_turn, "e0 ended without a start"),
    ("one thing at a time", two_steps, "step.started while judge of e0 runs"),
    ("one thing at a time", a_reset_beside_a_step, "reset.started while eval of e0 runs"),
    ("one thing at a time", an_end_in_mid_entry, "night.finished while e0 has no end"),
    ("one thing at a time", a_night_without_end, f"the night {NIGHT} has no end"),
    ("a baseline comes first", no_baseline, "e0 eval started without a reset and a baseline"),
    ("a baseline comes first", a_baseline_without_a_reset, "e0 eval started without a reset and a baseline"),
    ("one writer at a time", another_writer, f"another runner wrote while that of the night {NIGHT} was at work"),
    (MACHINES, an_entry_of_two_machines, "e0 is handed out while lease 2 of it is open"),
    (MACHINES, a_place_with_two_entries, "one gets e1 while it has e0"),
    (MACHINES, a_lease_that_was_over_is_renewed, "lease.renewed of lease 2, which is not open"),
    (MACHINES, a_word_under_a_lease_that_is_over, "entry.started of e0 under lease 2, which is not open for it"),
    (MACHINES, a_word_under_the_lease_of_another_entry, "entry.started of e0 under lease 2, which is not open for it"),
    ("each machines words come once and in order", a_word_that_comes_twice, "event 1 of one comes behind a later one"),
    ("nothing is lost", an_entry_that_was_forgotten, "the night finished, and e1 stands at nothing, nothing"),
    ("nothing is lost", an_interrupted_step_that_nobody_ran_again, "e0 stands at interrupted, nothing"),
    ("nothing is lost", a_wrong_count, "0 entries are counted as complete, 1 are"),
)


@pytest.mark.parametrize(("law", "night", "how"), BROKEN, ids=[night.__name__ for _, night, _ in BROKEN])
def test_a_law_breaks(tell, holds, law, night, how):
    night(tell)
    assert any(how in breach for breach in holds().get(law, [])), holds()


def test_every_law_over_the_events_has_a_night_that_breaks_it():
    told_below = {"the chain is whole", "samples lie within a step"}
    assert {law for law, _, _ in BROKEN} | told_below == set(laws.LAWS)


def test_an_edited_event_breaks_the_chain(tell, holds):
    tell.good()
    conn = sqlite3.connect(tell.path)
    for name in GUARDS:
        conn.execute(f"DROP TRIGGER {name}")
    conn.execute("UPDATE event SET data = replace(data, 'ok', 'no') WHERE kind = 'step.finished'")
    for sql in GUARDS.values():
        conn.execute(sql)
    conn.commit()
    conn.close()
    assert "was edited" in holds()["the chain is whole"][0]


@pytest.mark.parametrize(("late_s", "sound"), [(-5.0, True), (1.0, False), (-11.0, False)])
def test_a_reading_outside_its_step_is_found(tell, holds, late_s, sound):
    tell.open()
    tell.turn()
    tell.step()  # ten seconds, and the clock stands at its end
    at = tell.clock.now() + timedelta(seconds=late_s)
    tell.journal.add_samples([Sample(night=NIGHT, at=at, entry=0, step="eval", probe="system", mb=1.0)])
    tell.step(0, "judge")
    tell.leave()
    tell.end()
    assert holds() == ({} if sound else {"samples lie within a step": holds()["samples lie within a step"]})


def test_a_reading_of_a_step_that_never_ran_is_found(tell, holds):
    tell.good()
    tell.journal.add_samples([Sample(night=NIGHT, at=tell.clock.now(), entry=0, step="plot", probe="p", mb=1.0)])
    assert "no attempt of e0 plot" in holds()["samples lie within a step"][0]


def test_a_clock_that_is_set_while_a_step_runs_is_no_breach(tell, holds):
    tell.open()
    tell.turn()
    tell.start(0, "eval")
    tell.clock.start += timedelta(hours=1)  # the wall clock only
    at = tell.clock.now() - timedelta(hours=2)
    tell.journal.add_samples([Sample(night=NIGHT, at=at, entry=0, step="eval", probe="system", mb=1.0)])
    tell.finish(0, "eval", seconds=10.0)
    tell.step(0, "judge")
    tell.leave()
    tell.end()
    assert holds() == {}
