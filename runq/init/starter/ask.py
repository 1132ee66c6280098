"""Asks a model the questions of a pack through an OpenAI-compatible endpoint, and looks for the expected words.

`runq init` put this file here so that a first night runs with nothing else installed. It is yours to change, or to
replace by an evaluation of yours: see https://github.com/UKGovernmentBEIS/inspect_ai, `runq plugins`, docs/recipes.md.

Writes a row per answer to OUT/responses.jsonl, at once, and OUT/scores.csv in the end. A question that fails is a row
with `ok: false`; the exit code is 1 only when this script itself cannot work. Standard library only.
"""

import argparse
import csv
import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


def ask(question: dict[str, Any], options: argparse.Namespace) -> str:
    """The model's answer; what it only thought does not count.

    Raises:
        OSError: the server refuses, with its own words.
        LookupError, TypeError: its answer has another shape.
    """
    body = {
        "model": options.model,
        "messages": [{"role": "user", "content": question["prompt"]}],
        "temperature": 0,
        "max_tokens": options.max_tokens,
    }
    headers = {"Content-Type": "application/json"}
    key = os.environ.get(options.key_env or "", "")
    if key:
        headers["Authorization"] = f"Bearer {key}"
    url = f"{options.endpoint.rstrip('/')}/chat/completions"
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=headers)  # noqa: S310 - an endpoint
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy sees a request for 127.0.0.1
    try:
        with opener.open(request, timeout=options.timeout_s) as response:
            reply = json.load(response)
    except urllib.error.HTTPError as error:
        raise OSError(f"HTTP {error.code}: {error.read(300).decode(errors='replace')}") from error
    text = reply["choices"][0]["message"].get("content") or ""
    return re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL).strip()


def passed(expected: list[str], answer: str) -> bool:
    """Whether one of the expected texts stands in the answer as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", answer, re.IGNORECASE) for text in expected)


def row_of(question: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """The row of one question."""
    row: dict[str, Any] = {"prompt_id": question["id"], "ok": False, "error": None, "response_text": ""}
    started = time.monotonic()
    try:
        answer = ask(question, options)
        row.update(ok=True, response_text=answer, content_empty=not answer)
        row["passed"] = passed(question["expect"], answer) if question.get("expect") else None
    except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
        row["error"] = f"{type(error).__name__}: {error}"
    row["seconds"] = round(time.monotonic() - started, 3)
    return row


def main() -> None:
    """Ask everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack", required=True, type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True, type=Path, help="folder for responses.jsonl and scores.csv")
    parser.add_argument("--endpoint", required=True, help="for example http://127.0.0.1:11434/v1")
    parser.add_argument("--key-env", help="environment variable that holds the server's key")
    parser.add_argument("--max-tokens", type=int, default=2000, help="room for a thinking model's thoughts too")
    parser.add_argument("--timeout-s", type=float, default=600, help="of one request, loading the model included")
    options = parser.parse_args()
    try:
        pack = json.loads(options.pack.read_text(encoding="utf-8"))
        questions = [prompt for category in pack["categories"] for prompt in category["prompts"]]
        rows = []
        with (options.out / "responses.jsonl").open("w", encoding="utf-8") as file:
            for question in questions:
                row = row_of(question, options)
                rows.append(row)
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
                sys.stdout.write(f"{row['prompt_id']}: {row['error'] or row['response_text']!r}\n")
                sys.stdout.flush()
        with (options.out / "scores.csv").open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["prompt_id", "passed"])
            table.writerows([row["prompt_id"], str(bool(row.get("passed"))).lower()] for row in rows)
        good = sum(1 for row in rows if row.get("passed"))
        sys.stdout.write(f"{good} of {len(rows)} as expected\n")
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"error: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
