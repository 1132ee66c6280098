"""What gives way where a screen is too low for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.one_screen import Block, fitted_blocks

BLOCKS = [
    Block(status="complete", lines=["e0 complete", "   accuracy"]),
    Block(status="failed", lines=["e1 failed", "   it exited with 3"]),
    Block(status="complete", lines=["e2 complete"]),
    Block(status="running", lines=["e3 running"]),
    Block(status="pending", lines=["e4 pending"]),
    Block(status="moon", lines=["e5 moon"]),
]


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (8, [line for block in BLOCKS for line in block.lines]),
        (
            7,
            [
                "e0 complete",
                "   accuracy",
                "e1 failed",
                "   it exited with 3",
                "e3 running",
                "e4 pending",
                "… and 1 complete, 1 moon",
            ],
        ),
        (5, ["e1 failed", "   it exited with 3", "e3 running", "e4 pending", "… and 2 complete, 1 moon"]),
        (3, ["e1 failed", "e3 running", "… and 1 pending, 2 complete, 1 moon"]),
        (1, ["… and 1 running, 1 failed, 1 pending, 2 complete, 1 moon"]),
        (0, ["… and 1 running, 1 failed, 1 pending, 2 complete, 1 moon"]),
    ],
)
def test_what_matters_least_is_counted(room: int, shown: list[str]) -> None:
    assert fitted_blocks(BLOCKS, room) == shown


def test_lines_that_were_cut_off_the_last_entry_are_hinted_at() -> None:
    assert fitted_blocks([Block(status="failed", lines=["e0 failed", "why", "more"])], 2) == ["e0 failed", "…"]


blocks_of_lines = st.builds(
    Block,
    status=st.sampled_from(["complete", "failed", "running"]),
    lines=st.lists(st.just("x"), min_size=1, max_size=4),
)


@given(st.lists(blocks_of_lines), st.integers(1, 60))
def test_it_fits(blocks: list[Block], room: int) -> None:
    assert len(fitted_blocks(blocks, room)) <= room
