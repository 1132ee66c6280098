"""Figures as a curve of characters, one line high. Pure."""

from __future__ import annotations

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
"""Block elements of an eighth to eight eighths (Unicode, U+2581 to U+2588)."""

ASCII_BARS = "_.-=+*%#"

FLAT_MB = 64.0
"""Figures that differ by less are drawn flat at the bottom: a machine at rest wavers by that much, and a curve that
fills its height with it would look like a model that loads."""


def sparkline(
    values: Sequence[float],
    width: int,
    *,
    low: float | None = None,
    high: float | None = None,
    ascii_only: bool = False,
) -> str:
    """The values from left to right; each column shows the highest of its share, so that no peak is lost.

    Args:
        values: MB, evenly spaced.
        width: columns at most; fewer when there are fewer values.
        low: what the bottom stands for; by default the lowest value.
        high: what the top stands for; by default the highest value.
        ascii_only: for a terminal that shows no others.
    """
    bars = ASCII_BARS if ascii_only else BARS
    shown = highest_of_each_share(values, width)
    if not shown:
        return ""
    bottom = min(shown) if low is None else min(low, *shown)
    top = max(shown) if high is None else max(high, *shown)
    span = top - bottom
    if span < FLAT_MB:
        return bars[0] * len(shown)
    return "".join(bars[min(int((value - bottom) / span * len(bars)), len(bars) - 1)] for value in shown)


def highest_of_each_share(values: Sequence[float], shares: int) -> list[float]:
    """The values cut into so many shares of equal length, or one each when there are fewer: the highest of each."""
    count = min(shares, len(values))
    return [max(values[i * len(values) // count : (i + 1) * len(values) // count]) for i in range(count)]
