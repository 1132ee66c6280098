"""EleutherAI's lm-evaluation-harness: task lists on the entry's endpoint, its metrics in the journal; no judge."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from runq.plugin import Entry, Evidence, Metric, Need, PluginError, Step, Target
from runq_plugins.harness.interpreter import find_python
from runq_plugins.harness.server_endpoint import ServerEndpoint, needed_place, place

DRIVER = Path(__file__).parent / "drivers" / "drive_lm_eval.py"

RESULTS = "lm-eval.json"
"""lm-eval's own results file under a fixed name: it names its own by model and time."""

REMEDY = "pip install 'lm-eval[api]' for that interpreter, or name the one that has it as the harness's `python`"


@attrs.frozen(kw_only=True)
class LmEvalHarness:
    """`lm_eval run` with `local-completions` or `local-chat-completions` on the entry's endpoint; one step, `eval`.

    The entry's `pack` names the tasks, with commas between them (`gsm8k,arc_easy`).
    """

    endpoint: ServerEndpoint | None = attrs.field(
        default=None,
        metadata={"description": "The server that the model is on; by default the one of the entry's `config`."},
    )
    chat: bool = attrs.field(
        default=True,
        metadata={
            "description": "Ask by chat (`local-chat-completions`), for tasks that generate; without it by completion"
            " (`local-completions`), which tasks of log-likelihood need."
        },
    )
    limit: float | None = attrs.field(
        default=None, metadata={"description": "Only so many questions of each task, or that share of them if below 1."}
    )
    num_fewshot: int | None = attrs.field(default=None, metadata={"description": "Examples before each question."})
    include_path: str | None = attrs.field(
        default=None, metadata={"description": "A folder with tasks of yours, relative to the queue's folder."}
    )
    tokenizer: str | None = attrs.field(
        default=None,
        metadata={
            "description": "A tokenizer's folder or name, for `chat: false`; llama.cpp's server has none to give."
        },
    )
    python: str | None = attrs.field(
        default=None, metadata={"description": "Interpreter that has lm-eval; by default the `python` on the PATH."}
    )
    args: tuple[str, ...] = attrs.field(
        default=(),
        metadata={"description": "Further words for `lm_eval run`, such as `[--gen_kwargs, temperature=0]`."},
    )

    def needs(self, base_dir: Path) -> Sequence[Need]:
        """The interpreter, with lm-eval in it."""
        return (Need(program=find_python(self.python, base_dir), module="lm_eval", remedy=REMEDY),)

    def requires(self) -> Sequence[str]:
        """`pack`."""
        return ("pack",)

    def pack_file(self, pack: str) -> str | None:
        """None: a pack is a list of task names."""
        return None

    def steps(self, entry: Entry) -> Sequence[Step]:
        """The eval.

        Raises:
            PluginError: the entry has no pack, or nobody says where its server is.
        """
        needed_place(self.endpoint, entry.config, entry)
        folder = () if self.include_path is None else (entry.base_dir / Path(self.include_path).expanduser(),)
        settings = {
            "tasks": _tasks(entry),
            "chat": self.chat,
            "limit": self.limit,
            "num_fewshot": self.num_fewshot,
            "args": list(self.args),
        }
        return [Step(name="eval", artifacts=(RESULTS,), reads=folder, settings=settings, model=entry.model)]

    def targets(self, entry: Entry) -> Sequence[Target]:
        """The entry's model."""
        where = place(self.endpoint, entry.config, entry)
        if where is None:
            return ()
        return (Target(step="eval", base_url=where.base_url, model=entry.model, api_key=where.api_key),)

    def argv(self, entry: Entry, step: Step, bundle: Path) -> Sequence[str]:
        """The driver's command line; the key is not in it."""
        where = needed_place(self.endpoint, entry.config, entry)
        asked: dict[str, Any] = {"base_url": f"{where.base_url.rstrip('/')}/{'chat/' if self.chat else ''}completions"}
        asked |= {"model": entry.model.id, "num_concurrent": 1, "max_retries": 3}
        if self.tokenizer is not None:
            asked |= {"tokenizer": self.tokenizer, "tokenizer_backend": "huggingface"}
        words = ["--model", "local-chat-completions" if self.chat else "local-completions"]
        words += ["--model_args", json.dumps(asked), "--tasks", _tasks(entry), "--log_samples"]
        words += ["--apply_chat_template"] if self.chat else []
        words += ["--limit", f"{self.limit:g}"] if self.limit is not None else []
        words += ["--num_fewshot", str(self.num_fewshot)] if self.num_fewshot is not None else []
        if self.include_path is not None:
            words += ["--include_path", str(entry.base_dir / Path(self.include_path).expanduser())]
        python = find_python(self.python, entry.base_dir)
        return [python, str(DRIVER), "--bundle", str(bundle), "--key", where.key, "--", *words, *self.args]

    @classmethod
    def answers(cls, bundle: Path) -> Mapping[str, Mapping[str, float]]:
        """Each question's own figure, from the samples that lm-eval logs."""
        found: dict[str, Mapping[str, float]] = {}
        for file in sorted((bundle / "lm-eval").rglob("samples_*.jsonl")):
            found |= _numbers(file)
        return found

    def check(self, entry: Entry, step: Step, bundle: Path) -> Evidence:
        """The metrics of lm-eval's results file."""
        try:
            data = json.loads((bundle / RESULTS).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            return Evidence(ok=False, reason=f"{RESULTS} cannot be read: {error}")
        if not isinstance(data, Mapping) or not isinstance(data.get("results"), Mapping):
            return Evidence(ok=False, reason=f"{RESULTS} holds no results")
        metrics = tuple(_metrics(data))
        counts = [count["effective"] for count in data.get("n-samples", {}).values()]
        facts = {"answers": sum(counts), "tasks": len(counts)}
        if not metrics:
            return Evidence(ok=False, reason=f"{RESULTS} holds no metric that is a number", facts=facts)
        return Evidence(ok=True, facts=facts, metrics=metrics)


def _numbers(file: Path) -> Mapping[str, Mapping[str, float]]:
    """The figures of one task's samples file, whose name holds the task's between `samples_` and a time."""
    task = file.stem.removeprefix("samples_").rpartition("_")[0]
    found: dict[str, dict[str, float]] = {}
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            kind = row.get("filter", "none")
            for name in row.get("metrics", ()):
                value = row.get(name)
                if isinstance(value, int | float) and math.isfinite(value):
                    shown = name if kind == "none" else f"{name},{kind}"
                    found.setdefault(f"{task}/{shown}", {})[str(row["doc_id"])] = float(value)
    return found


def _metrics(data: Mapping[str, Any]) -> list[Metric]:
    """`task/metric` or `task/metric,filter` of every task, with its standard error and number of questions."""
    found: list[Metric] = []
    for task, results in data["results"].items():
        count = data.get("n-samples", {}).get(task, {}).get("effective")
        for key, value in results.items():
            name, _, kind = key.partition(",")
            if name.endswith("_stderr") or isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if name in ("alias", "sample_len") or not math.isfinite(value):
                continue
            error = results.get(f"{name}_stderr,{kind}")
            finite = not isinstance(error, str | None) and math.isfinite(error)
            shown = name if kind in ("none", "") else f"{name},{kind}"
            found.append(
                Metric(
                    name=f"{task}/{shown}",
                    value=float(value),
                    stderr=float(error) if finite else None,
                    n=count,
                )
            )
    return found


def _tasks(entry: Entry) -> str:
    """The entry's `pack` as the queue file has it: names of tasks."""
    if entry.pack is None:
        raise PluginError("lm_eval needs a pack", remedy="add `pack: gsm8k`, the names of its tasks, to the entry")
    inside = entry.pack.is_relative_to(entry.base_dir)
    return entry.pack.relative_to(entry.base_dir).as_posix() if inside else str(entry.pack)
