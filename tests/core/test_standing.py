"""Between pause and stop, as the journal tells it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from runq.control.standing import Standing, standing


@attrs.frozen
class Told:
    kind: str
    at: str
    data: dict[str, Any]


def stands(*events: tuple[str, str]) -> Standing:
    """After these (kind, what was asked) events, the first at ``1``, the second at ``2`` and so on."""
    return standing(
        Told(kind, str(number), {"by": "nora", "what": what} if what else {"by": "nora"})
        for number, (kind, what) in enumerate(events, start=1)
    )


PAUSE, UNPAUSE = ("night.asked", "pause"), ("night.asked", "unpause")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], Standing()),
        ([PAUSE], Standing(asked=("pause",))),
        ([PAUSE, UNPAUSE], Standing()),
        ([PAUSE, ("night.paused", "")], Standing(paused="2", by="nora")),
        ([PAUSE, ("night.paused", ""), UNPAUSE, ("night.unpaused", "")], Standing()),
        ([("night.asked", "stop_after_entry"), PAUSE], Standing(asked=("stop_after_entry", "pause"))),
        ([("night.asked", "skip")], Standing()),
        ([("night.frozen", "")], Standing(frozen="1")),
        ([("night.frozen", ""), ("night.continued", "")], Standing()),
        # Its runner was killed while it paused: who goes on with it did not ask for a pause.
        ([PAUSE, ("night.paused", ""), ("night.resumed", "")], Standing()),
    ],
)
def test_how_a_night_stands(events: list[tuple[str, str]], expected: Standing) -> None:
    assert stands(*events) == expected
