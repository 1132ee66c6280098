"""Nights of real harnesses on a real llama.cpp router, with a judge whose verdicts are known."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from ..night.conftest import Workshop, workshop, workshop_class
from ..stand_ins.routers import llama_cpp, router

__all__ = ["llama_cpp", "router", "workshop", "workshop_class"]

MADE = Path(__file__).parents[2] / ".venv-harness" / "bin" / "python"

SETTLE = "settle: { timeout_s: 5, plateau_polls: 2, poll_interval_s: 0.1, epsilon_mb: 40 }"


@pytest.fixture(scope="session")
def harness_python(missing_session: Callable[[str], NoReturn]) -> str:
    """An interpreter with Inspect and lm-eval: ``$HARNESS_PYTHON``, or the one that tests/run.py makes."""
    place = os.environ.get("HARNESS_PYTHON") or str(MADE)
    code = "import inspect_ai, openai, lm_eval"
    if not Path(place).is_file() or subprocess.run([place, "-c", code], capture_output=True, timeout=120).returncode:
        missing_session("inspect-ai and lm-eval are not installed (python3 tests/run.py makes .venv-harness)")
    return place


PROMPTS = [
    ("capital", "What is the capital of France?", "en"),
    ("colour", "Name a colour.", "en"),
    ("sum", "What is two plus two?", "en"),
    ("animal", "Name an animal.", "en"),
    ("day", "Which day follows Monday?", "en"),
    ("sea", "Name a sea.", "en"),
    ("month", "Which month follows May?", "en"),
    ("fruit", "Name a fruit.", "more"),
    ("river", "Name a river.", "more"),
    ("tool", "Name a tool.", "more"),
    ("tree", "Name a tree.", "more"),
    ("city", "Name a city in Italy.", "more"),
]
"""Twelve prompts in two categories; the last is asked twice."""


def pack_text() -> str:
    """A pack of touchstone's format (its documentation of pack.yaml)."""
    lines = [
        "id: small-pack", "title: A small pack", "version: 1", "description: For the tests.",
        "scale: { 1: bad, 2: poor, 3: fair, 4: good, 5: excellent }",
        "dimensions:",
        "  - { id: clarity, name: clarity, weight: 3, about: How clear they are. }",
        "  - { id: safety, name: safety, weight: 1, about: How safe they are. }",
        "ko_rule: { dimension: safety, threshold: 3, red_flag_scope: any, red_flag_prompts: [capital] }",
        "prompt_variants:",
        "  - { id: plain, system_prompt: null }",
        "  - { id: terse, system_prompt: Answer in one short sentence. }",
        "sampling: { temperature: 0.0, seed: 7 }",
        "categories:",
    ]  # fmt: skip
    for name in ("en", "more"):
        lines += [f"  - id: {name}", f"    name: {name}", "    prompts:"]
        for prompt, text, category in PROMPTS:
            if category == name:
                repeats = 2 if prompt == "city" else 1
                lines.append(
                    f"      - {{ id: {prompt}, title: {prompt}, prompt: {json.dumps(text)}, tests: knowledge,"
                    f" max_tokens: 12, repeats: {repeats}, green_flags: [It is right], red_flags: [It breaks off] }}"
                )
    return "\n".join(lines) + "\n"


LONGEST_S = 600
"""A bound for a night of real harnesses on a busy machine, not a measure: Inspect alone takes seconds to start."""


def night(shop: Workshop) -> str:
    """Run a night to its good end. Returns what it printed."""
    process = shop.start("night", "queue.yaml")
    out, _ = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, out
    return out


ANSWERS = 26
"""Eleven prompts once and one twice, each with two variants."""


def memory(url: str) -> str:
    """Memory as the router's own processes hold it."""
    return f"{SETTLE}\n  probes: [{{ probe: process, port: {url.rpartition(':')[2]} }}]"


def queue(shop: Workshop, url: str, harness: str, entries: list[str], *, order: str = "") -> None:
    """Write a queue on a llama.cpp router."""
    reset = f"reset: {{ backend: llamacpp, base_url: '{url}', timeout_s: 60 }}"
    lines = [
        *([order] if order else []),
        "defaults:",
        f"  {reset}",
        f"  {memory(url)}",
        f"  harness: {harness}",
        "entries:",
    ]
    shop.write("queue.yaml", "\n".join([*lines, *(f"  - {entry}" for entry in entries)]) + "\n")
