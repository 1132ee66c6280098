"""What `runq watch` reads of a night, while it is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from runq.locks import night_locks, own_holder
from runq.progress.living import Now
from runq.watching.following import KEPT, Following
from runq.watching.frame import Level
from runq.watching.plain import print_json, print_lines
from runq.watching.typed import typed
from runq_journal import JournalReader, Sample
from runq_schemas import events as ev

Follow = Callable[..., Following]


@contextmanager
def running(told: Any) -> Iterator[None]:
    """Hold the journal's lock, as a runner does."""
    with night_locks(told.path, [], own_holder(since="", queue="/q.yaml", journal=told.path)):
        yield


@pytest.fixture
def follow(told: Any) -> Iterator[Follow]:
    """Follows the told night; the clocks stand where its last event is."""
    readers = []

    def start(**usual: float) -> Following:
        readers.append(JournalReader.open(told.path))
        known = {(step, "qwen", "packs/office.yaml"): seconds for step, seconds in usual.items()}
        return Following(
            readers[-1],
            told.path,
            told.night,
            known,
            lambda: told.start + timedelta(seconds=told.seconds),
            lambda: told.seconds,
        )

    yield start
    for reader in readers:
        reader.close()


def begin(told: Any) -> None:
    """Two entries: the first is through, the second's eval runs."""
    told.plan("gemma", "qwen")
    told.say(ev.EntryStarted(), 0)
    told.started(0, "eval")
    told.finished(0, "eval")
    told.say(ev.EntryStarted(), 1)
    told.settled(1, 4000.0, proven=False)
    told.started(1, "eval")


def sampled(told: Any, *figures: float, step: str = "eval", probe: str = "system", later: float = 0.0) -> None:
    """A reading a second from now on."""
    at = told.start + timedelta(seconds=told.seconds + later)
    told.journal.add_samples(
        [
            Sample(night=told.night, at=at + timedelta(seconds=number), entry=1, step=step, probe=probe, mb=mb)
            for number, mb in enumerate(figures)
        ]
    )


def test_what_goes_on(told: Any, follow: Follow) -> None:
    begin(told)
    with running(told):
        following = follow(eval=3600.0)
        following.look()
        told.seconds += 61
        now = following.now(None)
    assert now == Now(
        entry=1, model="qwen", place=2, of=2, step="eval", seconds=61.0, timeout_s=14400.0, usual_s=3600.0
    )
    assert following.doing().startswith("e1 eval running, for ")
    assert not following.over


def test_the_runners_word_on_it_comes_first(told: Any, follow: Follow) -> None:
    begin(told)
    with running(told):
        following = follow()
        following.look()
        now = following.now({"entry": 1, "step": "eval", "seconds": 7.0, "memory_mb": 9000.0})
        assert now is not None and (now.seconds, now.memory_mb) == (7.0, 9000.0)
        stale = following.now({"entry": 0, "step": "eval", "seconds": 7.0, "memory_mb": 1.0})
        assert stale is not None and stale.seconds == 0.0, "a word on another step says nothing of this one"


def test_settling_is_told_with_its_memory(told: Any, follow: Follow) -> None:
    begin(told)
    told.finished(1, "eval")
    told.say(ev.SettleStarted(reference_mb={}), 1)
    with running(told):
        following = follow()
        following.look()
        now = following.now({"entry": 1, "step": "settle", "seconds": 4.0, "memory_mb": 5000.0})
    assert now == Now(entry=1, model="qwen", place=2, of=2, step="settle", seconds=4.0, memory_mb=5000.0)
    assert following.level() == Level(
        probe="", mb=5000.0, peak_mb=5000.0, curve=[5000.0], baseline_mb=None, proven=False
    )


def test_memory_is_the_journals_and_then_the_runners(told: Any, follow: Follow) -> None:
    begin(told)
    with running(told):
        following = follow()
        following.look()
        assert following.level() is None
        for mb in (4100.0, 6000.0):
            told.seconds += 1
            following.now({"entry": 1, "step": "eval", "seconds": 1.0, "memory_mb": mb})
        assert following.level() == Level(
            probe="system", mb=6000.0, peak_mb=6000.0, curve=[4100.0, 6000.0], baseline_mb=4000.0, proven=False
        )
        # The journal's batch has the same seconds, and more: the runner's figures of that time give way.
        sampled(told, 4100.0, 9000.0, 6000.0, later=-2.0)
        sampled(told, 1.0, 2.0, probe="nvidia", later=-2.0)
        following.look()
        assert following.level() == Level(
            probe="system", mb=6000.0, peak_mb=9000.0, curve=[4100.0, 9000.0, 6000.0], baseline_mb=4000.0, proven=False
        )
        told.seconds += 1
        following.now({"entry": 1, "step": "eval", "seconds": 4.0, "memory_mb": 7000.0})
        level = following.level()
        assert level is not None and level.curve == [4100.0, 9000.0, 6000.0, 7000.0]


def test_an_attempt_begins_its_curve_anew(told: Any, follow: Follow) -> None:
    begin(told)
    sampled(told, 9000.0)
    told.finished(1, "eval", "failed")
    told.seconds += 10
    told.started(1, "eval", attempt=2)
    sampled(told, 5000.0)
    with running(told):
        following = follow()
        following.look()
        level = following.level()
    assert level is not None and level.curve == [5000.0]


