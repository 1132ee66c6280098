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


def like_touchstone(path: Path, entries: int) -> Path:
    """Entries as they stand in touchstone's queue files: five keys, one of them a mapping in flow style."""
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
    return path
