"""Runs Inspect's own commands for one step, and writes down what the log says in a form that needs no Inspect to read.

`eval`: `inspect eval --no-score`, or `inspect eval-retry` where an attempt of the same content was cut off.
`judge`: `inspect score` on the log, and for a pack each dimension over all answers.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from driver_key import read_key, split

ANSWERS, SCORED = "answers.eval", "scored.eval"
EVAL_JSON, JUDGE_JSON = "inspect-eval.json", "inspect-judge.json"
STARTED = "inspect-started.json"
RESPONSES, REPORTS, SCORES = "responses.jsonl", "reports.jsonl", "scores.csv"
SAMPLES = "sample-scores.jsonl"
LOGS = "logs"

ALWAYS = ["--display", "plain", "--log-buffer", "1"]
"""Every sample on disk when it is done: what a crash leaves is what a retry need not repeat."""


def inspect(*words: str) -> int:
    """Run one of Inspect's commands with this interpreter. Returns its exit code."""
    argv = [sys.executable, "-m", "inspect_ai", *words]
    print("$", " ".join(argv[1:]), flush=True)
    return subprocess.run(argv, check=False).returncode


def endpoint(name: str, url: str, key: str) -> None:
    """Tell Inspect's provider `openai-api` where a service is: by the environment, where nobody else can look."""
    os.environ[f"{name.upper()}_BASE_URL"] = url
    os.environ[f"{name.upper()}_API_KEY"] = read_key(key)


def run_eval(given: argparse.Namespace) -> int:
    """The step `eval`."""
    bundle = Path(given.bundle)
    endpoint("runq", given.base_url, given.key)
    logs = bundle / LOGS
    settings = json.loads(given.settings)
    (bundle / STARTED).write_text(json.dumps(settings, sort_keys=True), encoding="utf-8")
    earlier = cut_off(bundle, settings)
    code = 1
    if earlier is not None:
        print(f"going on with {earlier}", flush=True)
        code = inspect("eval-retry", str(earlier), "--log-dir", str(logs), "--no-score", *ALWAYS)
        if code != 0:
            print("Inspect could not go on with it; starting anew", flush=True)
            shutil.rmtree(logs, ignore_errors=True)
    if code != 0:
        words = ["eval", given.task, "--model", f"openai-api/runq/{given.model}", "--no-score", "--no-fail-on-error"]
        for name, value in json.loads(given.task_args).items():
            words += ["-T", f"{name}={json.dumps(value) if not isinstance(value, str) else value}"]
        code = inspect(*words, "--log-dir", str(logs), *ALWAYS, *given.args)
    log = newest(logs)
    if code != 0 or log is None:
        print("inspect eval failed", file=sys.stderr)
        return code or 1
    shutil.copyfile(log, bundle / ANSWERS)
    digest = told(bundle / ANSWERS)
    if given.pack:
        write_rows(bundle / RESPONSES, responses(bundle / ANSWERS))
    write_json(bundle / EVAL_JSON, digest)
    return 0


def run_judge(given: argparse.Namespace) -> int:
    """The step `judge`."""
    bundle = Path(given.bundle)
    words = []
    if given.model:
        endpoint("judge", given.base_url, given.key)
        words = ["--model-role", f"grader=openai-api/judge/{given.model}"]
    # The model of the eval is gone; its name is enough for a scorer that asks no model.
    endpoint("runq", given.base_url or "http://127.0.0.1:9/v1", "")
    code = inspect(
        "score", str(bundle / ANSWERS), "--action", "overwrite", "--output-file", str(bundle / SCORED),
        "--display", "plain", *words, *given.args,
    )  # fmt: skip
    if code != 0:
        return code
    digest = told(bundle / SCORED)
    if given.pack:
        reports = judge_pack(given.pack, bundle / SCORED, f"openai-api/judge/{given.model}")
        write_rows(bundle / REPORTS, reports)
        write_scores(bundle / SCORES, bundle / SCORED, reports)
        digest["metrics"] += [metric for report in reports for metric in report["metrics"]]
    write_rows(bundle / SAMPLES, sample_scores(bundle / SCORED, digest["metrics"]))
    write_json(bundle / JUDGE_JSON, digest)
    return 0


