"""No reset."""

from __future__ import annotations

from runq.testing import make_context
from runq_plugins.reset.none import NoReset


def test_it_does_nothing_and_says_so(tmp_path):
    backend, context = NoReset(), make_context(tmp_path)
    outcome = backend.reset(context)
    assert (outcome.verdict, outcome.reason) == ("unverified", "no reset is configured")
    assert backend.can_verify is False
    assert backend.endpoint({}) is None and backend.loaded(context) is None
    assert list(tmp_path.iterdir()) == []
