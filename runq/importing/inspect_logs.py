"""Inspect's logs: model, task, status, duration and scores, from the header of a log.

A `.eval` log is a zip archive with a `header.json`; a `.json` log is one document (inspect.aisi.org.uk/eval-logs.html).
Newer archives are packed with zstd, which Python reads from 3.14 on; before that Inspect's own reader is asked, in the
interpreter that has it.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runq_schemas.event_parts import ImportedEntry, ImportedStep, Metric

HEADER_LIMIT_BYTES = 64 * 2**20
JSON_LIMIT_BYTES = 512 * 2**20
"""A `.json` log holds every sample; a larger one is not read here."""

READ_S = 300.0
"""Seconds for Inspect's reader: its import takes some, each header a fraction of one."""

_IS_LOG = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')

_READER = """
import json, sys
from inspect_ai.log import read_eval_log
for path in json.load(sys.stdin):
    try:
        log = read_eval_log(path, header_only=True).model_dump_json()
    except Exception as error:
        log = json.dumps({"unreadable": f"{type(error).__name__}: {error}"})
    print("runq-log", log)
"""

PROVIDERS = ("openai-api", "ollama", "vllm", "hf", "llama-cpp-python", "sglang", "openai", "transformer_lens")
"""Inspect's providers of local models (inspect.aisi.org.uk/providers.html): the part before a model's own id."""

STATUSES = {"success": "ok", "error": "failed", "cancelled": "interrupted"}


class NeedsReaderError(Exception):
    """The log is packed in a way that only Inspect's own reader reads."""


class UnreadableError(Exception):
    """The log cannot be read; the message says why."""


def is_log(path: Path) -> bool:
    """Whether a `.json` file begins as Inspect's logs do."""
    try:
        with path.open("rb") as file:
            return _IS_LOG.match(file.read(200)) is not None
    except OSError:
        return False


def header_of(path: Path) -> Mapping[str, Any]:
    """The header of a log.

    Raises:
        NeedsReaderError: its archive is packed with zstd.
        UnreadableError: it is none, or broken.
    """
    try:
        if path.suffix == ".json":
            if path.stat().st_size > JSON_LIMIT_BYTES:
                raise UnreadableError(f"it is larger than {JSON_LIMIT_BYTES >> 20} MB")
            data = json.loads(path.read_bytes())
        else:
            with zipfile.ZipFile(path) as archive:
                if archive.getinfo("header.json").file_size > HEADER_LIMIT_BYTES:
                    raise UnreadableError("its header is too large")
                data = json.loads(archive.read("header.json"))
    except NotImplementedError as error:
        raise NeedsReaderError from error
    except KeyError as error:
        raise UnreadableError("it has no header: its eval never ended") from error
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise UnreadableError(f"it is no log of Inspect: {error}") from error
    if not isinstance(data, Mapping) or not isinstance(data.get("eval"), Mapping):
        raise UnreadableError("it is no log of Inspect")
    return data


def read_with_inspect(paths: Sequence[Path], python: str) -> list[Mapping[str, Any] | str]:
    """The headers by Inspect's own reader, or why one cannot be read.

    Raises:
        UnreadableError: the interpreter has no Inspect, or it failed.
    """
    try:
        ran = subprocess.run(
            [python, "-c", _READER],
            input=json.dumps([str(path) for path in paths]),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=READ_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnreadableError(f"{python}: {error}") from error
    lines = [line.removeprefix("runq-log ") for line in ran.stdout.splitlines() if line.startswith("runq-log ")]
    if len(lines) != len(paths):
        why = next((line for line in reversed(ran.stderr.splitlines()) if line.strip()), f"exit {ran.returncode}")
        raise UnreadableError(f"Inspect's reader failed in {python}: {why}")
    headers = [json.loads(line) for line in lines]
    return [str(header["unreadable"]) if "unreadable" in header else header for header in headers]


def entry_of(header: Mapping[str, Any]) -> ImportedEntry:
    """The entry: what runq calls the model and the pack, the eval with its duration, the judge with the scores."""
    spec = header["eval"]
    status = STATUSES.get(str(header.get("status")), "failed")
    reason = "" if status == "ok" else _first_line(header.get("error"))
    steps = [ImportedStep(name="eval", status=status, seconds=_seconds(header.get("stats")), reason=reason)]
    metrics = tuple(_metrics(header.get("results")))
    if status == "ok" and metrics:
        # runq's `inspect` harness scores in a step of its own, whose duration an Inspect log does not tell apart.
        steps.append(ImportedStep(name="judge", status="ok", metrics=metrics))
    return ImportedEntry(model_id=model_id(str(spec.get("model"))), config=None, pack=_task(spec), steps=tuple(steps))


def model_id(name: str) -> str:
    """A model's id without Inspect's provider: ``ollama/qwen3:8b``, ``openai-api/lmstudio/qwen/qwen3-8b``."""
    provider, slash, rest = name.partition("/")
    if not slash or provider not in PROVIDERS:
        return name
    return rest.partition("/")[2] or rest if provider == "openai-api" else rest


def measured_at(header: Mapping[str, Any]) -> str | None:
    """When the eval was made, in UTC."""
    stats = header.get("stats")
    told = (stats.get("completed_at") if isinstance(stats, Mapping) else None) or header["eval"].get("created")
    moment = _moment(told)
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")


def _task(spec: Mapping[str, Any]) -> str | None:
    task, file = spec.get("task"), spec.get("task_file")
    if isinstance(file, str) and file:
        return f"{file}@{task}" if task else file
    return str(task) if task else None


def _seconds(stats: Any) -> float | None:
    if not isinstance(stats, Mapping):
        return None
    begun, ended = _moment(stats.get("started_at")), _moment(stats.get("completed_at"))
    if begun is None or ended is None or ended < begun:
        return None
    return (ended - begun).total_seconds()


def _moment(text: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _metrics(results: Any) -> list[Metric]:
    """Every score as ``scorer/metric``; a standard error stands with the metric before it, as in the log."""
    found: dict[str, Metric] = {}
    for score in (results.get("scores") or []) if isinstance(results, Mapping) else []:
        group = score["name"] if score.get("reducer") in (None, "mean") else f"{score['name']}/{score['reducer']}"
        last = ""
        for key, metric in (score.get("metrics") or {}).items():
            value = metric.get("value")
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                continue
            if str(metric.get("name")).rpartition("/")[2] == "stderr" and last:
                found[last] = Metric(name=last, value=found[last].value, stderr=float(value), n=found[last].n)
                continue
            last = f"{group}/{key}"
            found[last] = Metric(name=last, value=float(value), n=score.get("scored_samples"))
    return list(found.values())


def _first_line(error: Any) -> str:
    text = str(error.get("message") or "") if isinstance(error, Mapping) else ""
    return text.strip().partition("\n")[0][:300]
