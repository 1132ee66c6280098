"""`order: phases` on a real llama.cpp router: the router's own log says how often the judge was loaded."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ..stand_ins.routers import llama_cpp, router

__all__ = ["llama_cpp", "router"]

pytestmark = [pytest.mark.real_model, pytest.mark.slow]

JUDGE, MODELS = "smollm2-F16", ["smollm2-Q4_1", "smollm2-Q8_0"]

STEP = """
import json, urllib.request
body = json.dumps({"model": WHOM, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}).encode()
request = urllib.request.Request(os.environ["ENDPOINT"] + "/chat/completions", body)
with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as reply:
    answer = json.load(reply)
assert answer["model"] == WHOM, answer
time.sleep(1)
done()
"""


def loads(server: Any) -> list[str]:
    """The models that the router started a process for, in this order."""
    return re.findall(r"spawning server instance with name=(\S+)", server.log.read_text())


@pytest.mark.parametrize(
    ("order", "expected"),
    [("phases", [*MODELS, JUDGE]), ("entries", [MODELS[0], JUDGE, MODELS[1], JUDGE])],
)
def test_two_models_and_one_judge(workshop: Any, router: Any, order: str, expected: list[str]) -> None:
    server = router()
    workshop.commands(
        MODELS,
        {"eval": STEP.replace("WHOM", "model"), "judge": STEP.replace("WHOM", repr(JUDGE))},
        defaults=f"reset: {{ backend: llamacpp, base_url: '{server.url}' }}\nreset_before: [eval, judge]",
        entries=dict.fromkeys(MODELS, f"judge_model: {JUDGE}"),
    )
    text = f"order: {order}\n" + workshop.queue.read_text()
    words = "argv: ['{python}', judge.py, '{model}', '{bundle}']"
    workshop.queue.write_text(text.replace(words, "model: '{judge_model}', " + words))
    workshop.env["ENDPOINT"] = f"{server.url}/v1"
    ran = workshop.night()
    assert ran.returncode == 0, ran.stderr
    assert loads(server) == expected, "one process of the judge in phases, one an entry otherwise"
    assert [(e["eval_status"], e["judge_status"]) for e in workshop.summary()["entries"]] == [("ok", "ok")] * 2
    assert all(event.data["verdict"] == "verified" for event in workshop.events("reset.finished"))
