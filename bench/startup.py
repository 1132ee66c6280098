"""What a user waits for at the prompt: the start of commands, beside bare Python's and other programs'."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import journals, queues
from bench.measure import Table, alternate, clean_environment, seconds
from bench.peers import MissingPeerError, python_of, runq_program, script_of

NIGHTS = 1_000
BARE = "python -c pass"
PEERS = {
    "doit": ["doit", "list"],
    "sqlite-utils": ["sqlite-utils", "--help"],
    "datasette": ["datasette", "--help"],
    "llm": ["llm", "--help"],
    "snakemake": ["snakemake", "--help"],
}
LIMITS = {
    "runq --help": "at most 5.5",
    f"runq status, {NIGHTS:,} nights": "at most 7",
    "runq plan, three entries": "at most 18",
}


def run(*, quick: bool) -> list[Table]:
    """Start-up, each in a round with bare Python just before it."""
    rounds = 5 if quick else 25
    with tempfile.TemporaryDirectory(prefix="runq-bench-") as name:
        folder = Path(name)
        runs = folder / "runs"
        # Three entries a night: what a night of this file leaves.
        journals.write(runs / "journal.db", events=NIGHTS * (3 * journals.EVENTS_AN_ENTRY + 2), entries=3)
        queue = queues.like_touchstone(folder / "queue.yaml", 3, files=True)
        commands: dict[str, Sequence[str]] = {
            "runq --help": ["--help"],
            f"runq status, {NIGHTS:,} nights": ["status", "--runs", str(runs)],
            "runq plan, three entries": ["plan", str(queue), "--runs", str(folder / "empty")],
            f"runq nights, {NIGHTS:,} nights": ["nights", "--runs", str(runs)],
        }
        table = Table(title="Start-up, beside bare Python's (`python -c pass` of the same environment)")
        for label, words in commands.items():
            _add(table, label, "runq", [str(runq_program()), *words], folder, rounds)
        for peer, words in PEERS.items():
            try:
                argv = [str(script_of(peer, words[0])), *words[1:]]
                _add(table, " ".join(words), peer, argv, queues.for_doit(folder), max(3, rounds // 2))
            except MissingPeerError as error:
                table.notes.append(f"- left out: {error}")
    return [table]


def _add(table: Table, label: str, peer: str, argv: Sequence[str], folder: Path, rounds: int) -> None:
    cases = {BARE: _case([str(python_of(peer)), "-c", "pass"], folder), label: _case(argv, folder)}
    alternate(cases, 1)  # the first start compiles what no start after it does
    found = alternate(cases, rounds)
    if not table.rows:
        table.add(BARE, found.median(BARE) * 1e3, "ms", ratio=1.0)
    table.add(label, found.median(label) * 1e3, "ms", ratio=found.ratio(label, BARE), limit=LIMITS.get(label, ""))


def _case(argv: Sequence[str], folder: Path) -> Callable[[], float]:
    return lambda: seconds(argv, cwd=folder, env=clean_environment())
