"""Where the names of points go, so that none covers another. Pure geometry, in pixels from the top left corner."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

HEIGHT = 14.0
"""Of a line of text of 12 pixels."""

WIDTH = 7.5
"""Of a letter of that text in a wide font: a narrower one leaves names some room to spare."""

DOT = 6.0
"""Half the width of a point."""


@attrs.frozen
class Box:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two overlap."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def place(points: Sequence[tuple[float, float, str]], width: float, height: float) -> list[tuple[float, float] | None]:
    """Where each name begins: its left end and its middle. ``None`` for a name that has no room.

    Right of its point, else left of it, above or below; names that come first are placed first.

    Args:
        points: x, y and the name.
        width: of the picture.
        height: of the picture.
    """
    taken = [Box(x - DOT, y - DOT, x + DOT, y + DOT) for x, y, _ in points]
    frame = Box(0, -HEIGHT / 2, width, height)
    found: list[tuple[float, float] | None] = []
    for x, y, name in points:
        long = WIDTH * len(name)
        aside, over = DOT + 3, DOT + HEIGHT / 2 + 1
        spots = [
            (x + aside, y),
            (x - aside - long, y),
            *((x + shift, y + side * over) for side in (-1, 1) for shift in (-DOT, -long / 2, DOT - long)),
            *((x + shift, y + side * (over + HEIGHT)) for side in (-1, 1) for shift in (-DOT, DOT - long)),
        ]
        free = (spot for spot in spots if _fits(_box(spot, long), taken, frame))
        spot = next(free, None)
        found.append(spot)
        if spot is not None:
            taken.append(_box(spot, long))
    return found


def _box(spot: tuple[float, float], long: float) -> Box:
    return Box(spot[0], spot[1] - HEIGHT / 2, spot[0] + long, spot[1] + HEIGHT / 2)


def _fits(box: Box, taken: Sequence[Box], frame: Box) -> bool:
    inside = box.left >= frame.left and box.right <= frame.right and box.top >= frame.top and box.bottom <= frame.bottom
    return inside and not any(box.meets(other) for other in taken)
