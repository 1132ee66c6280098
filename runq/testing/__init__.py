"""What a plugin must do, as tests a plugin's author runs; needs pytest.

    from runq.testing import ResetConformance

    class TestMine(ResetConformance):
        def make(self):
            return MyReset()

The built-in plugins run these suites too.
"""

from runq.testing.harness import HarnessConformance
from runq.testing.probe import ProbeConformance
from runq.testing.reset import ResetConformance
from runq.testing.stand_ins import FakeClock, FakeServer, FakeSupervisor, make_context, make_entry

__all__ = [
    "FakeClock",
    "FakeServer",
    "FakeSupervisor",
    "HarnessConformance",
    "ProbeConformance",
    "ResetConformance",
    "make_context",
    "make_entry",
]
