"""N tasks for doit, one after another."""

import os

COUNT, OUT = int(os.environ["STEPS"]), os.environ["OUT"]


def task_step():
    """Each touches the same file."""
    for number in range(COUNT):
        yield {"name": str(number), "actions": [["/usr/bin/touch", OUT]], "verbosity": 0}
