"""Nights on stand-ins for the servers that people have, through the real command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..night.conftest import FAST, Workshop, workshop, workshop_class
from ..stand_ins.model_hosts import Host, host, lms

__all__ = ["host", "lms", "workshop", "workshop_class"]

ASK = """
import json, urllib.request
asked = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "temperature": 0}
body = json.dumps(asked).encode()
request = urllib.request.Request(os.environ["ENDPOINT"] + "/chat/completions", body)
with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as reply:
    answer = json.load(reply)["choices"][0]["message"]["content"]
time.sleep(WAIT)
(bundle / "answer.txt").write_text(answer)
done()
"""
"""A step that really makes the server load its model, and keeps it for a reading of the memory or two."""

HELD = "settle: { timeout_s: 2, plateau_polls: 2, poll_interval_s: 0.1, epsilon_mb: 40 }\nprobes: [held]"
"""Memory as the stand-in and its children hold it: whatever else this machine does is not in it."""

SYSTEM = "settle: { timeout_s: 20, plateau_polls: 3, poll_interval_s: 0.3, epsilon_mb: 100 }\nprobes: [system]"
"""Memory as a real night reads it."""


@pytest.fixture
def asking(workshop: Workshop) -> Callable[..., Workshop]:
    """Write a queue whose steps ask ``url``'s chat endpoint, an entry per model."""

    def write(
        url: str, models: list[str], reset: str, *, memory: str = HELD, of: Host | None = None, wait_s: float = 0.0
    ) -> Workshop:
        workshop.commands(models, {"eval": ASK.replace("WAIT", repr(wait_s))}, defaults=f"reset: {reset}\n{memory}")
        queue = workshop.queue.read_text()
        workshop.queue.write_text(queue.replace(f"  settle: {FAST}\n", "", 1))
        workshop.env["ENDPOINT"] = f"{url}/v1"
        workshop.write("host.pid", str(of.pid) if of else "0")
        return workshop

    return write
