"""Injects faults into nights and checks that every law holds:  python -m bench.faults --runs 500 --seed 1

Each run makes by its seed a queue of small real steps, which succeed, fail, hang, fork, ignore SIGTERM or end by a
signal, and a few faults for its runners: kill -9 at any event or call, signals, full and failing disks, clocks that
jump, plugins that hang, a second runner. It then resumes until the night is done and checks the laws (docs/laws.md). A
run that broke one is kept below --folder; its seed plays it again:

    python -m bench.faults --runs 1 --seed SEED --keep

Ends with 1 when a law broke.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from bench.faults import one_run, runner
from bench.faults.one_run import LAWS, OWN_LAWS, Outcome

QUICK_RUNS = 20


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100, help="how many runs [default: 100]")
    parser.add_argument("--seed", type=int, default=1, help="the first run's seed; each further one counts up [1]")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time [2]")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs, as the test suite does")
    parser.add_argument("--folder", type=Path, help="where the runs are made [a temporary folder]")
    parser.add_argument("--keep", action="store_true", help="keep the folders of good runs too, and tell their story")
    parser.add_argument("--json", action="store_true", help="print one line of JSON a run on standard output")
    return parser.parse_args()


def play(seeds: Iterable[int], folder: Path, *, jobs: int, keep: bool = False) -> Iterator[Outcome]:
    """Play the runs of these seeds, so many at a time; outcomes come as they end."""
    runner.preload()
    work = [(seed, folder, keep) for seed in seeds]
    if jobs == 1:
        yield from map(_play_one, work)
        return
    # fork: a worker has imported everything already, and has no threads that a fork could tear.
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(_play_one, work)


def _play_one(work: tuple[int, Path, bool]) -> Outcome:
    seed, folder, keep = work
    return one_run.run(seed, folder, keep=keep)


@attrs.define
class Tally:
    """What a campaign has come to so far."""

    runs: int = 0
    runners: int = 0
    events: int = 0
    injected: collections.Counter[str] = attrs.field(factory=collections.Counter)
    undisturbed: int = 0
    failed: list[Outcome] = attrs.field(factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count a run."""
        self.runs += 1
        self.runners += outcome.runners
        self.events += outcome.events
        self.injected.update(outcome.injected)
        self.undisturbed += not outcome.injected
        if outcome.broken:
            self.failed.append(outcome)

    def lines(self) -> Iterator[str]:
        """The tables."""
        yield "faults that happened:"
        yield from one_run.as_lines(dict(sorted(self.injected.items(), key=lambda item: (-item[1], item[0]))))
        yield from one_run.as_lines({"runs without any": self.undisturbed})
        yield ""
        yield "laws:"
        for law in (*LAWS, *OWN_LAWS):
            breaking = sum(law in outcome.broken for outcome in self.failed)
            yield f"  {self.runs - breaking:>5} of {self.runs}  {law}"
        yield ""
        yield f"{self.runs - len(self.failed)} of {self.runs} keep every law"


def tell_failure(outcome: Outcome, folder: Path) -> None:
    """Say what broke and how to see it again."""
    print(f"\nseed {outcome.seed} broke {len(outcome.broken)} law(s)", file=sys.stderr)
    for law, breaches in outcome.broken.items():
        for breach in breaches[:5]:
            print(f"  {law}: {breach}", file=sys.stderr)
    for line in outcome.told:
        print(f"  | {line}", file=sys.stderr)
    print(f"  its folder: {folder / f'seed-{outcome.seed}'}", file=sys.stderr)
    print(f"  again: python -m bench.faults --runs 1 --seed {outcome.seed} --keep\n", file=sys.stderr, flush=True)


def main() -> int:
    """Run the campaign. Returns the exit code."""
    asked = arguments()
    runs = QUICK_RUNS if asked.quick else asked.runs
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="runq-faults-"))
    began, tally = time.monotonic(), Tally()
    seeds = range(asked.seed, asked.seed + runs)
    for outcome in play(seeds, folder, jobs=min(asked.jobs, runs), keep=asked.keep):
        tally.add(outcome)
        if outcome.broken:
            tell_failure(outcome, folder)
        elif asked.keep:
            print("\n".join(outcome.told), file=sys.stderr)
        if asked.json:
            print(json.dumps(attrs.asdict(outcome)), flush=True)
        if tally.runs % 25 == 0 or tally.runs == runs:
            took_s = time.monotonic() - began
            print(
                f"{tally.runs} of {runs} runs, {len(tally.failed)} broke a law, {took_s:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    took_s = time.monotonic() - began
    print("\n".join(tally.lines()), file=sys.stderr if asked.json else sys.stdout)
    more = f"{tally.runners} runners, {tally.events} events, {took_s:.0f} s, {took_s / runs:.2f} s a run"
    print(f"seeds {asked.seed} to {asked.seed + runs - 1}: {more}", file=sys.stderr if asked.json else sys.stdout)
    if not tally.failed and not asked.keep and asked.folder is None:
        folder.rmdir()
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
