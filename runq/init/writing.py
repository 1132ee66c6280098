"""The text of a queue file: what a harness needs, an entry, the whole file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from runq.init.offers import Candidate
from runq.looking import FoundServer
from runq_schemas.errors import UsageError

STARTER = "starter"
"""The harness that `runq init` brings along: the `command` harness with a small script."""

STARTER_PACK = "starter/questions.json"

HOUR_S = 3600

S_PER_GB = 1500
"""What a timeout grows by. Every token reads all weights once, so a model takes time as its size does; with this
figure a model of 7 GB (twelve billion parameters in four bits) gets touchstone's four hours."""

ROUND_S = 900

SHORT_CHARS = 100

KNOWN_HEAD = (
    "# Models that `runq init` has seen. One that has no entry was left out on purpose, and is not added again;"
)
KNOWN_NEXT = "# `runq init --models NAME` adds it all the same."
KNOWN_LINE = re.compile(r"#   (\S.*)")


def timeout_s(size_mb: float | None) -> int | None:
    """Seconds for the step of a model: an hour, and 25 minutes per GB of its weights; quarter hours, rounded up."""
    if size_mb is None:
        return None
    return -int(-(HOUR_S + S_PER_GB * size_mb / 1024) // ROUND_S) * ROUND_S


def scalar(value: Any) -> str:
    """A value in flow style: what needs no quotes has none."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key}: {scalar(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(scalar(inner) for inner in value) + "]"
    text = str(value)
    plain = not isinstance(value, str) or re.fullmatch(r"[A-Za-z_/][A-Za-z0-9_./-]*", text) or _is_url(text)
    if plain and text.lower() not in ("true", "false", "yes", "no", "on", "off", "null", "y", "n"):
        return text
    return text if isinstance(value, bool | int | float) else json.dumps(text, ensure_ascii=False)


def _is_url(text: str) -> bool:
    return re.fullmatch(r"https?://[A-Za-z0-9_./:-]*[A-Za-z0-9_/-]", text) is not None


@attrs.frozen(kw_only=True)
class Harness:
    """What is run for the models: a harness, and where they are asked.

    Args:
        name: `starter`, or a harness plugin's name.
        pack: the `pack` of each entry.
    """

    name: str
    pack: str | None

    def settings(self, server: FoundServer) -> Any:
        """The `harness` of a queue file, for a server."""
        if self.name == STARTER:
            argv = ["{python}", "starter/ask.py", "--pack", "{pack}", "--model", "{model}", "--out", "{bundle}"]
            argv += ["--endpoint", "{endpoint}", *(["--key-env", server.key_env] if server.key_env else [])]
            steps = {"eval": {"argv": argv, "artifacts": ["responses.jsonl", "scores.csv"]}}
            return {"harness": "command", "endpoint": server.base_url, "steps": steps}
        if self.name in ("inspect", "lm_eval"):
            endpoint = {"base_url": server.base_url, "engine": server.engine}
            if server.key_env:
                endpoint["api_key_env"] = server.key_env
            return {"harness": self.name, "endpoint": endpoint, **({"chat": True} if self.name == "lm_eval" else {})}
        return self.name

    def config(self, server: FoundServer) -> str | None:
        """The `config` of an entry: touchstone has its endpoint there."""
        return f"config.{server.engine}.yaml" if self.name == "touchstone" else None

    def check(self) -> None:
        """Refuse a harness without what it cannot do without.

        Raises:
            UsageError: it lacks a pack.
        """
        if self.pack is None and self.name != STARTER:
            what = "the names of its tasks" if self.name == "lm_eval" else "a file"
            raise UsageError(f"the harness {self.name!r} needs a pack", remedy=f"add --pack with {what}")


def config_text(server: FoundServer, model: str) -> str:
    """A configuration of touchstone, with what it needs to ask a server."""
    return (
        "# Written by `runq init`: touchstone's configuration of one endpoint. Each entry names its model.\n"
        f"endpoint:\n  base_url: {server.base_url}\n  api_key: not-needed\n"
        f"engine: {server.engine}\nmodels:\n  - id: {json.dumps(model, ensure_ascii=False)}\n"
    )


def entry_lines(candidate: Candidate, keys: Mapping[str, Any], *, timed: bool = True) -> list[str]:
    """An entry, its first line without the dash.

    Args:
        keys: what it says besides its model, in this order; nothing for ``None``.
        timed: whether its step `eval` gets a timeout by the model's size.
    """
    model, quant = candidate.model, candidate.model.quant
    written = {"id": model.id, "quant": quant} if quant else model.id
    lines = [f"model: {scalar(written)}    # {candidate.about()}"]
    seconds = timeout_s(model.size_mb) if timed else None
    timeout = {"step_timeout_s": None if seconds is None else {"eval": seconds}}
    for key, value in {**keys, **timeout}.items():
        if value is not None:
            lines += setting_lines(key, value)
    return lines


def setting_lines(key: str, value: Any) -> list[str]:
    """A setting; a mapping with a mapping in it over several lines."""
    short = f"{key}: {scalar(value)}"
    nested = isinstance(value, Mapping) and any(isinstance(inner, Mapping) for inner in value.values())
    if not isinstance(value, Mapping) or not (nested or len(short) > SHORT_CHARS):
        return [short]
    lines = [f"{key}:"]
    for name, inner in value.items():
        lines += [f"  {line}" for line in setting_lines(name, inner)]
    return lines


def fresh_text(chosen: Sequence[Candidate], known: Sequence[str], harness: Harness, *, today: str, name: str) -> str:
    """A whole queue file.

    Args:
        known: the ids of every model that was offered.
        today: the date.
        name: the file's name.
    """
    first = chosen[0]
    shared = {"reset": dict(first.server.reset), "harness": harness.settings(first.server)}
    lines = [
        f"# A night for the models of this machine, written by `runq init` on {today}. It is yours to edit: the next",
        "# `runq init` adds what is new, marks what is gone, and keeps every line of yours.",
        "#",
        f"#   runq plan {name}     what would run, every setting resolved",
        f"#   runq doctor {name}   is everything there that it needs?",
        f"#   runq check {name}    load and ask every model once",
        f"#   runq night {name}    run it",
        "",
        "defaults:",
        f"  # How a model is evicted before the next one loads: {first.product} at {first.server.base_url}.",
        *[f"  # Mind: {line}" for line in ([first.server.note] if first.server.note else [])],
        *[f"  {line}" for line in setting_lines("reset", shared["reset"])],
        "",
        *_harness_comment(harness),
        *[f"  {line}" for line in setting_lines("harness", shared["harness"])],
        "",
        "# One model each, the smallest first: what is quick is done, whatever comes later. A step's timeout is one",
        "# hour and 25 minutes per GB of weights, since each token reads all of them; without a size runq's default.",
        "entries:",
    ]
    for candidate in chosen:
        head, *rest = entry_lines(candidate, keys_of(candidate, harness, shared))
        lines += [f"  - {head}", *[f"    {line}" for line in rest]]
    return "\n".join([*lines, "", *known_lines(known)]) + "\n"


def keys_of(candidate: Candidate, harness: Harness, shared: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of an entry: its files, and what the file's defaults say otherwise."""
    own = {"reset": dict(candidate.server.reset), "harness": harness.settings(candidate.server)}
    files = {"config": harness.config(candidate.server), "pack": harness.pack}
    return {**files, **{key: value for key, value in own.items() if value != shared.get(key)}}


def known_lines(models: Sequence[str]) -> list[str]:
    """The comment that remembers which models were offered."""
    return [KNOWN_HEAD, KNOWN_NEXT, *[f"#   {model}" for model in models]]


def _harness_comment(harness: Harness) -> list[str]:
    if harness.name == STARTER:
        return [
            "  # What is run for each entry: starter/ask.py asks the questions of starter/questions.json. Both are a",
            "  # beginning, and yours to replace; `runq plugins` lists the harnesses, docs/recipes.md has examples.",
        ]
    return ["  # What is run for each entry."]