def cut_off(bundle: Path, settings: Any) -> Path | None:
    """The log with the most samples of an attempt of the same content that was cut off, in a folder beside this one."""
    from inspect_ai.log import read_eval_log_sample_summaries

    stem = bundle.name.partition("_a")[0] if "_a" in bundle.name else bundle.name
    best: tuple[int, Path] | None = None
    for other in sorted(bundle.parent.glob("*")):
        started = other / STARTED
        if other == bundle or not other.name.startswith(stem) or not started.is_file():
            continue
        if json.loads(started.read_text(encoding="utf-8")) != settings or (other / EVAL_JSON).exists():
            continue
        for log in (other / LOGS).glob("*.eval"):
            try:
                done = sum(1 for sample in read_eval_log_sample_summaries(str(log)) if sample.completed)
            except Exception as error:  # a log cut off in its first write is no log: the next one may be
                print(f"{log} cannot be read: {error}", flush=True)
                continue
            if done and (best is None or done >= best[0]):
                best = (done, log)
    return best[1] if best else None


def newest(logs: Path) -> Path | None:
    """The log written last."""
    return max(logs.glob("*.eval"), key=lambda path: path.stat().st_mtime_ns, default=None)


def told(path: Path) -> dict[str, Any]:
    """What a log says, without its samples' texts."""
    from inspect_ai.log import read_eval_log

    log = read_eval_log(str(path))
    samples = log.samples or []
    failed = [sample for sample in samples if sample.error is not None]
    wanted = (log.eval.dataset.samples or 0) * (log.eval.config.epochs or 1)
    limit = log.eval.config.limit
    metrics = []
    for score in log.results.scores if log.results else []:
        values = {name: metric.value for name, metric in score.metrics.items()}
        main = next((name for name in values if name not in ("stderr", "std", "var")), None)
        for name, value in values.items():
            if name == "stderr" or not math.isfinite(value):
                continue
            metrics.append(
                {
                    "name": f"{score.name}/{name}",
                    "value": value,
                    "stderr": finite(values.get("stderr")) if name == main else None,
                    "n": score.scored_samples,
                }
            )
    return {
        "status": log.status,
        "samples": len(samples),
        "expected": wanted,
        "limit": limit,
        "failed": len(failed),
        "empty": sum(1 for sample in samples if sample.error is None and not sample.output.completion.strip()),
        "first_error": failed[0].error.message if failed and failed[0].error else "",
        "error": log.error.message if log.error else "",
        "metrics": metrics,
    }


def finite(value: Any) -> float | None:
    """The number, if it is one that JSON has."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def responses(path: Path) -> Iterator[dict[str, Any]]:
    """A row per answer, with the names that touchstone gives them."""
    from inspect_ai.log import read_eval_log

    log = read_eval_log(str(path))
    for sample in log.samples or []:
        text, known = sample.output.completion, sample.metadata or {}
        seconds = sample.output.time
        tokens = sample.output.usage.output_tokens if sample.output.usage else None
        yield {
            "model_id": log.eval.model.removeprefix("openai-api/runq/"),
            "prompt_id": known.get("prompt_id", str(sample.id)),
            "variant": known.get("variant", ""),
            "repeat": known.get("repeat", sample.epoch),
            "category": known.get("category", ""),
            "ok": sample.error is None,
            "error": sample.error.message if sample.error else None,
            "content_empty": sample.error is None and not text.strip(),
            "response_text": text,
            "seconds": seconds,
            "completion_tokens": tokens,
        }


def sample_scores(path: Path, metrics: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each answer's own figure, under the name of its scorer's first metric, with its question: a pack's prompt with a
    variant, else the sample."""
    from inspect_ai.log import read_eval_log
    from inspect_ai.scorer import value_to_float

    first: dict[str, str] = {}
    for metric in metrics:
        first.setdefault(metric["name"].rpartition("/")[0], metric["name"])
    number = value_to_float()
    for sample in read_eval_log(str(path)).samples or []:
        for scorer, score in (sample.scores or {}).items():
            if scorer not in first or not isinstance(score.value, str | int | float):
                continue
            value = finite(number(score.value) if isinstance(score.value, str) else float(score.value))
            if value is not None:
                known = sample.metadata or {}
                packed = "prompt_id" in known and "variant" in known
                question = f"{known['prompt_id']}/{known['variant']}" if packed else str(sample.id)
                answer = f"{known.get('repeat', '')}#{sample.epoch}"
                yield {"score": first[scorer], "question": question, "answer": answer, "value": value}


def judge_pack(pack_path: str, scored: Path, judge: str) -> list[dict[str, Any]]:
    """A report per variant: each dimension over all its answers, their weighted mean, and the knock-out rule."""
    import asyncio

    from inspect_ai.log import read_eval_log
    from inspect_pack import read_pack

    pack = read_pack(pack_path)
    log = read_eval_log(str(scored))
    variants: dict[str, list[Any]] = {}
    for sample in log.samples or []:
        variants.setdefault((sample.metadata or {}).get("variant", ""), []).append(sample)
    return [
        asyncio.run(report(pack, variant, variants[variant], judge, model=log.eval.model))
        for variant in sorted(variants)
    ]


