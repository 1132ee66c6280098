"""Asks a model every prompt of a pack through an OpenAI-compatible endpoint: the `eval` step.

Writes one row per prompt to OUT/responses.jsonl, at once, so that a killed run keeps what it has. A prompt that fails
is a row with `ok: false`; the exit code is 1 only when this script itself cannot work. Standard library only.
"""

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

SYSTEM = "You are a helpful assistant. Answer briefly."


def ask(endpoint: str, body: dict, timeout_s: float) -> dict:
    """One request to /v1/chat/completions; the server's own words in the error when it refuses."""
    request = urllib.request.Request(
        f"{endpoint.rstrip('/')}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise OSError(f"HTTP {error.code}: {error.read(300).decode(errors='replace')}") from error


def answer(prompt: dict, options: argparse.Namespace) -> dict:
    """The row of one prompt."""
    body = {
        "model": options.model,
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt["prompt"]}],
        "temperature": 0,
        "seed": options.seed,
        "max_tokens": options.max_tokens,
    }
    row = {"prompt_id": prompt["id"], "ok": False, "error": None, "response_text": "", "content_empty": True}
    started = time.monotonic()
    try:
        reply = ask(options.endpoint, body, options.timeout_s)
        text = reply["choices"][0]["message"].get("content") or ""
        timings = reply.get("timings") or {}  # llama.cpp reports these; other servers may not
        row.update(ok=True, response_text=text, content_empty=not text.strip())
        row["decode_tps"] = timings.get("predicted_per_second")
        row["ttft_s"] = timings["prompt_ms"] / 1000 if "prompt_ms" in timings else None
    except (OSError, ValueError, LookupError, AttributeError, TypeError) as error:
        row["error"] = f"{type(error).__name__}: {error}"
    row["seconds"] = round(time.monotonic() - started, 3)
    return row


def main() -> None:
    """Answer the whole pack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack", required=True, type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True, type=Path, help="folder for responses.jsonl")
    parser.add_argument("--endpoint", required=True, help="for example http://127.0.0.1:8099/v1")
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--timeout-s", type=float, default=120, help="of one request")
    options = parser.parse_args()
    try:
        prompts = json.loads(options.pack.read_text(encoding="utf-8"))["prompts"]
        with (options.out / "responses.jsonl").open("w", encoding="utf-8") as file:
            for prompt in prompts:
                row = answer(prompt, options)
                print(json.dumps(row, ensure_ascii=False), file=file, flush=True)
                print(f"{row['prompt_id']}: {row['error'] or row['response_text']!r}", flush=True)
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"error: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
