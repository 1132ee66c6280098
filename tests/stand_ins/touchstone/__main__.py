"""A stand-in for touchstone: honours its queue command line and writes its files. Model ids script what it does.

An id is one trait or several joined by ``+``: ``all-fail`` answers nothing, ``half-fail`` every second prompt,
``crash`` exits 3, ``no-artifact`` exits 0 without files, ``wait`` waits until the file ``$TOUCHSTONE_GO`` exists,
``sampler`` leaves a process of a session of its own behind (pid in ``sampler.pid``). A judge model id does the same
for the judge; with ``holistic-error`` it leaves an ``_error`` report and exits 0.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path


def parse():
    parser = argparse.ArgumentParser(prog="touchstone", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    evaluate = commands.add_parser("eval", allow_abbrev=False)
    evaluate.add_argument("--config", required=True)
    evaluate.add_argument("--pack", required=True)
    evaluate.add_argument("--models-json", required=True, type=json.loads)
    evaluate.add_argument("--run-dir", required=True, type=Path)
    evaluate.add_argument("--emit-events", action="store_true", required=True)
    judge = commands.add_parser("judge", allow_abbrev=False)
    judge.add_argument("--bundle", required=True, type=Path)
    judge.add_argument("--judge-config", required=True)
    judge.add_argument("--judge-model")
    judge.add_argument("--emit-events", action="store_true", required=True)
    return parser.parse_args()


def behave(model_id, folder):
    print("touchstone", *sys.argv[1:], flush=True)
    traits = set(model_id.split("+"))
    if "crash" in traits:
        print("cannot reach the endpoint", file=sys.stderr)
        sys.exit(3)
    if "sampler" in traits:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        (folder / "sampler.pid").write_text(str(child.pid))
    if "wait" in traits:
        go = Path(os.environ["TOUCHSTONE_GO"])
        while not go.exists():
            time.sleep(0.02)
    if "no-artifact" in traits:
        sys.exit(0)
    return traits


def evaluate(args):
    (model,) = args.models_json
    traits = behave(model["id"], args.run_dir)
    assert Path(args.config).exists() and Path(args.pack).exists()
    rows = []
    for number in range(4):
        ok = "all-fail" not in traits and not ("half-fail" in traits and number % 2)
        rows.append(
            {
                "prompt_id": f"p{number}",
                "model": model,
                "ok": ok,
                "error": None if ok else "connection refused",
                "content_empty": not ok,
                "response_text": f"answer {number}" if ok else "",
            }
        )
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (args.run_dir / "responses.jsonl").write_text(text)
    (args.run_dir / "bundle.json").write_text(json.dumps({"model": model}))
    (args.run_dir / "resources.jsonl").write_text('{"baseline": true}\n')


def judge(args):
    traits = behave(args.judge_model or "", args.bundle)
    answers = (args.bundle / "responses.jsonl").read_text().splitlines()
    judgements = args.bundle / "judgements.jsonl"
    known = judgements.read_text().splitlines() if judgements.exists() else []
    with judgements.open("a") as stream:
        for number in range(len(known), len(answers)):
            stream.write(json.dumps({"prompt": number, "judge": Path(args.judge_config).read_text()}) + "\n")
    rows = judgements.read_text().splitlines()
    reports = [{"prompt": json.loads(row)["prompt"], "score": 4} for row in rows]
    if "holistic-error" in traits:
        reports.append({"_error": "the last call timed out"})
    (args.bundle / "reports.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reports))
    (args.bundle / "scores.csv").write_text("dimension,score\n" + "quality,4\n")
    (args.bundle / "bundle.json").write_text(json.dumps({"judged": True}))


arguments = parse()
evaluate(arguments) if arguments.command == "eval" else judge(arguments)
