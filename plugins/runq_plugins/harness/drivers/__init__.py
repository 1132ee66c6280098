"""Scripts that run in a harness's own interpreter: they may use nothing of runq, which that interpreter has not."""
