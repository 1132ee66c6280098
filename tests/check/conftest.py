"""`runq check` through the real command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from ..night.conftest import Workshop, workshop, workshop_class
from ..stand_ins.model_hosts import Host, host, lms

__all__ = ["host", "lms", "workshop", "workshop_class"]

HELD = "settle: { timeout_s: 3, plateau_polls: 2, poll_interval_s: 0.1, epsilon_mb: 40 }\n  probes: [held]"


@attrs.frozen
class Checked:
    """What one check came to."""

    code: int
    out: str
    err: str
    rows: list[dict[str, Any]]
    markdown: str
    shop: Workshop

    def row(self, model: str) -> dict[str, Any]:
        (found,) = (row for row in self.rows if row["model"] == model)
        return found

    def verdicts(self) -> dict[str, str]:
        return {row["model"]: row["verdict"] for row in self.rows}


@attrs.define
class Checker:
    """Writes a queue and checks it."""

    shop: Workshop

    def queue(
        self, url: str | None, models: list[str], reset: str = "none", *, of: Host | None = None, entries: str = ""
    ) -> None:
        self.shop.write("host.pid", str(of.pid) if of else "0")
        endpoint = f"endpoint: '{url}/v1'\n    " if url else ""
        listed = entries or "".join(f"  - model: '{model}'\n" for model in models)
        self.shop.write(
            "queue.yaml",
            f"defaults:\n  reset: {reset}\n  {HELD}\n  harness:\n    harness: command\n    {endpoint}"
            f"steps: {{ eval: {{ argv: [sh, -c, 'true', '{{model}}'], artifacts: [done.txt] }} }}\nentries:\n{listed}",
        )

    def run(self, *words: str, **changes: Any) -> Checked:
        return self.result(self.shop.runq("check", "queue.yaml", *words, **changes))

    def result(self, ran: Any) -> Checked:
        folders = sorted(self.shop.runs.glob("*_check"))
        assert folders, ran.stderr
        return Checked(
            code=ran.returncode,
            out=ran.stdout,
            err=ran.stderr or "",
            rows=json.loads((folders[-1] / "check.json").read_text()),
            markdown=(folders[-1] / "check.md").read_text(),
            shop=self.shop,
        )


@pytest.fixture
def checker(workshop: Workshop) -> Checker:
    return Checker(workshop)


@pytest.fixture
def check(checker: Checker) -> Callable[..., Checked]:
    """Write a queue of the models on a server and check it."""

    def go(
        url: str | None, models: list[str], reset: str = "none", *words: str, of: Host | None = None, **changes: Any
    ) -> Checked:
        checker.queue(url, models, reset, of=of)
        return checker.run(*words, **changes)

    return go
