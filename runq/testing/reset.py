"""The conformance suite of reset backends."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runq.plugin import ResetBackend, ResetContext, ResetOutcome
from runq.testing.checks import OptionsConformance, require, require_json
from runq.testing.stand_ins import FakeSupervisor, make_context


class ResetConformance(OptionsConformance):
    """Subclass it and give `make`; `context` too when your backend needs more than an entry and a fake clock.

    The suite calls `reset` on what `make` returns: point it at a stand-in, or at an address where nothing listens.
    """

    def make(self) -> ResetBackend:
        """The backend under test."""
        raise NotImplementedError

    def make_absent(self) -> ResetBackend | None:
        """The backend with a server or tool that is not there; ``None`` when it has none that could be missing."""
        return None

    @pytest.fixture
    def context(self, tmp_path: Path) -> ResetContext:
        """What the night hands to the backend."""
        return make_context(tmp_path)

    def test_it_has_every_member_of_the_interface(self) -> None:
        """`runq` refuses a backend that lacks one before the night begins."""
        require(isinstance(self.make(), ResetBackend), "see runq.plugin.ResetBackend for what is missing")

    def test_can_verify_is_a_boolean(self) -> None:
        """`on_dirty` acts on an unproven reset only where the backend could have proven it."""
        require(isinstance(self.make().can_verify, bool), "can_verify must be True or False")

    def test_its_endpoint_is_a_url_or_none(self) -> None:
        """The endpoint's lock keeps two nights from evicting each other's models."""
        endpoint = self.make().endpoint({})
        if endpoint is not None:
            parts = urlsplit(endpoint)
            require(parts.scheme and parts.hostname, f"endpoint() must be a whole URL, not {endpoint!r}")

    def test_reset_returns_a_well_formed_outcome(self, context: ResetContext) -> None:
        """The verdict is one of three, and every one but `verified` says why."""
        backend = self.make()
        self._well_formed(backend, backend.reset(context))

    def test_a_second_reset_right_after_works_as_well(self, context: ResetContext) -> None:
        """The night resets before every entry; nothing may depend on its being the first."""
        backend = self.make()
        backend.reset(context)
        self._well_formed(backend, backend.reset(context))

    def test_something_absent_is_an_outcome_and_no_exception(self, context: ResetContext) -> None:
        """A missing tool or a dead server is `failed` or `unverified`, with what the user can do about it."""
        backend = self.make_absent()
        if backend is None:
            pytest.skip("make_absent() gives none")
        outcome = backend.reset(context)
        self._well_formed(backend, outcome)
        require(outcome.verdict != "verified", "a reset that could not ask anyone must not be verified")
        require(outcome.remedy, "an outcome about something absent must say what the user can do (remedy)")

    def test_loaded_tells_ids_or_none_and_starts_nothing(self, tmp_path: Path) -> None:
        """The settle rule asks while it polls: an answer that started a server would spoil the baseline."""
        supervisor = FakeSupervisor()
        loaded = self.make().loaded(make_context(tmp_path, supervisor=supervisor))
        require(
            loaded is None or (not isinstance(loaded, str) and all(isinstance(name, str) for name in loaded)),
            f"loaded() must be a sequence of model ids or None, not {loaded!r}",
        )
        require(not supervisor.started, "loaded() must not start a server")

    def _well_formed(self, backend: ResetBackend, outcome: ResetOutcome) -> None:
        require(isinstance(outcome, ResetOutcome), f"reset() must return a ResetOutcome, not {outcome!r}")
        require(outcome.verdict in ("verified", "unverified", "failed"), f"unknown verdict {outcome.verdict!r}")
        require_json(dict(outcome.details), "details")
        if outcome.verdict == "verified":
            require(backend.can_verify, "a backend whose can_verify is False must not answer `verified`")
            require(not outcome.loaded_after, "`verified` means that nothing is loaded: loaded_after must be empty")
        else:
            require(outcome.reason, f"a verdict `{outcome.verdict}` needs a reason")
        if outcome.verdict == "failed":
            require(outcome.remedy, "a verdict `failed` needs a remedy")
