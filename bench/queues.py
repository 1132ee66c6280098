"""Queue files of any size."""

from __future__ import annotations

from pathlib import Path

QUICK_SETTLE = "settle: {timeout_s: 1, plateau_polls: 1, poll_interval_s: 0.01, epsilon_mb: 100000}"


def of_steps(path: Path, steps: int) -> Path:
    """One entry with so many trivial steps; each writes the same small file."""
    lines = [
        f"defaults: {{reset: none, {QUICK_SETTLE}}}",
        "entries:",
        "  - model: m",
        "    harness:",
        "      harness: command",
        "      steps:",
    ]
    lines += [
        f"        s{number}: {{argv: [/usr/bin/touch, '{{bundle}}/out'], artifacts: [out]}}" for number in range(steps)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def of_entries(path: Path, entries: int) -> Path:
    """So many entries of two trivial steps each."""
    lines = [
        "defaults:",
        "  reset: none",
        f"  {QUICK_SETTLE}",
        "  harness:",
        "    harness: command",
        "    steps:",
        "      eval: {argv: [/usr/bin/touch, '{bundle}/out'], artifacts: [out]}",
        "      judge: {argv: [/usr/bin/touch, '{bundle}/scores'], artifacts: [scores]}",
        "entries:",
        *(f"  - model: m{number}" for number in range(entries)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def of_sleeps(path: Path, entries: int, seconds: float) -> Path:
    """So many entries of two steps that take so long."""
    lines = [
        "defaults:",
        "  reset: none",
        f"  {QUICK_SETTLE}",
        "  harness:",
        "    harness: command",
        "    steps:",
        f"      eval: {{argv: [sh, -c, 'sleep {seconds}; touch {{bundle}}/out'], artifacts: [out]}}",
        f"      judge: {{argv: [sh, -c, 'sleep {seconds}; touch {{bundle}}/scores'], artifacts: [scores]}}",
        "entries:",
        *(f"  - model: m{number}" for number in range(entries)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def like_touchstone(path: Path, entries: int, *, files: bool = False) -> Path:
    """Entries as they stand in touchstone's queue files: five keys, one of them a mapping in flow style.

    ``files``: make the files that they name too, so that the queue can be planned.
    """
    lines = ["entries:"]
    for number in range(entries):
        lines += [
            "  - config: config.m5-lmstudio.yaml",
            f"    pack: packs/office{number}.yaml",
            f'    model: {{ id: "google/gemma-4-12b-{number}", reasoning_headroom_tokens: 2000 }}',
            "    judge_config: judge.yaml",
            '    judge_model: "qwen/qwen3.6-27b"',
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if files:
        for name in (
            "config.m5-lmstudio.yaml",
            "judge.yaml",
            *(f"packs/office{number}.yaml" for number in range(entries)),
        ):
            (path.parent / name).parent.mkdir(exist_ok=True)
            (path.parent / name).write_text("id: office\n", encoding="utf-8")
    return path


def for_doit(folder: Path) -> Path:
    """A folder with three tasks for doit."""
    folder = folder / "doit"
    folder.mkdir(exist_ok=True)
    lines = ["def task_step():", "    for n in range(3):", "        yield {'name': str(n), 'actions': ['true']}"]
    (folder / "dodo.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
