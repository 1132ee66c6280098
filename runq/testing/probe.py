"""The conformance suite of probes."""

from __future__ import annotations

import math
import time

from runq.plugin import PluginError, Probe
from runq.testing.checks import OptionsConformance, require

SLOW_S = 0.5
"""Probes are read every few seconds while a step runs; one that takes longer disturbs what it measures."""


class ProbeConformance(OptionsConformance):
    """Subclass it and give `make`."""

    def make(self) -> Probe:
        """The probe under test."""
        raise NotImplementedError

    def test_it_has_every_member_of_the_interface(self) -> None:
        """`runq` refuses a probe that lacks one before the night begins."""
        require(isinstance(self.make(), Probe), "see runq.plugin.Probe for what is missing")

    def test_its_formula_says_what_is_counted(self) -> None:
        """Whoever reads a figure must be able to tell which counters made it."""
        formula = self.make().formula
        require(isinstance(formula, str), "formula must be a text")
        require(formula.strip(), "formula must not be empty")

    def test_it_reads_a_plain_number_or_says_why_not(self) -> None:
        """A figure in MB (2**20 bytes), or PluginError with a message. Never a zero in place of "cannot tell"."""
        try:
            figure = self.make().read_mb()
        except PluginError as error:
            require(error.message, "a PluginError needs a message")
            return
        require(isinstance(figure, float), f"read_mb() must be a float, not {type(figure).__name__}")
        require(math.isfinite(figure) and figure >= 0, f"read_mb() must be finite and not negative, not {figure}")

    def test_a_reading_is_quick(self) -> None:
        """The quickest of three readings takes less than half a second."""
        probe, quickest = self.make(), math.inf
        for _ in range(3):
            before = time.perf_counter()
            try:
                probe.read_mb()
            except PluginError:
                return
            quickest = min(quickest, time.perf_counter() - before)
        require(quickest < SLOW_S, f"a reading took {quickest:.2f} s")