def test_the_log_of_the_step_that_runs_or_ran_last(told: Any, follow: Follow) -> None:
    begin(told)
    log = told.runs / f"{told.night}_queue" / "logs" / "e1-eval-1.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\n\x1b[31mtwo\x1b[0m\n")
    with running(told):
        following = follow()
        following.look()
        found = following.log()
        assert found is not None
        assert (found.title, found.lines) == ("log of e1 eval, attempt 1", ("one", "two"))
        told.finished(1, "eval", "failed")
        following.look()
        found = following.log()
        assert found is not None and found.title == "log of e1 eval, attempt 1, failed"


def test_transitions_are_kept_with_their_time_but_not_for_ever(told: Any, follow: Follow) -> None:
    begin(told)
    with running(told):
        following = follow()
        assert [event.kind for event in following.look()][:2] == ["night.started", "entry.started"]
        at, text = following.happened[0]
        assert (at, text.plain) == (told.start + timedelta(seconds=1), "night started: 2 entries, 4 steps to run")
        assert following.look() == []
        for number in range(KEPT + 50):
            told.say(ev.Warned(message=str(number)))
        following.look()
    assert len(following.happened) == KEPT
    assert following.happened[-1][1].plain == f"warning: {KEPT + 49}"


def test_the_end_of_a_night_and_the_death_of_its_runner(told: Any, follow: Follow) -> None:
    begin(told)
    with running(told):
        following = follow()
        following.look()
        assert not following.over
    told.seconds += 10  # without an event the state is read again after a while
    following.look()
    assert following.over and following.data["state"] == "died"
    told.finished(1, "eval")
    told.say(ev.NightFinished(total=2, complete=0))
    with running(told):
        following = follow()
        following.look()
        assert following.over and following.now(None) is None and following.doing() == ""


def test_every_event_of_a_night_is_typed_with_all_in_it(told: Any) -> None:
    begin(told)
    metrics = (ev.Metric(name="match/accuracy", value=0.5, stderr=None, n=4),)
    told.finished(1, "eval", metrics=metrics)
    with told.journal.reader() as reader:
        stored = list(reader.events())
    events = [typed(event) for event in stored]
    assert [type(event) for event in events] == [ev.EVENT_CLASSES[event.kind] for event in stored]
    assert isinstance(events[0], ev.NightStarted) and events[0].entries[1].steps[0].name == "eval"
    assert isinstance(events[-1], ev.StepFinished) and events[-1].metrics == metrics


def test_what_another_version_wrote_is_no_reason_to_fail(told: Any) -> None:
    import attrs

    told.say(ev.Warned(message="x"))
    with told.journal.reader() as reader:
        (stored,) = reader.events()
    odd = attrs.evolve(stored, kind="step.finished", data={"status": {"now": "a mapping"}, "metrics": 3})
    assert typed(odd) == ev.UnknownEvent(name="step.finished", data=odd.data)
    assert typed(attrs.evolve(stored, kind="moon.rose")) == ev.UnknownEvent(name="moon.rose", data=stored.data)


# --- without a screen -------------------------------------------------------------------------------------------


class Passing:
    """Time passes in steps: each sleep tells the night further."""

    def __init__(self, *acts: Callable[[], None]) -> None:
        self.acts = list(acts)

    def __call__(self, seconds: float) -> None:
        self.acts.pop(0)()


def test_lines_begin_with_the_status_and_end_with_the_night(told: Any, follow: Follow) -> None:
    begin(told)
    written: list[str] = []
    with running(told):
        print_lines(
            follow(),
            written.append,
            Passing(
                lambda: told.finished(1, "eval", "failed", reason="it exited with 3"),
                lambda: None,
                lambda: told.say(ev.NightFinished(total=2, complete=0)),
            ),
        )
    assert written[0].splitlines()[0].startswith(f"night {told.night}  running (pid ")
    at = [(told.start + timedelta(seconds=told.seconds - back)).astimezone() for back in (1, 0)]
    assert written[1:] == [
        f"{at[0]:%Y-%m-%d %H:%M:%S} e1 eval failed in 1:01 min - it exited with 3",
        f"{at[1]:%Y-%m-%d %H:%M:%S} night finished: 0 of 2 entries complete",
    ]


def test_json_is_a_line_for_each_change(told: Any, follow: Follow) -> None:
    begin(told)
    written: list[str] = []
    with running(told):
        print_json(
            follow(),
            written.append,
            Passing(
                lambda: None,
                lambda: told.finished(1, "eval"),
                lambda: None,
                lambda: told.say(ev.NightFinished(total=2, complete=0)),
            ),
        )
    assert ["\n" in line for line in written] == [False, False, False]
    shown = [json.loads(line) for line in written]
    assert [data["state"] for data in shown] == ["running", "running", "finished"]
    assert [data["entries"][1]["steps"][0]["status"] for data in shown] == ["running", "ok", "ok"]
    assert all(datetime.fromisoformat(data["now"]["at"]) for data in shown)
