"""Orphans come to us: on Linux a child subreaper adopts every descendant whose parent ended."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import Any

# include/uapi/linux/prctl.h; prctl(2)
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


def become_subreaper() -> bool:
    """Adopt orphaned descendants from now on; call it before the first spawn.

    Without it an orphan falls to process 1, which in a container may reap it seconds later or never.

    Returns:
        Whether this process is a subreaper now; never an error, for the tree walk works without, only less
        surely.
    """
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def is_subreaper() -> bool:
    """Whether orphaned descendants come to this process."""
    answer = ctypes.c_int(0)
    return _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer)) == 0 and answer.value == 1


def is_childless() -> bool:
    """Whether this process has no child at all, neither running nor waiting to be reaped.

    In a subreaper it proves that nothing a step started is left: whatever lives would descend from a child
    of ours. One system call instead of a walk through the process table (waitid(2): ECHILD).
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _prctl(option: int, argument: object) -> int:
    """The result of prctl(2), or -1 where there is none."""
    if not sys.platform.startswith("linux"):
        return -1
    try:
        return int(_libc().prctl(option, argument, 0, 0, 0))
    except (OSError, AttributeError):
        return -1


@cache
def _libc() -> Any:
    """The C library; loaded once, since ctypes builds a class each time."""
    return ctypes.CDLL(None, use_errno=True)
