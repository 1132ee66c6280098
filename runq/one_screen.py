"""Blocks of lines made to fit one screen: what matters less is counted rather than shown. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

_MATTERS = ("running", "failed", "timeout", "gave_up", "interrupted", "skipped", "pending", "complete")
"""What one looks for first on a screen too small for all."""


@attrs.frozen(kw_only=True)
class Block:
    """Lines that belong together: an entry with what went wrong.

    Args:
        status: how it stands; decides what gives way.
        lines: the first says most.
    """

    status: str
    lines: Sequence[str]


def fitted_blocks(blocks: Sequence[Block], room: int) -> list[str]:
    """The blocks in their order, in so many lines; those that matter least are counted in a last line.

    Args:
        blocks: the entries.
        room: lines there are; at least the line that counts is given.
    """
    if sum(len(block.lines) for block in blocks) <= room:
        return [line for block in blocks for line in block.lines]
    order = sorted(range(len(blocks)), key=lambda at: (_rank(blocks[at].status), at))
    left, shown = room - 1, {}
    for at in order:
        lines = blocks[at].lines
        if left <= 0:
            break
        shown[at] = lines[: min(len(lines), left)]
        left -= len(shown[at])
    hidden = Counter(block.status for at, block in enumerate(blocks) if at not in shown)
    counted = ", ".join(
        f"{count} {status}" for status, count in sorted(hidden.items(), key=lambda item: _rank(item[0]))
    )
    lines = [line for at in sorted(shown) for line in shown[at]]
    return [*lines, f"… and {counted}" if counted else "…"]


def _rank(status: str) -> int:
    return _MATTERS.index(status) if status in _MATTERS else len(_MATTERS)
