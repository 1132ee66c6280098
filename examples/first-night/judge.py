"""Scores the answers of `eval.py`: the `judge` step.

Two opinions on each answer. The judge model gives a mark from 1 to 5: a grammar allows it nothing but one digit, so
that even a very small model always gives one. And where the pack says what to expect, a plain look for that word in
the answer, which is worth more than the mark of a small model. Writes OUT/reports.jsonl and OUT/scores.csv.
"""

import argparse
import csv
import json
import re
import sys
from pathlib import Path

from eval import ask

TASK = "You grade answers from 1 (wrong) to 5 (right)."
QUESTION = "Question: {}\nExpected: {}\nAnswer: {}"
EXAMPLES = (  # a small model copies a pattern better than it follows an instruction
    ("What is the capital of Italy?", "Rome", "Rome is the capital.", "5"),
    ("What is 4 * 3?", "12", "It is 12.", "5"),
    ("Which animal says meow?", "cat", "The dog barks.", "1"),
    ("What is 6 + 1?", "7", "6 plus 1 is 12.", "1"),
    ("What colour is grass?", "green", "The colour might be green or blue.", "3"),
    ("What is the capital of Peru?", "Lima", "Lima", "5"),
)


def mark(prompt: dict, answer: str, options: argparse.Namespace) -> int:
    """The judge model's mark, 1 to 5."""
    messages = [{"role": "system", "content": TASK}]
    for question, expected, given, digit in EXAMPLES:
        messages.append({"role": "user", "content": QUESTION.format(question, expected, given)})
        messages.append({"role": "assistant", "content": digit})
    expected = prompt.get("expect", ["(not given)"])[0]
    text = QUESTION.format(prompt["prompt"], expected, answer.strip()[:200])  # the start; the rest drowns it
    messages.append({"role": "user", "content": text})
    body = {
        "model": options.model,
        "messages": messages,
        "temperature": 0,
        "max_tokens": 2,
        "grammar": "root ::= [1-5]",  # llama.cpp's own; other servers need another way
    }
    return int(ask(options.endpoint, body, options.timeout_s)["choices"][0]["message"]["content"])


def passed(expect: list, answer: str) -> bool:
    """Whether one of the expected texts stands in the answer as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(text)}(?!\w)", answer, re.IGNORECASE) for text in expect)


def main() -> None:
    """Score every answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack", required=True, type=Path)
    parser.add_argument("--model", required=True, help="the judge")
    parser.add_argument("--out", required=True, type=Path, help="folder with responses.jsonl")
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--timeout-s", type=float, default=120, help="of one request")
    options = parser.parse_args()
    try:
        prompts = {p["id"]: p for p in json.loads(options.pack.read_text(encoding="utf-8"))["prompts"]}
        lines = (options.out / "responses.jsonl").read_text(encoding="utf-8").splitlines()
        answered = [row for row in map(json.loads, lines) if row["ok"]]
        if not answered:
            sys.exit("error: no prompt was answered, so there is nothing to score; see responses.jsonl")
        with (
            (options.out / "reports.jsonl").open("w", encoding="utf-8") as reports,
            (options.out / "scores.csv").open("w", encoding="utf-8", newline="") as scores,
        ):
            table = csv.writer(scores)
            table.writerow(["prompt_id", "judge_score", "passed"])
            for row in answered:
                prompt, text = prompts[row["prompt_id"]], row["response_text"]
                score = mark(prompt, text, options)
                check = passed(prompt["expect"], text) if prompt.get("expect") else None
                report = {"prompt_id": prompt["id"], "judge_score": score, "passed": check, "answer": text}
                print(json.dumps(report, ensure_ascii=False), file=reports, flush=True)
                table.writerow([prompt["id"], score, "" if check is None else str(check).lower()])
                scores.flush()
                print(f"{prompt['id']}: judge {score}, passed {check}", flush=True)
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"error: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