async def report(pack: dict[str, Any], variant: str, samples: list[Any], judge: str, model: str) -> dict[str, Any]:
    """The report on one variant."""
    from inspect_ai.model import get_model
    from inspect_pack import dimension_prompt, verdict

    grader = get_model(judge)
    answers = [
        {"prompt": sample.metadata["prompt"], "text": sample.output.completion}
        for sample in samples
        if sample.error is None
    ]
    dimensions: dict[str, dict[str, Any]] = {}
    for dimension in pack.get("dimensions") or ():
        output = await grader.generate(dimension_prompt(dimension, answers, pack.get("scale") or {}))
        found = verdict(output.completion)
        if found is None:
            return {
                "variant": variant,
                "_error": f"no score for {dimension['id']}: {output.completion[:200]}",
                "metrics": [],
            }
        dimensions[str(dimension["id"])] = {"score": found[0], "weight": float(dimension.get("weight", 1)), **found[1]}
    weights = sum(one["weight"] for one in dimensions.values())
    weighted = sum(one["score"] * one["weight"] for one in dimensions.values()) / weights if weights else None
    knocked_out = knock_out(pack.get("ko_rule") or {}, dimensions, samples)
    metrics = [{"name": f"{variant}/{name}", "value": one["score"], "stderr": None, "n": len(answers)}
               for name, one in dimensions.items()]  # fmt: skip
    if weighted is not None:
        metrics.insert(0, {"name": f"{variant}/weighted", "value": weighted, "stderr": None, "n": len(answers)})
    return {
        "model_id": model.removeprefix("openai-api/runq/"),
        "variant": variant,
        "dimensions": dimensions,
        "weighted_score": weighted,
        "knocked_out": bool(knocked_out),
        "knock_out_reason": knocked_out,
        "answers": len(answers),
        "metrics": metrics,
    }


def knock_out(rule: dict[str, Any], dimensions: dict[str, dict[str, Any]], samples: list[Any]) -> str:
    """Why the model is out; empty when it is not: a dimension below its threshold, or a red flag on a prompt named."""
    dimension, threshold = rule.get("dimension"), rule.get("threshold")
    if dimension in dimensions and threshold is not None and dimensions[dimension]["score"] < float(threshold):
        return f"{dimension} {dimensions[dimension]['score']:g} is below {float(threshold):g}"
    named = {str(one) for one in rule.get("red_flag_prompts") or ()}
    for sample in samples:
        if sample.metadata["prompt_id"] in named:
            for score in (sample.scores or {}).values():
                if (score.metadata or {}).get("red_flags"):
                    return f"a red flag on {sample.metadata['prompt_id']}"
    return ""


def write_scores(path: Path, scored: Path, reports: list[dict[str, Any]]) -> None:
    """A line per answer and one per dimension."""
    from inspect_ai.log import read_eval_log

    log = read_eval_log(str(scored))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["model_id", "variant", "kind", "id", "repeat", "score", "green_flags", "red_flags", "why"])
        model = log.eval.model.removeprefix("openai-api/runq/")
        for sample in log.samples or []:
            known = sample.metadata or {}
            for score in (sample.scores or {}).values():
                more = score.metadata or {}
                flags = ["; ".join(map(str, more.get(kind) or ())) for kind in ("green_flags", "red_flags")]
                row = [model, known["variant"], "answer", known["prompt_id"], known["repeat"], score.value]
                writer.writerow([*row, *flags, more.get("why", "")])
        for one in reports:
            for name, dimension in one.get("dimensions", {}).items():
                writer.writerow([model, one["variant"], "dimension", name, "", dimension["score"], "", "",
                                 dimension.get("why", "")])  # fmt: skip


def write_rows(path: Path, rows: Any) -> None:
    """A file of JSON lines."""
    with path.open("w", encoding="utf-8") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_json(path: Path, data: Any) -> None:
    """A JSON file, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")
    part.replace(path)


def main() -> int:
    """Read the command line and run the step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("eval", "judge"))
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--task", default="")
    parser.add_argument("--task-args", default="{}")
    parser.add_argument("--settings", default="{}")
    parser.add_argument("--model", default="")
    parser.add_argument("--base-url", default="")
    parser.add_argument("--key", default="")
    parser.add_argument("--pack", default="")
    own, more = split(sys.argv[1:])
    given = parser.parse_args(own, argparse.Namespace(args=more))
    return run_judge(given) if given.step == "judge" else run_eval(given)


if __name__ == "__main__":
    sys.exit(main())
