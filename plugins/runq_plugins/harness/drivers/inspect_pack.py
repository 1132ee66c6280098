"""A touchstone pack as an Inspect task: every prompt with every variant, and a judge that scores each answer 1 to 5.

Inspect loads this file by its path. The format of packs: touchstone's documentation, pack.yaml.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

MAX_TOKENS = 400
"""What touchstone gives an answer where neither prompt nor model says otherwise."""

LOWEST, HIGHEST = 1, 5


def read_pack(path: str) -> dict[str, Any]:
    """The pack's mapping.

    Raises:
        ValueError: it is none, or has no prompt.
    """
    pack = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    if not isinstance(pack, dict) or not any(category.get("prompts") for category in pack.get("categories") or ()):
        raise ValueError(f"{path} is no pack: it has no prompt under categories")
    return pack


def samples(pack: dict[str, Any], default_tokens: int, headroom: int) -> Iterator[Sample]:
    """A sample per prompt, variant and repeat."""
    variants = pack.get("prompt_variants") or [{"id": "default", "system_prompt": None}]
    for category in pack["categories"]:
        for prompt in category.get("prompts") or ():
            for variant in variants:
                for repeat in range(int(prompt.get("repeats") or 1)):
                    system = variant.get("system_prompt")
                    messages = [ChatMessageSystem(content=str(system))] if system else []
                    yield Sample(
                        id=f"{prompt['id']}/{variant['id']}" + (f"/{repeat + 1}" if repeat else ""),
                        input=[*messages, ChatMessageUser(content=str(prompt["prompt"]))],
                        metadata={
                            "prompt_id": str(prompt["id"]),
                            "variant": str(variant["id"]),
                            "repeat": repeat + 1,
                            "category": str(category.get("id", "")),
                            "title": str(prompt.get("title", "")),
                            "prompt": str(prompt["prompt"]),
                            "tests": str(prompt.get("tests") or ""),
                            "green_flags": [str(flag) for flag in prompt.get("green_flags") or ()],
                            "red_flags": [str(flag) for flag in prompt.get("red_flags") or ()],
                            "max_tokens": int(prompt.get("max_tokens") or default_tokens) + headroom,
                        },
                    )


@task
def pack(path: str, max_tokens_default: int = MAX_TOKENS, reasoning_headroom_tokens: int = 0) -> Task:
    """The pack at a path."""
    content = read_pack(path)
    sampling = content.get("sampling") or {}
    return Task(
        dataset=MemoryDataset(list(samples(content, max_tokens_default, reasoning_headroom_tokens)), name="pack"),
        solver=answer(),
        scorer=flags(path),
        config=GenerateConfig(temperature=float(sampling.get("temperature", 0.0)), seed=sampling.get("seed")),
        name=re.sub(r"[^A-Za-z0-9_-]+", "-", str(content.get("id") or Path(path).stem)),
    )


@solver
def answer() -> Solver:
    """One answer, as long as its prompt allows."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await generate(state, max_tokens=state.metadata["max_tokens"])

    return solve


@scorer(metrics=[mean(), stderr()])
def flags(path: str) -> Scorer:
    """Scores an answer from 1 to 5 against its prompt's flags, by the model with the role ``grader``."""
    scale = read_pack(path).get("scale") or {}

    async def score(state: TaskState, target: Target) -> Score:
        grader = get_model(role="grader")
        output = await grader.generate(flags_prompt(state.metadata, state.output.completion, scale))
        found = verdict(output.completion)
        if found is None:
            reason = f"the judge gave no score from {LOWEST} to {HIGHEST}"
            return Score.unscored(reason=reason, answer=state.output.completion, explanation=output.completion)
        value, details = found
        return Score(value=value, answer=state.output.completion, explanation=output.completion, metadata=details)

    return score


def flags_prompt(sample: dict[str, Any], answer: str, scale: dict[Any, Any]) -> str:
    """What the judge is asked about one answer."""
    lines = [
        "You judge one answer of a language model. Reply with one JSON object and nothing else:",
        '{"score": <1 to 5>, "green_flags": [<which apply>], "red_flags": [<which apply>], "why": "<a sentence>"}',
        "",
        *(["Scale:", *(f"{key}: {text}" for key, text in scale.items()), ""] if scale else []),
        f"Prompt: {sample['prompt']}",
        *([f"It tests: {sample['tests']}"] if sample["tests"] else []),
        *(["Green flags, each speaks for the answer:", *(f"- {flag}" for flag in sample["green_flags"])]),
        *(["Red flags, each speaks against it:", *(f"- {flag}" for flag in sample["red_flags"])]),
        "",
        "Answer:",
        answer,
    ]
    return "\n".join(lines)


def dimension_prompt(dimension: dict[str, Any], answers: list[dict[str, Any]], scale: dict[Any, Any]) -> str:
    """What the judge is asked about one dimension of all answers."""
    lines = [
        "You judge one quality of a language model over all its answers. Reply with one JSON object and nothing else:",
        '{"score": <1 to 5>, "why": "<a sentence>"}',
        "",
        *(["Scale:", *(f"{key}: {text}" for key, text in scale.items()), ""] if scale else []),
        f"Quality: {dimension.get('name') or dimension['id']}",
        *([str(dimension["about"])] if dimension.get("about") else []),
        "",
    ]
    for one in answers:
        lines += [f"Prompt: {one['prompt']}", f"Answer: {one['text']}", ""]
    return "\n".join(lines)


def verdict(text: str) -> tuple[float, dict[str, Any]] | None:
    """The score of a judge's reply, and what it says beside; ``None`` where there is no score in the scale."""
    for match in re.finditer(r"\{.*\}", text, re.DOTALL):
        try:
            data = json.loads(match[0])
        except ValueError:
            continue
        score = data.get("score") if isinstance(data, dict) else None
        if isinstance(score, int | float) and not isinstance(score, bool) and LOWEST <= score <= HIGHEST:
            return float(score), {key: value for key, value in data.items() if key != "score"}
    return None
