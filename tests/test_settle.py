"""The settle rule, sentence by sentence, on scripted readings; its properties; the bench in short."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.settle import SettleOutcome, settle_together, wait_until_settled
from runq_schemas.queue import SettleSpec

ROOT = Path(__file__).parent.parent
SPEC = SettleSpec(timeout_s=20, plateau_polls=3, poll_interval_s=2, epsilon_mb=200)
HELD = ["big-model"]
Word = Sequence[str] | None


@attrs.define
class Machine:
    """Simulated time; the k-th reading and word are the k-th of the script, its last one for ever after."""

    readings: Sequence[float]
    words: Sequence[Word] = (None,)
    poll_takes_s: float = 0.0
    loaded_takes_s: float = 0.0
    now: float = 0.0
    polls: int = 0
    asked: int = 0
    sleeps: list[float] = attrs.field(factory=list)

    def poll(self) -> float:
        self.now += self.poll_takes_s
        self.polls += 1
        return self.readings[min(self.polls, len(self.readings)) - 1]

    def loaded(self) -> Word:
        self.now += self.loaded_takes_s
        self.asked += 1
        return self.words[min(self.asked, len(self.words)) - 1]

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.sleeps.append(seconds)
        self.now += seconds

    def settle(self, spec: SettleSpec = SPEC, reference_mb: float | None = None) -> SettleOutcome:
        return wait_until_settled(
            self.poll,
            settle=spec,
            reference_mb=reference_mb,
            loaded=self.loaded,
            sleep=self.sleep,
            clock=lambda: self.now,
        )


def verdict(outcome: SettleOutcome) -> tuple[str, float, int, bool]:
    return outcome.status, outcome.waited_s, outcome.polls, outcome.proven


def test_several_figures_settle_at_one_and_the_same_moment() -> None:
    """The card's memory is back at 10 s, three readings later than the machine's, which has to be level then too."""
    machine, card = Machine([4000]), Machine([9000, 9000, 9000, 9000, 9000, 500])
    outcomes = settle_together(
        {"machine": machine.poll, "card": card.poll},
        settle=SPEC,
        references={"machine": 4000, "card": 500},
        loaded=machine.loaded,
        sleep=machine.sleep,
        clock=lambda: machine.now,
    )
    assert verdict(outcomes["machine"]) == verdict(outcomes["card"]) == ("settled", 12, 7, True)
    assert (outcomes["card"].start_mb, outcomes["card"].final_mb) == (9000, 500)
    assert machine.asked == 7, "one question for both"


def test_one_figure_that_stays_high_is_its_own_verdict_only() -> None:
    machine, card = Machine([4000]), Machine([9000])
    outcomes = settle_together(
        {"machine": machine.poll, "card": card.poll},
        settle=SPEC,
        references={"machine": 4000, "card": 500},
        sleep=machine.sleep,
        clock=lambda: machine.now,
    )
    assert verdict(outcomes["machine"]) == ("settled", 20, 11, True)
    assert verdict(outcomes["card"]) == ("dirty", 20, 11, False)


def test_a_figure_that_cannot_be_read_is_left_out_and_told_once() -> None:
    machine, told = Machine([4000]), []

    def broken() -> float:
        raise OSError("no such card")

    outcomes = settle_together(
        {"card": broken, "machine": machine.poll},
        settle=SPEC,
        references={"machine": 4000},
        failed=lambda name, error: told.append((name, str(error))),
        sleep=machine.sleep,
        clock=lambda: machine.now,
    )
    assert list(outcomes) == ["machine"]
    assert told == [("card", "no such card")]


# --- with a reference ---------------------------------------------------------------------------------------


def test_two_readings_near_the_reference_prove_the_level_at_once() -> None:
    outcome = Machine([4000, 4010]).settle(reference_mb=4000)
    assert outcome == SettleOutcome(
        status="settled", waited_s=2, start_mb=4000, final_mb=4010, polls=2, still_loaded=(), proven=True
    )


def test_near_is_at_most_one_and_a_half_epsilon_earlier_and_one_later() -> None:
    assert verdict(Machine([4300, 4200]).settle(reference_mb=4000)) == ("settled", 2, 2, True)
    assert verdict(Machine([4301, 4200, 4200]).settle(reference_mb=4000)) == ("settled", 4, 3, True)
    assert verdict(Machine([4200, 4201, 4200]).settle(reference_mb=4000)) == ("settled", 4, 3, True)


def test_near_readings_must_be_consecutive() -> None:
    machine = Machine([4000, 5000, 4000, 5000, 4000, 4000])
    assert verdict(machine.settle(reference_mb=4000)) == ("settled", 10, 6, True)


@pytest.mark.parametrize("below", [0, 200])
def test_a_little_below_the_reference_is_near_it(below: float) -> None:
    assert verdict(Machine([4000 - below] * 2).settle(reference_mb=4000)) == ("settled", 2, 2, True)


def test_far_below_the_reference_a_flat_window_settles_and_proves_nothing() -> None:
    """Other programs gave 1,000 MB back: as much of the model may still be held."""
    assert verdict(Machine([3000] * 4).settle(reference_mb=4000)) == ("settled", 6, 4, False)


def test_far_below_the_reference_the_word_proves() -> None:
    machine = Machine([3000] * 4, words=[[]] * 4)
    assert verdict(machine.settle(reference_mb=4000)) == ("settled", 6, 4, True)


def test_a_reading_near_the_reference_proves_nothing_while_a_model_is_named() -> None:
    assert verdict(Machine([4000], [HELD]).settle(reference_mb=4000)) == ("dirty", 20, 11, False)


def test_no_plateau_above_the_reference_counts_without_proof_of_absence() -> None:
    outcome = Machine([6000]).settle(reference_mb=4000)
    assert verdict(outcome) == ("dirty", 20, 11, False)
    assert outcome.still_loaded == ()


def test_memory_that_falls_late_is_waited_for() -> None:
    machine = Machine([6000] * 6 + [4000])  # six readings at 0..10 s, back at 12 s
    assert verdict(machine.settle(reference_mb=4000)) == ("settled", 14, 8, True)


def test_proven_absence_makes_a_higher_plateau_other_programs_growth() -> None:
    assert verdict(Machine([6000], [[]]).settle(reference_mb=4000)) == ("settled", 6, 4, True)


def test_a_reference_of_zero_is_a_reference() -> None:
    assert verdict(Machine([500]).settle(reference_mb=0.0)) == ("dirty", 20, 11, False)


# --- without a reference ------------------------------------------------------------------------------------


def test_proven_absence_and_a_whole_flat_window_are_proof() -> None:
    assert verdict(Machine([9000, 7000, 4000], [[]]).settle()) == ("settled", 10, 6, True)


def test_with_neither_reference_nor_word_a_flat_window_is_settled_but_unproven() -> None:
    assert verdict(Machine([4000]).settle()) == ("settled", 6, 4, False)


def test_nobody_to_ask_is_no_word() -> None:
    machine = Machine([4000])
    outcome = wait_until_settled(machine.poll, settle=SPEC, sleep=machine.sleep, clock=lambda: machine.now)
    assert verdict(outcome) == ("settled", 6, 4, False)


def test_named_models_never_settle_however_flat() -> None:
    outcome = Machine([4000], [HELD]).settle()
    assert verdict(outcome) == ("dirty", 20, 11, False)
    assert outcome.still_loaded == ("big-model",)


def test_readings_from_before_the_proof_of_absence_do_not_count() -> None:
    # Named at 0, 2 and 4 s, gone at 6 s, and the driver gives the memory back at 10 s only.
    machine = Machine([9000] * 5 + [4000], [HELD, HELD, HELD, []])
    assert verdict(machine.settle()) == ("settled", 16, 9, True)


def test_readings_from_before_the_backend_fell_silent_do_not_count() -> None:
    assert verdict(Machine([9000], [HELD, HELD, None]).settle()) == ("settled", 10, 6, False)


def test_a_model_named_again_voids_the_proof() -> None:
    assert verdict(Machine([4000], [[], [], HELD, []]).settle()) == ("settled", 12, 7, True)


def test_a_moment_of_silence_does_not_void_the_proof() -> None:
    assert verdict(Machine([6000], [[], None, None, []]).settle(reference_mb=4000)) == ("settled", 6, 4, True)


# --- flat: range and trend over the whole window ------------------------------------------------------------


def test_the_window_is_plateau_polls_intervals() -> None:
    spec = attrs.evolve(SPEC, plateau_polls=5)
    assert verdict(Machine([4000]).settle(spec)) == ("settled", 10, 6, False)
    assert verdict(Machine([4000]).settle(attrs.evolve(SPEC, plateau_polls=1))) == ("settled", 2, 2, False)


def test_the_range_may_be_epsilon_and_no_more() -> None:
    assert verdict(Machine([4000, 4200, 4000, 4200]).settle()) == ("settled", 6, 4, False)
    # 4201 leaves the window with the reading at 12 s
    assert verdict(Machine([4000, 4000, 4201, 4000]).settle()) == ("settled", 12, 7, False)


@pytest.mark.parametrize("mb_per_poll", [34, 40, 50, 66, 100, 199])
def test_a_slow_steady_fall_is_not_flat(mb_per_poll: float) -> None:
    machine = Machine([9000 - mb_per_poll * k for k in range(20)])
    assert verdict(machine.settle()) == ("timeout", 20, 11, False)


def test_a_slow_fall_ends_and_then_the_window_is_flat() -> None:
    # 4300 4240 4180 4120 4060 4000 4000 4000: the windows fall by 180, 180, 180, 132 and 54 (fitted)
    machine = Machine([4300, 4240, 4180, 4120, 4060, 4000])
    assert verdict(machine.settle()) == ("settled", 14, 8, False)


def test_a_slow_rise_is_other_programs_and_no_reason_to_wait() -> None:
    machine = Machine([4000 + 60 * k for k in range(20)])
    assert verdict(machine.settle()) == ("settled", 6, 4, False)


def test_noise_within_epsilon_is_flat() -> None:
    assert verdict(Machine([4090, 4000, 4170, 4020]).settle()) == ("settled", 6, 4, False)


# --- dirty, timeout and the time ----------------------------------------------------------------------------


def test_never_flat_is_a_timeout() -> None:
    zigzag = [4000 if k % 2 else 4500 for k in range(20)]
    assert verdict(Machine(zigzag).settle()) == ("timeout", 20, 11, False)
    assert verdict(Machine(zigzag, [[]]).settle()) == ("timeout", 20, 11, False)
    assert verdict(Machine(zigzag).settle(reference_mb=3000)) == ("timeout", 20, 11, False)


def test_one_spike_at_the_end_does_not_hide_a_held_plateau() -> None:
    machine = Machine([6000] * 10 + [6500])
    assert verdict(machine.settle(reference_mb=4000)) == ("dirty", 20, 11, False)


def test_back_at_the_last_reading_is_not_dirty_but_too_late() -> None:
    machine = Machine([6000] * 10 + [4000])
    assert verdict(machine.settle(reference_mb=4000)) == ("timeout", 20, 11, False)


def test_the_last_reading_can_still_settle() -> None:
    machine = Machine([6000] * 9 + [4000])
    assert verdict(machine.settle(reference_mb=4000)) == ("settled", 20, 11, True)


def test_the_last_sleep_is_cut_so_that_the_verdict_falls_at_the_timeout() -> None:
    machine = Machine([4000], [HELD])
    assert verdict(machine.settle(attrs.evolve(SPEC, timeout_s=5))) == ("dirty", 5, 4, False)
    assert machine.sleeps == [2, 2, 1]


def test_a_cut_interval_does_not_make_a_slow_fall_flat() -> None:
    # 50 MB a poll; the last interval is cut to 0.1 s, in which it falls by 2.5 MB.
    machine = Machine([9000, 8950, 8900, 8897.5])
    assert verdict(machine.settle(attrs.evolve(SPEC, timeout_s=4.1)))[0] == "timeout"


def test_time_spent_in_poll_and_loaded_counts() -> None:
    slow_poll = Machine([4000], [HELD], poll_takes_s=3)  # readings at 3, 8, 13, 18, 23
    assert verdict(slow_poll.settle()) == ("dirty", 23, 5, False)
    slow_word = Machine([4000], [HELD], loaded_takes_s=7)  # readings at 7, 16, 25
    assert verdict(slow_word.settle()) == ("dirty", 25, 3, False)


def test_there_is_always_one_reading_and_it_is_taken_at_once() -> None:
    machine = Machine([4000], poll_takes_s=30)
    assert verdict(machine.settle()) == ("timeout", 30, 1, False)
    assert machine.sleeps == []


def test_the_word_is_older_than_the_reading_it_goes_with() -> None:
    calls: list[str] = []

    def poll() -> float:
        calls.append("poll")
        return 4000

    def loaded() -> list[str]:
        calls.append("loaded")
        return []

    wait_until_settled(poll, settle=attrs.evolve(SPEC, timeout_s=0), loaded=loaded)
    assert calls == ["loaded", "poll"]


def test_a_clock_far_from_zero_still_reaches_the_deadline() -> None:
    machine = Machine([4000], [HELD], now=1e9 + 0.3)
    assert machine.settle(attrs.evolve(SPEC, timeout_s=0.7, poll_interval_s=0.1)).status == "dirty"


@pytest.mark.parametrize("word", [None, []])
def test_what_poll_raises_is_passed_on(word: Word) -> None:
    def poll() -> float:
        raise OSError("no such counter")

    with pytest.raises(OSError, match="no such counter"):
        wait_until_settled(poll, settle=SPEC, loaded=lambda: word)


def test_the_defaults_sleep_and_read_the_clock() -> None:
    spec = attrs.evolve(SPEC, timeout_s=5, poll_interval_s=0.01)
    outcome = wait_until_settled(lambda: 4000.0, settle=spec)
    assert (outcome.status, outcome.polls) == ("settled", 4)
    assert 0.03 <= outcome.waited_s < 5


def test_importing_the_rule_loads_no_parser() -> None:
    code = "import sys, runq.settle; sys.exit(bool({'strictyaml', 'cattrs'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# --- properties ---------------------------------------------------------------------------------------------

specs = st.builds(
    SettleSpec,
    timeout_s=st.floats(0.5, 60),
    plateau_polls=st.integers(1, 6),
    poll_interval_s=st.floats(0.25, 10),
    epsilon_mb=st.sampled_from([50.0, 200.0, 1000.0]),
)
levels = st.lists(st.one_of(st.sampled_from([4000, 4050, 4200, 6000]), st.integers(0, 9000)), min_size=1)
words = st.lists(st.sampled_from([None, [], HELD]), min_size=1)
references = st.one_of(st.none(), st.sampled_from([4000.0, 3900.0]), st.floats(0, 9000))
takes = st.sampled_from([0.0, 0.0, 0.5, 4.0])


@given(specs, levels, words, references, takes, takes)
def test_properties_of_any_wait(
    spec: SettleSpec,
    readings: list[int],
    said: list[Word],
    reference_mb: float | None,
    poll_takes_s: float,
    loaded_takes_s: float,
) -> None:
    machine = Machine(readings, said, poll_takes_s, loaded_takes_s)
    outcome = machine.settle(spec, reference_mb)
    last_word = said[min(machine.asked, len(said)) - 1]
    assert outcome.polls == machine.polls == machine.asked >= 1
    assert (outcome.still_loaded != ()) == bool(last_word)
    assert outcome.status != "settled" or not last_word
    assert not outcome.proven or outcome.status == "settled"
    assert not outcome.proven or reference_mb is not None or last_word == []
    assert outcome.waited_s <= spec.timeout_s + poll_takes_s + loaded_takes_s + 1e-9
    assert outcome.status == "settled" or outcome.waited_s >= spec.timeout_s - 1e-9
    assert outcome.start_mb == readings[0]


@given(specs, levels, words, st.integers(0, 100_000))
def test_without_a_reference_only_differences_matter(
    spec: SettleSpec, readings: list[int], said: list[Word], shift: int
) -> None:
    # The level cancels out but for rounding; an epsilon that no fall of these integers meets keeps that out.
    spec = attrs.evolve(spec, epsilon_mb=spec.epsilon_mb + 0.123)
    here = Machine(readings, said).settle(spec)
    there = Machine([mb + shift for mb in readings], said).settle(spec)
    assert attrs.evolve(there, start_mb=here.start_mb, final_mb=here.final_mb) == here
    assert there.final_mb == here.final_mb + shift


# --- the bench ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_settle", ROOT / "bench" / "settle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # attrs looks the module of a class up
    spec.loader.exec_module(module)
    return module


def test_where_the_truth_can_be_known_there_is_no_dirty_accept_and_no_clean_refused(bench: Any) -> None:
    rows = bench.run(per_row=30, seed=7)
    knowable = [row for row in rows if row.knowable]
    simulated = [row for row in knowable if not row.family.startswith("real: ")]
    assert sum(row.traces for row in simulated) == 41 * 30
    recorded = {row.family for row in knowable} - {row.family for row in simulated}
    assert recorded == {f"real: {file.stem}" for file in (ROOT / "bench" / "traces").glob("*.csv")} != set()
    assert sum(row.ours.dirty_accepts for row in knowable) == 0
    assert sum(row.ours.clean_refused for row in knowable) == 0
    assert sum(row.proven_dirty for row in knowable) == 0
    assert {row.proven for row in rows if not row.knowable} == {0}
    # and the traces are hard enough for the ancestor to fail on
    assert sum(row.ancestor.dirty_accepts for row in knowable) > 500


def test_the_bench_keeps_every_promise(bench: Any) -> None:
    assert bench.broken_promises(bench.run()) == []


def test_the_bench_notices_a_rule_that_accepts_a_held_plateau(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(trace: Any) -> SettleOutcome:
        at = bench.ancestor(trace) or 0.0
        return SettleOutcome(
            status="settled", waited_s=at, start_mb=0, final_mb=0, polls=1, still_loaded=(), proven=True
        )

    monkeypatch.setattr(bench, "ours", forgetful)
    broken = bench.broken_promises(bench.run(per_row=5))
    assert "never back (both): 5 dirty accepts" in broken
    assert "never back (neither): 5 proven where the truth cannot be known" in broken
